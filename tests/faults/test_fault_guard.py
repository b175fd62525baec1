# SPDX-License-Identifier: GPL-2.0-only
"""The guards of block and attach: whichever call of their checks fails, own addresses and the login stay
reachable."""

import collections

import pytest

from inject import CALL, EVERYTHING, Fault, injected, traced
from labnet import WEIR
from policylab import SOURCE4, logged_in

LOOKS = ("socket", "bind", "getsockname", "sendto", "recvmsg", "recvfrom", "openat", "readlinkat")
ERRORS = ("ENOMEM", "EPERM", "ENOBUFS") if EVERYTHING else ("ENOMEM",)


def looks_of(weir, argv, log):
    """The number of each of these calls in a run without a fault."""
    done = traced(weir, argv, log, "-e", "trace=" + ",".join(LOOKS))
    counts = collections.Counter(
        match[1] for line in log.read_text(errors="replace").splitlines() if (match := CALL.match(line)))
    return counts, done


@pytest.fixture(name="targets")
def guarded_targets(pair, on):
    """An own address, and a prefix that contains one: the reason why they are refused."""
    return {pair.near4: "an address of this host", "fd77::/120": "an address of this host",
            pair.far4: "the default gateway"}


def test_no_failing_look_blocks_this_host(on, targets, tmp_path):
    for target, why in targets.items():
        argv, log = ("block", target), tmp_path / "log"
        counts, done = looks_of(on, argv, log)
        assert done.returncode == 3 and why in done.stderr, (target, done.stderr)
        assert counts["sendto"] >= 4 and counts["recvmsg"] >= 4, counts
        refused = 0
        for call, n in counts.items():
            for nth in range(1, n + 1):
                for error in ERRORS:
                    outcome = injected(on, argv, Fault(call, nth, error), log)
                    assert outcome.status, (target, call, nth, error, outcome.printed)
                    refused += "cannot tell what must not be blocked" in outcome.printed
        assert refused >= 6
    assert not on.entries()


def test_force_says_that_it_does_not_know(on, targets, tmp_path):
    target, log = next(iter(targets)), tmp_path / "log"
    counts, _ = looks_of(on, ("block", target), log)
    for nth in range(1, counts["sendto"] + 1):
        outcome = injected(on, ("block", "203.0.113.1", "--force"), Fault("sendto", nth, "ENOMEM"), log)
        if "blocked anyway" in outcome.printed:
            assert not outcome.status and "203.0.113.1" in on.entries()
            return
    pytest.fail("no check of the guard failed")


def test_a_login_that_cannot_be_looked_for(pair, on, tmp_path):
    """The namespace, entered by nsenter, is the login's; the check fails at each file of /proc."""
    log, found = tmp_path / "log", set()
    for nth in range(1, 60):
        done = pair.near(["strace", "-f", "-qq", "-o", log,
                          "-e", "trace=openat", "-e", f"inject=openat:error=ENOMEM:when={nth}",
                          WEIR, "-n", on.name, "block", "203.0.113.1", "--dry-run"], check=False)
        if "INJECTED" not in log.read_text(errors="replace"):
            break
        injected_into = next(line for line in log.read_text().splitlines() if "INJECTED" in line)
        pid = injected_into.split()[0]
        if f"/proc/{pid}/stat" in injected_into:
            break  # the login is found: the mounts of ancestors follow, beginning with this process
        if "/proc/" in injected_into and "/stat" in injected_into and not done.returncode:
            pytest.fail(f"{injected_into}: {done.stdout}")
        if "the peer of your own login" in done.stderr:
            found.add(injected_into)
    assert found


@pytest.fixture(name="elsewhere")
def policy_that_waits(pair, weir, tmp_path):
    """Active on v1 and on any new interface of that name: no packet passes there."""
    pair.link("add", "v1", "type", "veth", "peer", "v2")
    weir("attach", "v1", "--max-entries", "64")
    policy = tmp_path / "lab.weir"
    policy.write_text("default drop\n")
    weir("apply", policy)
    yield weir
    weir("detach", "--force", check=False)
    pair.link("del", "v1")


def calls_in(log, call):
    return sum(line.split(None, 1)[-1].startswith(call) for line in log.read_text().splitlines())


@pytest.mark.parametrize("call", ["openat", "sendto", "recvmsg", "socket", "readlinkat", "bpf"])
def test_no_failing_look_attaches_where_the_login_is(pair, elsewhere, tmp_path, call):
    """By ssh over near0, where the policy would cut it off: whichever call fails, it is not attached."""
    log, attach = tmp_path / "log", [WEIR, "-n", elsewhere.name, "attach", "near0"]
    strace = ["strace", "-f", "-qq", "-o", log, "-e", f"trace={call}"]
    status, printed = logged_in(pair, SOURCE4, [*strace, *attach])
    assert status == 3 and "cut off your own login" in printed, printed
    calls = calls_in(log, call)
    assert calls
    for nth in range(1, calls + 1, 1 if EVERYTHING else max(1, calls // 24)):
        status, printed = logged_in(
            pair, SOURCE4, [*strace, "-e", f"inject={call}:error=ENOMEM:when={nth}", *attach])
        assert status and not pair.xdp_attached(), (nth, printed)
