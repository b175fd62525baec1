# SPDX-License-Identifier: GPL-2.0-only
"""Names are blocked by their addresses, but never what would cut off this machine."""

import time

import pytest

from blocklab import BLOCKED4, BLOCKED6, HALF_SECOND, MANY, OTHER4, SHARED4, SHARED6, answers, everything, nothing
from labnet import run


def test_all_addresses_of_a_name(pair, on):
    on("block", "many.lab")
    assert nothing(pair, *MANY)
    assert everything(pair, "198.51.100.5", "2001:db8:100::5")
    assert answers(pair, "many.lab", "many.lab") == [False] * 4
    on("unblock", "many.lab")
    assert answers(pair, "many.lab", "many.lab") == [True] * 4


@pytest.mark.parametrize("name", ["www.blocked.lab", "chain.lab", "BLOCKED.lab.", "blocked"])
def test_aliases_search_domains_and_spellings(pair, on, name):
    on("block", name)
    assert nothing(pair, BLOCKED4, BLOCKED6)
    on("unblock", name)
    assert everything(pair, BLOCKED4, BLOCKED6)


@pytest.mark.parametrize(
    "name, address", [("v4only.lab", "203.0.113.40"), ("v6only.lab", "2001:db8:113::60")]
)
def test_a_name_of_one_family(pair, on, name, address):
    on("block", name)
    assert list(on.entries()) == [address]
    assert nothing(pair, address)


def test_two_names_that_share_an_address(pair, on):
    on("block", "blocked.lab")
    on("block", "shared.lab")
    line = on.fails(3, "unblock", "blocked.lab")
    assert nothing(pair, BLOCKED4, BLOCKED6, SHARED4, SHARED6)
    assert f"{BLOCKED4} stays blocked" in line and "shared.lab" in line
    assert "; so does 1 more" in line
    on("unblock", "shared.lab")
    assert everything(pair, BLOCKED4, BLOCKED6, SHARED4, SHARED6)


def test_a_name_whose_addresses_changed(pair, on, dns):
    on("block", "blocked.lab")
    dns("blocked.lab", "192.0.2.1", "2001:db8::1")
    done = on("block", "blocked.lab")
    assert "2 former addresses removed" in done.stdout
    assert nothing(pair, "192.0.2.1", "2001:db8::1")
    assert everything(pair, BLOCKED4, BLOCKED6)
    dns("blocked.lab", "none")  # unblock does not query any server
    on("unblock", "blocked.lab")
    assert everything(pair, "192.0.2.1", "2001:db8::1")


def test_an_address_blocked_by_itself_too_survives_its_name(pair, on, dns):
    on("block", BLOCKED4)
    on("block", "blocked.lab")
    dns("blocked.lab", "192.0.2.1")
    on("block", "blocked.lab")
    assert nothing(pair, BLOCKED4, "192.0.2.1")


def test_the_hosts_file_comes_first(pair, on, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.66 other.lab alias.example\n2001:db8::66 alias.example\n")
    argv = on.argv("block", "other.lab", "alias.example")
    run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts, *argv])
    assert sorted(on.entries()) == ["192.0.2.66", "2001:db8::66"]
    assert everything(pair, OTHER4)


def test_search_domains_of_the_namespace(pair, on):
    """/etc/netns/NAME/resolv.conf, as 'ip netns exec' shows it to commands."""
    conf = f"/etc/netns/{pair.near_netns}/resolv.conf"
    with open(conf, encoding="ascii") as file:
        before = file.read()
    try:
        with open(conf, "w", encoding="ascii") as file:
            file.write(f"nameserver {pair.far4}\nsearch nowhere.lab blocked.lab\n")
        on("block", "www")
        assert set(on.entries()) == {BLOCKED4, BLOCKED6}
        assert "no such name" in on.fails(1, "block", "other")
    finally:
        with open(conf, "w", encoding="ascii") as file:
            file.write(before)


@pytest.mark.parametrize("resolver", ["10.77.0.2", "10.77.0.2:53", "fd77::2", "[fd77::2]:53"])
def test_resolver_option(pair, on, resolver):
    on("block", "--resolver", resolver, "v4only.lab")
    assert nothing(pair, "203.0.113.40")


