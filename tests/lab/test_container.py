# SPDX-License-Identifier: GPL-2.0-only
"""Weir in a container: a PID namespace and mounts of its own, and fewer capabilities."""

import concurrent.futures
import json
import subprocess
import time

import pytest

MISSING = ("this container has no BPF file system of the host: start it with -v /sys/fs/bpf:/sys/fs/bpf "
           "-v /run/weir:/run/weir -v /var/lib/weir:/var/lib/weir")
OWN_BPFFS = "umount /sys/fs/bpf && "
OWN_RUN = "mount -t tmpfs own /run/weir && "


def contained(argv, mounts=""):
    """Runs a command in a PID namespace and a mount namespace of its own, after these commands."""
    words = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "sh", "-c", f'{mounts}exec "$@"', "sh"]
    return subprocess.run([*words, *map(str, argv)], capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("words", (["attach", "near0"], ["block", "192.0.2.1"], ["status"]), ids=lambda words: words[0])
def test_nothing_is_mounted_in_a_container(pair, weir, words):
    """What is pinned in a file system of the container ends with it, and the filter too."""
    done = contained(weir.argv(*words), OWN_BPFFS)
    assert done.returncode == 3 and done.stderr == f"weir: {MISSING}\n", done
    done = contained(weir.argv("-j", *words), OWN_BPFFS)
    assert done.returncode == 3 and MISSING in json.loads(done.stdout)["error"]["text"], done
    assert not pair.xdp_attached()
    mounted = contained(["grep", " /sys/fs/bpf ", "/proc/mounts"], f"{OWN_BPFFS}! {' '.join(weir.argv(*words))} && ")
    assert mounted.returncode == 1 and MISSING in mounted.stderr, mounted


def test_doctor_says_what_the_container_lacks(weir):
    done = contained(weir.argv("doctor"), OWN_BPFFS)
    assert "problem  bpffs" in done.stdout and MISSING in done.stdout, done


def test_with_the_file_system_of_the_host_it_works(pair, weir):
    assert contained(weir.argv("attach", "near0")).returncode == 0
    assert pair.xdp_attached()
    assert contained(weir.argv("block", "192.0.2.1")).returncode == 0
    assert weir.entries()


@pytest.mark.parametrize("dropped, said", [
    ("-all", "no privilege to load BPF programs (this process lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)"),
    ("-bpf,-sys_admin", "no privilege to load BPF programs (this process lacks CAP_BPF)"),
    ("-net_admin,-sys_admin", "no privilege to load BPF programs (this process lacks CAP_NET_ADMIN)"),
    ("-perfmon,-sys_admin", "permission denied (this process lacks CAP_PERFMON)"),
    ("-sys_admin", "operation not permitted (this process lacks CAP_SYS_ADMIN)"),
])
def test_missing_capabilities_are_named(pair, weir, dropped, said):
    netns, *argv = weir.argv("attach", "near0")[2:]
    argv = ["nsenter", f"--net=/run/netns/{netns}", "setpriv", "--bounding-set", dropped, weir.argv()[0], *argv]
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stderr.endswith(f"{said}\n"), done
    assert not pair.xdp_attached()
    weir("attach", "near0")


# ---- two folders /run/weir ----------------------------------------------------------------------


def test_a_container_waits_for_a_command_of_the_host(on):
    """They share the maps, but not /run/weir, where a file names who has the lock."""
    with on.locked():
        began = time.monotonic()
        done = contained(on.argv("block", "192.0.2.1"), OWN_RUN)
        assert done.returncode == 3 and time.monotonic() - began > 9, done
    assert "is locked by another command: one that reads, or one with another /run/weir, as in a container" in done.stderr
    assert not on.entries()
    assert contained(on.argv("block", "192.0.2.1"), OWN_RUN).returncode == 0
    assert set(on.entries()) == {"192.0.2.1"}


def test_a_host_and_a_container_write_at_once(on):
    hosts = [f"198.51.100.{n}" for n in range(1, 41)]

    def block(one):
        inside = int(one.rsplit(".", 1)[1]) % 2
        return contained(on.argv("block", one), OWN_RUN).returncode if inside else on("block", one, check=False).returncode

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(block, hosts)) == {0}
    assert set(on.entries()) == set(hosts)
    assert on.json("status", "--limits")["alarms"] == []
    on("unblock", "--all")
    assert not on.entries()
