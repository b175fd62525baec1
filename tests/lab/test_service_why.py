# SPDX-License-Identifier: GPL-2.0-only
"""weir service: the last check of a backend, how often its state changed, and what on this host drops its answers."""

import pytest

from labnet import until

POLICY = """interface near0
service www {
    vip 192.0.2.10
    proto tcp
    port 80
    mode ipip
    source 10.77.0.77
    check tcp every 300ms timeout 250ms rise 1 fall 1
    backend 10.77.0.2
}
"""
BACKEND = "10.77.0.2"


@pytest.fixture(name="checked")
def checked_backend(weir, tmp_path):
    path = tmp_path / "near.weir"
    path.write_text(POLICY)
    weir("apply", path)
    weir.run(path)

    def backend():
        return weir.json("service")["services"][0]["backends"][0]

    until(lambda: backend()["health"] == "ok", what="a good check")
    return backend


def test_the_last_check_and_changes(weir, checked):
    until(lambda: checked().get("checks", 0) >= 2, what="its record")
    backend = checked()
    assert backend["check_good"] and 0 < backend["check_us"] < 250000 and backend["check_age_s"] <= 6
    assert "dropped_by" not in backend
    before = backend["changes_24h"]
    weir("block", BACKEND, "--force")
    until(lambda: not checked()["check_good"] and checked()["changes_24h"] == before + 1, what="a change")
    assert checked()["health_s"] <= 10
    weir("unblock", BACKEND)
    until(lambda: checked()["check_good"] and checked()["changes_24h"] == before + 2, what="another change")


def test_an_entry_that_drops_the_answers_is_named(weir, checked):
    weir("block", "10.77.0.0/30", "--force", "--note", "by mistake")
    until(lambda: "10.77.0.0/30" in checked().get("dropped_by", ""), what="the entry")
    backend = checked()
    assert "no answer" in backend["health"] and f"this host drops the answers: {backend['dropped_by']}" in backend["health"]
    assert backend["dropped_by"] in " ".join(weir("service", "--wide").stdout.split("\n"))
    weir("unblock", "10.77.0.0/30")
    until(lambda: checked()["health"] == "ok", what="the end of the failure")
    assert "dropped_by" not in checked()


def test_a_rule_that_drops_the_answers_is_named(weir, checked):
    weir("rule", "add", "--name", "flood", "--force", f"drop proto tcp from {BACKEND} port 80")
    until(lambda: "flood" in checked().get("dropped_by", ""), what="the rule")


def test_a_failure_for_another_reason(weir, tmp_path):
    path = tmp_path / "near.weir"
    path.write_text(POLICY.replace("port 80\n", "port 81\n"))
    weir("apply", path)
    weir.run(path)

    def backend():
        return weir.json("service")["services"][0]["backends"][0]

    until(lambda: "connection refused" in backend()["health"], what="a refused connection")
    assert "dropped_by" not in backend()