@pytest.mark.parametrize(
    "options, at_least, at_most",
    [(["--resolver", "10.99.0.1", "--resolver-timeout", "300ms"], 0.25, 1),
     (["--resolver", "10.99.0.1"], 3, 5.5),
     (["--resolver", "10.77.0.2:54"], 0, 5.5)],
)
def test_an_unreachable_resolver_is_not_waited_for_long(pair, on, options, at_least, at_most):
    began = time.monotonic()
    assert "'blocked.lab'" in on.fails(2, "block", *options, OTHER4, "blocked.lab")
    assert at_least <= time.monotonic() - began <= at_most
    assert on.entries() == {}
    assert everything(pair, OTHER4)


def test_a_name_that_does_not_exist_changes_nothing(pair, on):
    line = on.fails(1, "block", OTHER4, "nothing.lab", "blocked.lab")
    assert "'nothing.lab': no such name" in line
    assert on.entries() == {}
    assert everything(pair, OTHER4, BLOCKED4)


# The owner of a name chooses its addresses, so a name never cuts off the machine.


def test_dangerous_answers_are_left_out(pair, on, dns):
    dns("other.lab", "127.0.0.1", "0.0.0.0", pair.near4, pair.far4, "192.0.2.50", "::1", pair.near6)
    done = on("block", "other.lab")
    assert list(on.entries()) == ["192.0.2.50"]
    for address in "127.0.0.1", "0.0.0.0", pair.near4, pair.far4, "::1", pair.near6:
        assert f"'other.lab' has address {address}, " in done.stderr
    dns("other.lab", "127.0.0.1")
    assert on("block", "other.lab", check=False).returncode == 3
    assert list(on.entries()) == ["192.0.2.50"]


@pytest.mark.parametrize(
    "what", ["10.77.0.1", "10.77.0.2", "10.77.0.0/24", "0.0.0.0/0", "fd77::1", "fd77::2",
             "fd00::/8", "10.77.0.0-10.77.0.9"]
)
def test_the_guard_refuses_to_cut_the_machine_off(pair, on, what):
    line = on.fails(3, "block", OTHER4, what)
    assert "would cut off" in line and "--force" in line
    assert on.entries() == {}
    assert pair.ping4(pair.far4) and pair.ping6(pair.far6)
    on("block", "--force", what)
    assert nothing(pair, what.split("-")[0].split("/")[0])


def test_the_guard_looks_into_lists(on):
    line = on.fails(3, "block", "-f", "-", input=f"{OTHER4}\n10.77.0.2\n")
    assert "would cut off 10.77.0.2" in line
    assert on.entries() == {}


def test_neighbour_discovery_survives_a_forced_block(pair, on):
    on("block", "--force", "::/0", "0.0.0.0/0")
    pair.near(["ip", "neigh", "flush", "dev", "near0"])
    assert not pair.ping6(pair.far6, *HALF_SECOND)
    on("unblock", "::/0", "0.0.0.0/0")
    assert pair.ping6(pair.far6)


LOCAL = ("0.1.2.3", "10.9.8.7", "100.64.0.1", "169.254.1.1", "172.31.255.1", "192.168.1.1", "224.0.0.251",
         "255.255.255.255", "fc00::1", "fd12::1", "fe80::1", "ff02::fb")


@pytest.mark.parametrize("address", LOCAL)
def test_a_name_blocks_no_local_address(on, dns, address):
    """The owner of a name chooses its addresses: a line in a zone must not cut off a network."""
    dns("blocked.lab", address, "203.0.113.10")
    done = on("block", "blocked.lab")
    assert address in done.stderr and "ignored" in done.stderr
    assert set(on.entries()) == {"203.0.113.10"}
    dns("blocked.lab", address)
    assert "--wide" in on("block", "blocked.lab", check=False).stderr
    assert set(on.entries()) == {"203.0.113.10"}
    on("block", "blocked.lab", "--wide")
    assert set(on.entries()) == {address}
    on("unblock", "blocked.lab")
    on("block", address)  # an address that is typed is meant
    assert set(on.entries()) == {address}


@pytest.mark.parametrize("address", ["11.0.0.1", "100.63.255.255", "100.128.0.0", "172.32.0.0", "192.169.0.1",
                                     "223.255.255.255", "2001:db8::1"])
def test_a_name_blocks_what_is_beside_local_ranges(on, dns, address):
    dns("blocked.lab", address)
    assert not on("block", "blocked.lab").stderr
    assert set(on.entries()) == {address}


def test_a_name_fills_no_table(on, dns):
    dns("blocked.lab", *[f"198.51.100.{n}" for n in range(200)], *[f"2001:db8:7::{n:x}" for n in range(1, 101)])
    done = on("block", "blocked.lab")
    assert "more than 256 addresses" in done.stderr and "36 more addresses are ignored" in done.stderr
    assert len(on.entries()) == 256
