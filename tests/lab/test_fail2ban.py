# SPDX-License-Identifier: GPL-2.0-only
"""Debian's fail2ban with the action of contrib/fail2ban: bans, unbans and restarts leave no error in its log."""

import contextlib
import shutil
import sqlite3
import subprocess
import time

import pytest

import labnet
from labnet import ROOT, WEIR, run
from policylab import Policies, tcp
from statefile import read_rows

ATTACKER4, ATTACKER6, OTHER4 = "203.0.113.10", "2001:db8:113::10", "203.0.113.20"
JAIL = """\
[DEFAULT]
backend = polling
banaction = weir[weir="{weir} -N {netns}", instance={instance}]
action = %(banaction)s
bantime = 1h
findtime = 1h
maxretry = 3

[door]
enabled = true
filter = lab
logpath = {folder}/door.log
{door}

[gate]
enabled = true
filter = lab
logpath = {folder}/gate.log
"""
FILTER = "[Definition]\nfailregex = ^ failed login from <HOST>$\ndatepattern = ^%%Y-%%m-%%d %%H:%%M:%%S\n"


class Fail2ban:
    """A separate server: configuration, socket, database, logs and jails are in one folder."""

    def __init__(self, folder, weir, door=""):
        self.folder = folder
        self.log = folder / "fail2ban.log"
        self.config = folder / "config"
        for part in "action.d", "filter.d":
            (self.config / part).mkdir(parents=True)
        for action in (ROOT / "contrib" / "fail2ban").glob("*.conf"):
            shutil.copy(action, self.config / "action.d")
        (self.config / "filter.d" / "lab.conf").write_text(FILTER)
        (self.config / "fail2ban.conf").write_text(
            f"[Definition]\nloglevel = INFO\nlogtarget = {self.log}\nsyslogsocket = none\n"
            f"socket = {folder}/socket\npidfile = {folder}/pid\ndbfile = {folder}/bans.sqlite3\n"
            "dbpurgeage = 1d\nallowipv6 = auto\n"
        )
        jail = JAIL.format(folder=folder, weir=WEIR, netns=weir.pair.near_netns, instance=weir.name, door=door)
        (self.config / "jail.conf").write_text(jail)
        for name in "door", "gate":
            (folder / f"{name}.log").touch()
        self.process, self.began = None, 0

    def client(self, *words):
        return run(["fail2ban-client", "-c", self.config, *words]).stdout

    def start(self):
        self.began = len(self.log.read_text()) if self.log.exists() else 0
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["fail2ban-server", "-c", self.config, "-f", "start"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        until(lambda: self.process.poll() is not None
              or all(f"Jail '{jail}' started" in self.said() for jail in ("door", "gate")))
        assert self.process.poll() is None, "the server has not started"

    def said(self):
        """Its log since the last start of the server."""
        return self.log.read_text()[self.began:] if self.log.exists() else ""

    def stop(self):
        self.client("stop")
        self.process.wait(timeout=20)

    def kept(self):
        """The number of bans in its database, which is updated after the action."""
        with contextlib.closing(sqlite3.connect(f"file:{self.folder}/bans.sqlite3?mode=ro", uri=True,
                                                timeout=10)) as bans:
            return bans.execute("select count(*) from bips").fetchone()[0]

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        (self.folder / "socket").unlink(missing_ok=True)  # as a reboot does

    def failures(self, jail, address, times=3):
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with open(self.folder / f"{jail}.log", "a", encoding="ascii") as file:
            file.writelines(f"{stamp} failed login from {address}\n" for _ in range(times))

    def check_log(self):
        """No error and no warning, except that there was no database yet."""
        bad = [line for line in self.log.read_text().splitlines()
               if any(level in line for level in ("ERROR", "CRITICAL", "WARNING"))
               and "New database created" not in line]
        assert not bad, "\n".join(bad)


def until(holds):
    labnet.until(holds, 20)


@pytest.fixture(name="fail2ban")
def fail2ban_server(on, tmp_path, request):
    server = Fail2ban(tmp_path, on, getattr(request, "param", ""))  # more lines of the jail "door"
    try:
        server.start()
        yield server
    finally:
        server.kill()


def free(pair, *addresses):
    return lambda: all(pair.free(*addresses))


def taken(pair, *addresses):
    return lambda: not any(pair.free(*addresses))


def origins(on):
    return {address: [holder["origin"] for holder in entry["holders"]]
            for address, entry in on.entries().items()}


def test_fail2ban_bans_and_unbans(pair, on, fail2ban):
    fail2ban.failures("door", OTHER4, times=2)
    fail2ban.failures("door", ATTACKER4)
    fail2ban.failures("gate", ATTACKER6)
    until(taken(pair, ATTACKER4, ATTACKER6))
    assert free(pair, OTHER4)()
    assert origins(on) == {ATTACKER4: ["fail2ban-door"], ATTACKER6: ["fail2ban-gate"]}
    assert on.entries()[ATTACKER4]["holders"][0]["note"] == "3 failures"
    fail2ban.client("set", "door", "unbanip", ATTACKER4)
    until(free(pair, ATTACKER4))
    assert taken(pair, ATTACKER6)()
    fail2ban.client("unban", "--all")
    until(free(pair, ATTACKER4, ATTACKER6))
    fail2ban.stop()
    fail2ban.check_log()


def test_what_others_hold_outlives_an_unban(pair, on, fail2ban):
    """Exit status 3 of an unban would be an error in the log."""
    on("block", ATTACKER4, "--note", "ours")
    fail2ban.failures("door", ATTACKER4)
    fail2ban.failures("gate", ATTACKER4)
    until(lambda: len(on.entries()[ATTACKER4]["holders"]) == 3)
    fail2ban.client("set", "door", "unbanip", ATTACKER4)
    until(lambda: origins(on) == {ATTACKER4: ["", "fail2ban-gate"]})
    on("unblock", ATTACKER4)
    assert taken(pair, ATTACKER4)()
    on("block", ATTACKER4)
    fail2ban.stop()
    assert origins(on) == {ATTACKER4: [""]} and taken(pair, ATTACKER4)()
    fail2ban.check_log()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_fail2ban_bans_again_after_a_restart(pair, on, fail2ban, end):
    on("block", OTHER4)
    fail2ban.failures("door", ATTACKER4)
    fail2ban.failures("gate", ATTACKER6)
    until(taken(pair, ATTACKER4, ATTACKER6))
    until(lambda: fail2ban.kept() == 2)
    getattr(fail2ban, end)()
    if end == "stop":
        assert free(pair, ATTACKER4, ATTACKER6)()
    else:  # as if the ban had expired while the server was stopped: it must not become permanent
        on("block", "192.0.2.66", "--origin", "fail2ban-door")
        assert taken(pair, ATTACKER4, ATTACKER6, "192.0.2.66")()
    fail2ban.start()
    banned = {ATTACKER4: ["fail2ban-door"], ATTACKER6: ["fail2ban-gate"], OTHER4: [""]}
    until(lambda: origins(on) == banned and fail2ban.said().count(" Ban ") == 2)
    assert taken(pair, ATTACKER4, ATTACKER6)() and free(pair, "192.0.2.66")()
    fail2ban.client("set", "door", "unbanip", ATTACKER4)
    until(free(pair, ATTACKER4))
    fail2ban.stop()
    assert free(pair, ATTACKER4, ATTACKER6)() and taken(pair, OTHER4)()
    fail2ban.check_log()


def test_prefixes_and_ipv6_by_the_client(pair, on, fail2ban):
    """fail2ban clears the host bits of a prefix; one that did not would lose no ban."""
    fail2ban.client("set", "door", "banip", "203.0.113.17/24", "2001:db8:113::/64")
    until(taken(pair, ATTACKER4, ATTACKER6, OTHER4))
    assert origins(on) == {"203.0.113.0/24": ["fail2ban-door"], "2001:db8:113::/64": ["fail2ban-door"]}
    fail2ban.client("set", "door", "unbanip", "203.0.113.17/24")
    until(free(pair, ATTACKER4, OTHER4))
    assert taken(pair, ATTACKER6)()
    fail2ban.client("set", "gate", "banip", ATTACKER6)
    fail2ban.client("set", "door", "unbanip", "2001:db8:113::/64")
    until(lambda: origins(on) == {ATTACKER6: ["fail2ban-gate"]})
    fail2ban.stop()
    assert on.entries() == {}
    fail2ban.check_log()


@pytest.mark.parametrize("fail2ban", ["bantime = 2\nbantime.increment = true\nbantime.rndtime = 0"], indirect=True)
def test_a_ban_that_is_incremented_lasts_as_long(pair, on, fail2ban):
    """fail2ban lengthens the ban of a returning address; a restart keeps the remaining time."""
    fail2ban.failures("door", ATTACKER4)
    until(taken(pair, ATTACKER4))
    until(free(pair, ATTACKER4))
    fail2ban.client("set", "door", "bantime", "3600")
    fail2ban.failures("door", ATTACKER4)
    until(lambda: "Increase Ban" in fail2ban.said())
    until(taken(pair, ATTACKER4))
    until(lambda: fail2ban.kept() == 1)
    fail2ban.stop()
    assert free(pair, ATTACKER4)()
    fail2ban.start()
    until(lambda: origins(on) == {ATTACKER4: ["fail2ban-door"]})
    banned = fail2ban.client("get", "door", "banip", "--with-time")
    assert "+ 7200 =" in banned, banned
    assert taken(pair, ATTACKER4)()
    fail2ban.stop()
    fail2ban.check_log()


PORT = """banaction = weir-port[weir="{weir} -N {netns}", instance={instance}]
port = {port}
action = %(banaction)s[port="%(port)s", protocol="tcp"]"""


@pytest.fixture(name="ported")
def jail_with_a_port(on, tmp_path, request):
    """The jail "door" bans addresses from its ports only."""
    on.policy = Policies(on, tmp_path)
    on.policy("set ban-door dynamic max 1000\ndefault pass")
    port = PORT.format(weir=WEIR, netns=on.pair.near_netns, instance=on.name, port=getattr(request, "param", "ssh"))
    server = Fail2ban(tmp_path, on, port)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def reaches(pair, address, *ports):
    return pair.passes(*[tcp(port, address) for port in ports])


def banned(on):
    return [entry["address"] for entry in on.json("list", "--set", "ban-door")["addresses"]]


def rules(on):
    return [(rule["origin"], rule["rule"]) for rule in on.json("rule", "list")["rules"]]


SSH_RULE = ("fail2ban-door", "drop proto tcp from @ban-door to any port ssh")


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_jail_with_a_port(pair, on, ported, end):
    until(lambda: rules(on) == [SSH_RULE])
    ported.client("set", "door", "banip", ATTACKER4, ATTACKER6)  # by failures, the restart would ban again who was unbanned
    until(lambda: sorted(banned(on)) == sorted([ATTACKER4, ATTACKER6]))
    for address in ATTACKER4, ATTACKER6:
        assert reaches(pair, address, 22, 80) == [False, True]
    assert reaches(pair, OTHER4, 22, 80) == [True, True] and on.entries() == {}
    on.policy("set ban-door dynamic max 1000\ndrop proto udp to any port 9")
    assert reaches(pair, ATTACKER4, 22, 80) == [False, True]
    ported.client("set", "door", "unbanip", ATTACKER4)
    until(lambda: banned(on) == [ATTACKER6])
    assert reaches(pair, ATTACKER4, 22) == [True]
    until(lambda: ported.kept() == 1)
    getattr(ported, end)()
    assert rules(on) == ([] if end == "stop" else [SSH_RULE])
    assert reaches(pair, ATTACKER6, 22) == [end == "stop"]
    ported.start()
    until(lambda: banned(on) == [ATTACKER6] and ported.said().count(" Ban ") == 1)
    assert rules(on) == [SSH_RULE] and reaches(pair, ATTACKER6, 22, 80) == [False, True]
    if end == "kill":  # the list of the last change, and the list before it: the new rule precedes the end of the old one
        assert [row["id"] for row in read_rows(on.state / "rules", "rule") if "id" in row] == [2, 1, 2]
    ported.stop()
    assert rules(on) == [] and reaches(pair, ATTACKER6, 22) == [True]
    ported.check_log()


@pytest.mark.parametrize("ported", ["http,https,6000:6010"], indirect=True)
def test_a_jail_with_several_ports(pair, on, ported):
    until(lambda: [rule for _, rule in rules(on)] == ["drop proto tcp from @ban-door to any port http, https, 6000-6010"])
    ported.client("set", "door", "bantime", "-1")
    ported.failures("door", ATTACKER4)
    until(lambda: banned(on) == [ATTACKER4])
    assert reaches(pair, ATTACKER4, 80, 443, 6000, 6010, 6011, 22) == [False, False, False, False, True, True]
    entry = on.json("list", "--set", "ban-door")["addresses"][0]
    assert "left_s" not in entry or not entry["left_s"], entry
    ported.stop()
    ported.check_log()


def test_a_policy_without_the_set(on, tmp_path):
    on.policy = Policies(on, tmp_path)
    on.policy("pass proto udp")
    server = Fail2ban(tmp_path, on, PORT.format(weir=WEIR, netns=on.pair.near_netns, instance=on.name, port="ssh"))
    try:
        server.start()
        until(lambda: "unknown set '@ban-door'" in server.said())
        assert rules(on) == []
    finally:
        server.kill()
