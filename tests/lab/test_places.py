# SPDX-License-Identifier: GPL-2.0-only
"""Countries and autonomous systems, in policies and as entries, from databases that the test makes."""

import pytest

import mmdb
from policylab import OTHER4, OTHER6, SOURCE4, SOURCE6, Policies, udp

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
        ("country DE", "/nowhere.mmdb", "cannot read '/nowhere.mmdb': ENOENT"),
        ("country DE", "/var/empty-of-databases", "cannot read"),
    ])
    def test_what_cannot_be_found_is_refused(self, apply, geo, policy, database, sentence):
        shown = apply.fails(1, f"set a {{ {policy} }}\ndrop from @a\n", "--geo", database or geo)
        assert sentence in shown and "lab.weir:2" in shown

    def test_an_unknown_code_is_refused_with_the_nearest(self, apply, geo):
        shown = apply.fails(1, "default drop\nset a { country UK }\npass from @a\n", "--geo", geo)
        assert "did you mean GB, United Kingdom?" in shown
