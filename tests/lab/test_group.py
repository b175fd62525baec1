# SPDX-License-Identifier: GPL-2.0-only
"""weir block --group N: N hosts of an origin in one /24 or /64 are one prefix, and are hosts again below N."""

import re
import time

import pytest

from apiclient import Api
from labnet import run, until

FIRST, SECOND, THIRD, NET = "203.0.113.10", "203.0.113.20", "203.0.113.30", "203.0.113.0/24"
SIXTH, SEVENTH, NET6 = "2001:db8:113::10", "2001:db8:113::20", "2001:db8:113::/64"


@pytest.fixture(name="ban")
def ban_by(on):
    """ban(WHAT...) for the origin jail, from the second host in a net on as one prefix."""
    return lambda *words, **options: on("block", *words, "--origin", "jail", "--group", "2", **options)


def test_from_n_on_they_are_one_prefix(pair, on, ban):
    assert "one entry" not in ban(FIRST).stdout and set(on.entries()) == {FIRST}
    assert pair.free(FIRST, SECOND, THIRD) == [False, True, True]
    assert f"; 2 hosts of {NET} are blocked as one entry; saved" in ban(SECOND).stdout
    assert pair.free(FIRST, SECOND, THIRD) == [False, False, False]
    entry = on.entries()[NET]
    assert set(on.entries()) == {NET} and entry["packets"] > 0
    assert (entry["holders"][0]["origin"], entry["holders"][0]["hosts"]) == ("jail", [FIRST, SECOND])
    assert "origin jail, 2 hosts" in on("list").stdout
    assert f"overlay block {NET} from" in on("explain", FIRST).stdout.splitlines()[0]
    assert on("list", "--plain").stdout == f"{NET}\n"


def test_a_list_of_hosts(on, ban):
    hosts = [f"198.51.{net}.{host}" for host in (1, 2, 3) for net in range(5)]
    done = ban("-f", "-", input="\n".join([*hosts, "203.0.113.1", "10.9.0.0/16"]))
    assert "; 3 hosts of 198.51.0.0/24 are blocked as one entry, and so are those of 4 more prefixes; saved" in done.stdout
    assert set(on.entries()) == {*(f"198.51.{net}.0/24" for net in range(5)), "203.0.113.1", "10.9.0.0/16"}


def test_below_n_the_hosts_return(pair, on, ban):
    ban(FIRST, SECOND, THIRD, "--for", "1h")
    done = on("unblock", "--origin", "jail", FIRST)
    assert f"{FIRST} stays blocked: block from {NET}" in done.stderr  # two are enough
    on("unblock", "--origin", "jail", SECOND)
    assert set(on.entries()) == {THIRD} and pair.free(FIRST, SECOND, THIRD) == [True, True, False]
    ban(FIRST)
    assert set(on.entries()) == {NET}
    assert f"unblocked {NET} of origin jail" in on("unblock", "--origin", "jail", NET).stdout
    assert on.entries() == {} and pair.free(FIRST, THIRD) == [True, True]


def test_ipv6_and_both_directions(pair, on, ban):
    ban(SIXTH, SEVENTH, "2001:db8:113:1::1", "--both")
    kinds = {(entry["address"], entry["kind"]) for entry in on.json("list")["entries"]}
    assert kinds == {(net, f"block-{side}") for net in (NET6, "2001:db8:113:1::1") for side in ("from", "to")}
    assert pair.free(SIXTH, "2001:db8:113::30") == [False, False]


def test_origins_have_groups_of_their_own(on, ban):
    ban(FIRST, SECOND)
    on("block", SECOND, THIRD, "--origin", "other")
    assert set(on.entries()) == {NET, SECOND, THIRD}
    on("unblock", "--origin", "jail", SECOND)
    assert set(on.entries()) == {FIRST, SECOND, THIRD}
    on("unblock", "--origin", "other")
    assert set(on.entries()) == {FIRST}


def test_the_latest_end_counts(pair, on, ban):
    ban(FIRST, "--for", "1h")
    ban(SECOND, "--for", "2h")
    assert 7190 <= on.entries()[NET]["left_s"] <= 7200
    ban(THIRD, "--for", "1s")
    until(lambda: "30" not in str(on.json("list")["entries"][0]["holders"][0]["hosts"]), seconds=5, what="the end of one")
    assert set(on.entries()) == {NET}  # the others are two
    on("unblock", "--origin", "jail", FIRST)
    assert set(on.entries()) == {SECOND}


def test_who_has_expired_does_not_count(pair, on, ban):
    ban(FIRST, "--for", "1s")
    ban(SECOND, "--for", "1h")
    assert set(on.entries()) == {NET}
    time.sleep(2.5)
    on("block", "198.51.100.1")  # any command, or the agent
    assert set(on.entries()) == {SECOND, "198.51.100.1"} and pair.free(FIRST, SECOND) == [True, False]


