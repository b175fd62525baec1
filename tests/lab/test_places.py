# SPDX-License-Identifier: GPL-2.0-only
"""Countries and autonomous systems, in policies and as entries, from databases that the test makes."""

import gzip
import json
import os
import re
import subprocess

import pytest

import mmdb
from labnet import ROOT, until
from policylab import OTHER4, OTHER6, SOURCE4, SOURCE6, Policies, programs, udp

COUNTRIES = {
    "198.51.100.0/25": "country DE", "198.51.100.128/25": "country DE", "203.0.113.0/24": "country FR",
    "10.77.0.0/24": "country IT", "2001:db8:100::/48": "country DE", "2001:db8:113::/48": "country FR",
}
NETWORKS = {"198.51.100.0/24": "asn 64500", "203.0.113.0/24": "asn 64501", "2001:db8:113::/48": "asn 64501"}
SET = 'set abroad { country DE, asn 64501 }\n"abroad" drop from @abroad\n'


@pytest.fixture(name="geo")
def databases(tmp_path):
    """A folder with two databases; geo.write(NAME, {PREFIX: RECORD}) writes another."""
    folder = tmp_path / "geo"
    folder.mkdir()

    def write(name, entries):
        (folder / "new").write_bytes(mmdb.build(entries))
        (folder / "new").rename(folder / name)

    write("country.mmdb", COUNTRIES)
    write("network.mmdb", NETWORKS)
    folder.joinpath("network.mmdb").chmod(0o600)
    return type("Geo", (), {"path": folder, "write": staticmethod(write), "__str__": lambda self: str(folder)})()


@pytest.fixture(name="apply")
def policies(on, tmp_path):
    return Policies(on, tmp_path)


class TestPolicy:
    def test_both_families_are_dropped(self, pair, apply, geo):
        apply(SET, "--geo", geo)
        frames = [udp(src=source) for source in (SOURCE4, SOURCE6, OTHER4, OTHER6)] + [udp(src="192.0.2.9")]
        assert pair.passes(*frames) == [False, False, False, False, True]

    def test_a_revision_needs_no_database(self, pair, apply, geo):
        apply(SET, "--geo", geo)
        apply.weir("detach")
        for file in geo.path.iterdir():
            file.unlink()
        apply.weir("attach", "near0", "--geo", geo)
        assert pair.passes(udp(src=SOURCE4), udp(src="192.0.2.9")) == [False, True]
        assert "abroad" in apply.weir("explain", OTHER6).stdout

    def test_another_database_is_another_policy(self, pair, apply, geo):
        assert "unchanged" not in apply(SET, "--geo", geo).stdout
        first = apply.weir.json("history")["revisions"]
        apply(SET, "--geo", geo)
        assert apply.weir.json("history")["revisions"] == first
        geo.write("country.mmdb", {"192.0.2.0/24": "country DE"})
        apply(SET, "--geo", geo)
        assert pair.passes(udp(src=SOURCE4), udp(src="192.0.2.9")) == [True, False]

    def test_without_a_database_the_last_answer_is_used(self, pair, apply, geo):
        apply(SET, "--geo", geo)
        geo.path.joinpath("country.mmdb").write_bytes(b"damaged")
        warning = apply(SET + "default pass\n", "--geo", geo).stderr
        assert "not a MaxMind database" in warning and "last good answer" in warning
        assert pair.passes(udp(src=SOURCE4)) == [False]

    @pytest.mark.parametrize("policy, database, sentence", [
        ("country JP", None, "no prefix of country JP in"),
        ("asn 64999", None, "no prefix of asn 64999 in"),
        ("country DE", "/nowhere.mmdb", "cannot read '/nowhere.mmdb': it does not exist"),
        ("country DE", "/var/empty-of-databases", "cannot read"),
    ])
    def test_what_cannot_be_found_is_refused(self, apply, geo, policy, database, sentence):
        shown = apply.fails(1, f"set a {{ {policy} }}\ndrop from @a\n", "--geo", database or geo)
        assert sentence in shown and "lab.weir:2" in shown

    def test_an_unknown_code_is_refused_with_the_nearest(self, apply, geo):
        shown = apply.fails(1, "default drop\nset a { country UK }\npass from @a\n", "--geo", geo)
        assert "did you mean GB, United Kingdom?" in shown


def blocked(weir):
    return {address for address, entry in weir.entries().items() if entry["kind"].startswith("block")}


