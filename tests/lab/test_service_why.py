# SPDX-License-Identifier: GPL-2.0-only
"""weir service: the last check of a backend, how often its state changed, and what on this host drops its answers."""

import socket

import pytest

from labnet import socket_in, until

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
    entry = backend["dropped_by"].partition(", ")[0]  # packets are counted after it
    assert "overlay block" in entry and f"drops the answers: {entry}" in weir("service", "--wide").stdout
    weir("unblock", "10.77.0.0/30")
    until(lambda: checked()["health"] == "ok", what="the end of the failure")
    assert "dropped_by" not in checked()


def test_a_rule_that_drops_the_answers_is_named(weir, checked):
    weir("rule", "add", "--name", "flood", "--force", f"drop proto tcp from {BACKEND} port 80")
    until(lambda: "flood" in checked().get("dropped_by", ""), what="the rule")


def start(weir, tmp_path, text):
    """The agent with this policy; returns the backend as weir service has it."""
    path = tmp_path / "near.weir"
    path.write_text(text)
    weir("apply", path)
    weir.run(path)
    return lambda: weir.json("service")["services"][0]["backends"][0]


@pytest.mark.parametrize("rule", ["drop flags syn,ack", f"drop from {BACKEND} flags syn,ack", "default drop\npass flags rst/rst"])
def test_a_failure_with_an_answer(weir, tmp_path, rule):
    """A refused connection is an answer, also if this host would drop another one."""
    backend = start(weir, tmp_path, POLICY.replace("port 80\n", "port 81\n") + rule + "\n")
    until(lambda: "connection refused" in backend()["health"], what="a refused connection")
    assert "dropped_by" not in backend()


@pytest.fixture(name="silent")
def silent_server(pair):
    """A port that accepts connections and is silent then."""
    with socket_in(pair.far_netns, socket.AF_INET, socket.SOCK_STREAM) as server:
        server.bind((BACKEND, 0))
        server.listen(64)
        yield POLICY.replace("check tcp", f'check http "/" port {server.getsockname()[1]}')


@pytest.fixture(name="tracking")
def nft_tracking(pair):
    """The kernel of the near side tracks connections."""
    chain = "type filter hook input priority 0; ct state new counter;"
    pair.near(["nft", "-f", "-"], input=f"table inet lab {{ chain in {{ {chain} }}\n}}\n")
    yield
    pair.near(["nft", "delete", "table", "inet", "lab"])


def test_a_silent_server_and_established(weir, tmp_path, silent, tracking):  # pylint: disable=unused-argument
    """Its answers belong to connections, and pass."""
    backend = start(weir, tmp_path, silent + "default drop\npass established\n")
    until(lambda: "no answer within" in backend()["health"], what="a silent server")
    assert "dropped_by" not in backend()


def test_a_silent_server_and_the_default(weir, tmp_path, silent):
    backend = start(weir, tmp_path, silent + "default drop\n")
    until(lambda: "default drop" in backend().get("dropped_by", ""), what="the default")


def test_a_bypass(weir, tmp_path, silent):
    """An entry drops nothing then."""
    backend = start(weir, tmp_path, silent)
    weir("block", BACKEND, "--force")
    until(lambda: BACKEND in backend().get("dropped_by", ""), what="the entry")
    weir("bypass", "--for", "5m")
    assert "dropped_by" not in backend() and "no answer within" in backend()["health"]
    weir("bypass", "--off")
    assert BACKEND in backend()["dropped_by"]
