# SPDX-License-Identifier: GPL-2.0-only
"""What tests that were killed have left on this machine: instances and network namespaces named after a process that has
ended. Each one costs the next tests time: commands look at the programs of all instances, and a hundred instances have
thousands of maps."""
import contextlib
import pathlib
import re
import shutil
import subprocess

NAMED = re.compile(r"t(\d+)-")  # as tests/lab/labnet.py names them
FOLDERS = ("/sys/fs/bpf/weir", "/sys/fs/bpf/weir-locks", "/run/weir", "/var/lib/weir")
NETNS = "/run/netns"


def is_left(name, proc="/proc"):
    found = NAMED.match(name)
    return bool(found) and not pathlib.Path(proc, found[1]).exists()


def left(folder):
    with contextlib.suppress(OSError):
        return sorted(entry.name for entry in pathlib.Path(folder).iterdir() if is_left(entry.name))
    return []


def remove_namespace(name):
    """With the processes in it."""
    found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout.split()
    if found:
        subprocess.run(["kill", "-KILL", *found], check=False)
    subprocess.run(["ip", "netns", "delete", name], check=False)


def remove():
    """Returns the number of instances and namespaces that were removed."""
    namespaces = left(NETNS)
    for name in namespaces:
        remove_namespace(name)
    instances = {name for folder in FOLDERS for name in left(folder)}
    for name in instances:
        for folder in FOLDERS:
            shutil.rmtree(pathlib.Path(folder, name), ignore_errors=True)
    return len(namespaces) + len(instances)