@pytest.fixture(name="geoweir")
def with_databases(on, geo):
    """geoweir("block", "country", "DE") with the databases of the test."""
    return lambda *words, **options: on(*words, "--geo", geo, **options)


class TestEntries:
    def test_block_and_unblock(self, pair, on, geoweir):
        line = geoweir("block", "country", "de", "asn", "64501", "192.0.2.9").stdout
        assert "country DE (2 prefixes)" in line and "asn 64501 (2 prefixes)" in line
        frames = [udp(src=source) for source in (SOURCE4, SOURCE6, OTHER4, OTHER6, "192.0.2.9")]
        assert pair.passes(*frames) == [False] * 5
        assert "country DE" in on("list", "country", "DE").stdout
        listed = on.json("list", "country", "DE")["entries"]
        assert {entry["address"] for entry in listed} == {"198.51.100.0/24", "2001:db8:100::/48"}
        assert "country DE" in on("explain", SOURCE4).stdout
        on("unblock", "country", "DE")
        assert pair.passes(*frames) == [True, True, False, False, False]

    def test_one_that_remains_names_its_command(self, on, geoweir):
        geoweir("block", "country", "DE")
        assert "weir unblock country DE removes it" in on("unblock", "198.51.100.1", check=False).stderr

    def test_a_new_database_replaces_the_prefixes(self, on, geo, geoweir):
        geoweir("block", "country", "DE")
        geo.write("country.mmdb", {"198.51.100.0/24": "country DE", "192.0.2.0/24": "country DE"})
        geoweir("block", "country", "DE")
        assert blocked(on) == {"198.51.100.0/24", "192.0.2.0/24"}

    def test_lists_and_batch(self, on, geo, geoweir, tmp_path):
        path = tmp_path / "list"
        path.write_text("country DE for 1h # a comment\n192.0.2.1\n")
        geoweir("block", "-f", path, "--sync", "feed")
        assert blocked(on) == {"198.51.100.0/24", "2001:db8:100::/48", "192.0.2.1"}
        path.write_text("unblock --sync feed\nblock asn 64500\nallow country FR\n")
        geoweir("batch", "-f", path)
        assert blocked(on) == {"198.51.100.0/24"}
        assert on.entries()["203.0.113.0/24"]["kind"] == "allow-from"

    def test_own_addresses_are_guarded(self, on, geoweir):
        shown = geoweir("block", "country", "IT", check=False)
        assert shown.returncode == 3
        assert "blocking country IT would cut off 10.77.0." in shown.stderr
        geoweir("block", "country", "IT", "--force")
        assert blocked(on) == {"10.77.0.0/24"}

    @pytest.mark.parametrize("words, sentence", [
        (("country", "UK"), "unknown country code 'UK' (did you mean GB, United Kingdom?)"),
        (("country", "JP"), "no prefix of country JP in"),
        (("asn", "64999"), "no prefix of asn 64999 in"),
        (("asn", "AS64500"), "write asn 64500"),
        (("country",), "missing code after 'country'"),
    ])
    def test_refusals(self, on, geoweir, words, sentence):
        shown = geoweir("block", *words, check=False)
        assert shown.returncode == 1 and sentence in shown.stderr
        assert not blocked(on)

    def test_without_a_database(self, on, tmp_path):
        assert "no database of countries" in on("block", "country", "DE", "--geo", tmp_path, check=False).stderr


WIDER = COUNTRIES | {"192.0.2.0/25": "country DE"}
SMALLER = {"198.51.100.0/26": "country DE", "2001:db8:100::/48": "country DE"}
OWN = COUNTRIES | {"10.77.0.0/24": "country DE"}
BEFORE, AFTER = {"198.51.100.0/24", "2001:db8:100::/48"}, {"192.0.2.0/25", "198.51.100.0/24", "2001:db8:100::/48"}