def test_the_agent_counts_again(pair, on, ban):
    """It removes who has expired, so the group ends without a command."""
    on.run()
    ban(FIRST, "--for", "1s")
    ban(SECOND, "--for", "1h")
    until(lambda: set(on.entries()) == {SECOND}, seconds=15, what="the end of the group")
    assert pair.free(FIRST, SECOND) == [True, False]


def test_the_api(on):
    on.run()
    status, done = Api(on.name)("POST", "/v1/block", {"what": [FIRST, SECOND], "origin": "ids", "group": 2})
    assert (status, done["groups"]) == (200, [NET]) and set(on.entries()) == {NET}


def test_never_what_safety_protects(pair, on, ban):
    net = re.sub(r"\d+$", "", pair.far4)
    ban(net + "50", net + "51", net + "52")
    assert set(on.entries()) == {net + "50", net + "51", net + "52"}


def test_never_an_allow_entry(pair, on, ban):
    ban(FIRST, SECOND)
    on("allow", THIRD)
    assert set(on.entries()) == {FIRST, SECOND, THIRD} and pair.free(FIRST, SECOND, THIRD) == [False, False, True]
    ban("203.0.113.40")
    assert len(on.entries()) == 4
    on("unallow", THIRD)
    ban("203.0.113.40")
    assert set(on.entries()) == {NET}


def test_a_prefix_of_the_user_stays(on, ban):
    ban(FIRST, SECOND)
    on("block", NET, "--origin", "jail", "--for", "10m")
    assert set(on.entries()) == {NET, FIRST, SECOND} and on.entries()[NET]["left_s"] <= 600
    on("unblock", "--origin", "jail", NET)
    assert set(on.entries()) == {FIRST, SECOND}


def test_the_last_command_decides(on, ban):
    ban(FIRST, SECOND)
    on("block", FIRST, "--origin", "jail")
    assert set(on.entries()) == {FIRST, SECOND}
    on("block", FIRST, SECOND, "--origin", "jail", "--group", "3")
    assert set(on.entries()) == {FIRST, SECOND}
    ban(FIRST, SECOND)
    assert set(on.entries()) == {NET}


@pytest.mark.parametrize("lost", ["", "overlay.index", "overlay"])
def test_it_outlives_a_restart(pair, on, ban, lost):
    ban(FIRST, SECOND, SIXTH)
    if lost == "overlay.index":
        run(["rm", f"/run/weir/{on.name}/overlay.index"])
    elif lost:
        (on.state / "overlay").unlink()
        assert set(on.entries()) == {NET, SIXTH}  # found in the kernel
        return
    else:
        on("detach")
        on("attach", "near0")
    assert set(on.entries()) == {NET, SIXTH} and pair.free(FIRST, THIRD, SEVENTH) == [False, False, True]
    on("unblock", "--origin", "jail", FIRST)
    assert set(on.entries()) == {SECOND, SIXTH} and pair.free(FIRST, SECOND) == [True, False]


def test_what_is_not_kept_is_not_counted_after_a_restart(on, ban):
    ban(FIRST)
    ban(SECOND, "--volatile")
    assert set(on.entries()) == {NET}
    on("detach")
    on("attach", "near0")
    assert set(on.entries()) == {FIRST}


def test_in_a_batch(pair, on, ban):
    lines = "".join(f"block {host} --origin jail --group 2\n" for host in (FIRST, SECOND, SIXTH, SEVENTH))
    on("batch", input=lines + f"unblock {SIXTH} --origin jail\n")
    assert set(on.entries()) == {NET, SEVENTH}
    said = on("batch", "--each", input=f"block {SIXTH} --origin jail --group 2\nunblock {FIRST} --origin jail\n").stdout
    assert f"2 hosts of {NET6} are blocked as one entry" in said
    assert set(on.entries()) == {NET6, SECOND}
    assert on.json("block", THIRD, "--origin", "jail", "--group", "2")["groups"] == [NET]


@pytest.mark.parametrize("words, said", [
    (("--group", "1"), "is not a number of hosts from 2 to 256"), (("--group", "257"), "from 2 to 256"),
    (("--group", "x"), "from 2 to 256"), (("--group", "2", "--sync", "feed"), "cannot be combined with --sync"),
    (("--group", "2", "--live"), "cannot be combined with --live")])
def test_what_is_wrong(on, words, said):
    assert said in on.fails(1, "block", FIRST, *words)
    assert "--group is for block entries" in on.fails(1, "allow", FIRST, "--group", "2")
    assert on.entries() == {}


def test_fail2bans_option(pair, on):
    """options = --group 2 of the action: as fail2ban calls it."""
    for host in FIRST, SECOND:
        on("-q", "block", "--origin", "fail2ban-door", "--note", "3 failures", "--mask", "--group", "2", host)
    assert set(on.entries()) == {NET}
    on("-q", "unblock", "--origin", "fail2ban-door", "--mask", FIRST)
    assert on.entries()[SECOND]["holders"][0]["note"] == "3 failures"
