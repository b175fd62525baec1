# SPDX-License-Identifier: GPL-2.0-only
"""What tests that were killed have left on this machine: instances and network namespaces named after a process that has
ended. Each one costs the next tests time: commands look at the programs of all instances, and a hundred instances have
thousands of maps.

A process that makes such names writes a mark first: its PID namespace and the time of its start. Without a mark nothing is
removed, as another instance may have a like name, and a process may run where this one does not see it.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess

NAMED = re.compile(r"t(\d+)-")  # as tests/lab/labnet.py names them
FOLDERS = ("/sys/fs/bpf/weir", "/sys/fs/bpf/weir-locks", "/run/weir", "/var/lib/weir")
NETNS = "/run/netns"
MARKS = "/run/weir-tests"


def about(pid):
    """What distinguishes the process from others with its number, or None."""
    with contextlib.suppress(OSError):
        started = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf8").rpartition(")")[2].split()[19]
        return f"{os.readlink('/proc/self/ns/pid')} {started}\n"
    return None


def mark():
    """Of this process."""
    path = pathlib.Path(MARKS, str(os.getpid()))
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(about(os.getpid()), encoding="ascii")


def ended():
    """The numbers of processes that have a mark and have ended."""
    here, found = os.readlink("/proc/self/ns/pid"), set()
    for path in pathlib.Path(MARKS).glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = path.read_text(encoding="ascii")
            if text.split(" ")[0] == here and about(path.name) != text:
                found.add(path.name)
    return found


def left(folder, pids):
    with contextlib.suppress(OSError):
        names = sorted(entry.name for entry in pathlib.Path(folder).iterdir())
        return [name for name in names if (found := NAMED.match(name)) and found[1] in pids]
    return []


def remove_namespace(name):
    """With the processes in it."""
    found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout.split()
    if found:
        subprocess.run(["kill", "-KILL", *found], check=False)
    subprocess.run(["ip", "netns", "delete", name], check=False)


def remove():
    """Returns the number of instances and namespaces that were removed."""
    pids = ended()
    namespaces = left(NETNS, pids)
    for name in namespaces:
        remove_namespace(name)
    instances = {name for folder in FOLDERS for name in left(folder, pids)}
    for name in instances:
        for folder in FOLDERS:
            shutil.rmtree(pathlib.Path(folder, name), ignore_errors=True)
    for pid in pids:
        pathlib.Path(MARKS, pid).unlink(missing_ok=True)
    return len(namespaces) + len(instances)