class TestRefresh:
    def test_the_present_prefixes(self, on, geo, geoweir):
        geoweir("block", "country", "DE", "--for", "1h", "--note", "abroad")
        geo.write("country.mmdb", WIDER)
        row = geoweir("-j", "refresh", "country", "DE").stdout
        assert json.loads(row)["names"][0] | {"added": 1, "released": 0, "addresses": 3, "name": "country DE"} == json.loads(row)["names"][0]
        entries = on.entries()
        assert blocked(on) == AFTER and entries["192.0.2.0/25"]["left_s"] <= 3600
        assert entries["192.0.2.0/25"]["holders"][0]["note"] == "abroad"
        assert json.loads(geoweir("-j", "refresh", "--places").stdout)["changed"] == 0
        assert json.loads(geoweir("-j", "refresh", "--entries", "--policy").stdout)["names"] == []

    @pytest.mark.parametrize("entries, sentence", [(SMALLER, "shrink"), (OWN, "would now cut off 10.77.0."), (None, "not a MaxMind database"),
                                                   ({"192.0.2.0/24": "country FR"}, "no prefix of country DE")])
    def test_what_is_refused_changes_nothing(self, on, geo, geoweir, entries, sentence):
        geoweir("block", "country", "DE", "asn", "64501")
        before = blocked(on)
        if entries:
            geo.write("country.mmdb", entries)
        else:
            geo.path.joinpath("country.mmdb").write_bytes(b"damaged")
        done = geoweir("-j", "refresh", check=False)
        rows = {row["name"]: row for row in json.loads(done.stdout)["names"]}
        assert done.returncode == 2 and sentence in rows["country DE"]["error"]
        assert blocked(on) == before


class TestAgent:
    def problems(self, weir):
        agent = json.loads(weir("-j", "status", check=False).stdout)["agent"]
        return next(part["problems"] for part in agent["parts"] if part["name"] == "places")

    def test_entries_follow_the_database(self, pair, on, geo, geoweir):
        agent = on.run("--geo", str(geo))
        geoweir("block", "country", "DE")
        geo.write("country.mmdb", WIDER)
        until(lambda: blocked(on) == AFTER, seconds=10, what="the new prefix")
        assert pair.passes(udp(src="192.0.2.9"), udp(src=SOURCE4)) == [False, False]
        geo.write("country.mmdb", COUNTRIES)
        until(lambda: blocked(on) == BEFORE, seconds=10, what="its end")
        assert "country DE: 1 prefix added, 0 removed" in agent.said() and not self.problems(on)

    def test_a_change_without_an_agent_is_made_up_for(self, on, geo, geoweir):
        geoweir("block", "country", "DE")
        geo.write("country.mmdb", WIDER)
        on.run("--geo", str(geo))
        until(lambda: blocked(on) == AFTER, seconds=10, what="the new prefix")

    def test_a_database_that_shrinks(self, on, geo, geoweir):
        geoweir("block", "country", "DE")
        agent = on.run("--geo", str(geo))
        geo.write("country.mmdb", SMALLER)
        until(lambda: self.problems(on), seconds=10, what="the alarm")
        assert "shrink" in self.problems(on)[0] and "shrink" in on("status", check=False).stdout
        geo.write("country.mmdb", {**SMALLER, "203.0.113.0/24": "country FR"})  # as bad as before
        geoweir("block", "192.0.2.77")
        assert blocked(on) == BEFORE | {"192.0.2.77"}
        geoweir("block", "country", "DE")  # the operator accepts it
        assert blocked(on) == set(SMALLER) | {"192.0.2.77"}
        until(lambda: not self.problems(on), seconds=30, what="the end of the alarm")
        assert agent.said().count("shrink") == 1

    def test_a_database_that_is_gone_and_comes_back(self, on, geo, geoweir):
        geoweir("block", "country", "DE")
        agent = on.run("--geo", str(geo))
        kept = geo.path / "country.mmdb"
        kept.rename(geo.path / "elsewhere")
        until(lambda: self.problems(on), seconds=10, what="the alarm")
        assert blocked(on) == BEFORE
        geo.write("another.mmdb", WIDER)  # a file that was not there before
        until(lambda: blocked(on) == AFTER, seconds=5, what="the new prefix")
        assert not self.problems(on) and "follows its database again" not in agent.said()


class TestPolicyInEffect:
    """The agent follows the databases of the active policy, whichever file that came from."""

    NEW = "192.0.2.9"

    def follows(self, pair):
        until(lambda: pair.passes(udp(src=self.NEW), udp(src=SOURCE4)) == [False, True], 20, "the new prefix")

    @pytest.mark.parametrize("first", ["policy", "agent"])
    def test_without_a_file(self, pair, on, apply, geo, tmp_path, first):
        if first == "policy":
            apply(SET, "--geo", geo)
        agent = on.run("--geo", str(geo))
        if first == "agent":
            apply(SET, "--geo", geo)
        (tmp_path / "lab.weir").write_text("this is not to be applied\n")
        geo.write("country.mmdb", {"192.0.2.0/24": "country DE"})
        self.follows(pair)
        geo.path.joinpath("country.mmdb").write_bytes(b"damaged")
        until(lambda: "the last good answer" in agent.said(), 20)
        self.follows(pair)
        assert not on.json("status")["alarms"]

    def test_a_change_without_an_agent_is_made_up_for(self, pair, on, apply, geo):
        apply(SET, "--geo", geo)
        geo.write("country.mmdb", {"192.0.2.0/24": "country DE"})
        on.run("--geo", str(geo))
        self.follows(pair)

    def test_what_has_not_changed_writes_nothing(self, on, apply, geo):
        apply(SET, "--geo", geo)
        before = programs(on), on("history").stdout
        agent = on.run("--geo", str(geo), "-v")
        until(lambda: agent.said().count("unchanged: ") == 1, 20)
        geo.write("country.mmdb", COUNTRIES)
        until(lambda: agent.said().count("unchanged: ") == 2, 20)
        assert (programs(on), on("history").stdout) == before

    def test_the_file_of_the_agent_is_in_effect(self, pair, on, apply, geo):
        """One change, one apply."""
        agent = on.run(apply.write(SET), "--geo", str(geo))
        before = len(on.json("history")["revisions"])
        geo.write("country.mmdb", {"192.0.2.0/24": "country DE"})
        self.follows(pair)
        geo.write("country.mmdb", COUNTRIES)
        until(lambda: pair.passes(udp(src=self.NEW)) == [True], 20)
        assert len(on.json("history")["revisions"]) <= before + 2
        assert not on.json("status")["alarms"] and agent.said().count("applied ") == 2

    def test_a_file_that_waits_for_a_database(self, pair, on, apply, geo):
        """Its country is in none: it is applied as soon as that is in one."""
        apply(SET, "--geo", geo)
        path = apply.folder / "own.weir"
        path.write_text("interface near0\nset more { country JP }\ndrop from @more\n")
        on.run(path, "--geo", str(geo))
        until(lambda: any("no prefix of country JP" in one or "has errors" in one for one in on.json("status", status=2)["alarms"]))
        geo.write("country.mmdb", {"192.0.2.0/24": "country JP", "198.51.100.0/24": "country DE"})
        until(lambda: pair.passes(udp(src=self.NEW), udp(src=SOURCE4)) == [False, True], 9, "its apply")
        until(lambda: not on.json("status")["alarms"])


class TestPage:
    """docs/countries.md: its script fetches databases, and its policy is valid with them."""

    @pytest.fixture(name="blocks")
    def indented(self):
        text = (ROOT / "docs/countries.md").read_text()
        return [re.sub("^    ", "", block, flags=re.MULTILINE) for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)]

    def test_the_script_replaces_both_databases(self, on, blocks, tmp_path):
        (script,) = [block.lstrip("\n") for block in blocks if "#!/bin/sh" in block]
        folder, programs_ = tmp_path / "GeoIP", tmp_path / "bin"
        programs_.mkdir()
        for kind, entries in ("country", COUNTRIES), ("asn", NETWORKS):
            (tmp_path / f"{kind}.gz").write_bytes(gzip.compress(mmdb.build(entries)))
        (programs_ / "curl").write_text(
            f'#!/bin/sh\nfor last; do :; done\necho "$last" >>{tmp_path}/asked\n'
            f'case $last in *country*) cat {tmp_path}/country.gz ;; *) cat {tmp_path}/asn.gz ;; esac\n')
        (programs_ / "curl").chmod(0o755)
        (tmp_path / "update").write_text(script.replace("/var/lib/GeoIP", str(folder)))
        subprocess.run(["sh", tmp_path / "update"], check=True, env={**os.environ, "PATH": f"{programs_}:{os.environ['PATH']}"})
        assert {path.name for path in folder.iterdir()} == {"country.mmdb", "asn.mmdb"}
        asked = (tmp_path / "asked").read_text().split()
        assert all(re.fullmatch(r"https://download\.db-ip\.com/free/dbip-(country|asn)-lite-\d{4}-\d\d\.mmdb\.gz", one) for one in asked)
        assert "country DE" in on("block", "country", "DE", "--geo", folder).stdout

    def test_the_policy_is_valid(self, on, blocks, geo, tmp_path):
        (policy,) = [block for block in blocks if "default drop" in block]
        geo.write("country.mmdb", {**COUNTRIES, "192.0.2.128/25": "country AT", "192.0.2.0/25": "country CH"})
        (tmp_path / "page.weir").write_text(policy.replace("eth0", "near0"))
        assert "is valid" in on("check", tmp_path / "page.weir", "--geo", geo).stdout
