# SPDX-License-Identifier: GPL-2.0-only
"""Two balancers on equal-cost routes: with the same configuration they decide the same, so either may leave
and return."""

import contextlib
import time

import pytest
from balancerlab import FULL, crowd_of, failed, policy, running_node

COUNT, SECONDS, RATE = (500, 40, 6000) if FULL else (100, 7, 6000)
BALANCER = {"backends": 5, "nodes": 2}
IDLE_S = 10 if FULL else 4
LONG_S = 10 if FULL else 20  # limit for events that must happen before the end, also on a busy machine


@pytest.fixture(name="nodes")
def two_nodes(balancer, tmp_path, request):
    """Both apply the same policy, one from a file in another order. The parameter is `idle`."""
    idle_s = getattr(request, "param", IDLE_S)
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(running_node(balancer, f"balancer{i}")) for i in (1, 2)]
        for i, node in enumerate(nodes):
            path = tmp_path / f"{i}.weir"
            path.write_text(policy(balancer, [4, 2, 1, 3] if i else [1, 2, 3, 4], f"idle {idle_s}s",
                                   "pins 65536", weights={2: 3}))
            node("apply", path)
        yield nodes
        balancer.route("reset")


def packets(node):
    return node.service()["packets"]


def leave_and_return(balancer, nodes, seconds=1.0):
    balancer.route("balancer2")
    time.sleep(seconds)
    before = packets(nodes[0])
    time.sleep(0.3)
    assert packets(nodes[0]) == before, "the first node still gets packets"
    balancer.route("reset")
    time.sleep(seconds)


def test_same_policy_same_ring(nodes):
    one, two = (node.service() for node in nodes)
    assert one["fingerprint"] == two["fingerprint"]
    shares = [{row["backend"]: row["slots"] for row in each["backends"]} for each in (one, two)]
    assert shares[0] == shares[1]
    nodes[0]("drain", "10.78.2.1")
    assert nodes[0].service()["fingerprint"] != two["fingerprint"]
    nodes[1]("drain", "10.78.2.1")
    assert nodes[0].service()["fingerprint"] == nodes[1].service()["fingerprint"]


def test_a_node_leaves_and_returns(balancer, nodes):
    """With an unchanged pool nothing is lost."""
    with crowd_of(balancer, COUNT, SECONDS * RATE, RATE, 60, 600) as crowd:
        time.sleep(0.5)
        before = [packets(node) for node in nodes]
        time.sleep(1)
        assert all(packets(node) > was for node, was in zip(nodes, before)), "a node gets no packets"
        for _ in range(5 if FULL else 1):
            leave_and_return(balancer, nodes)
        results = crowd.results()
    print(f"\n{len(results)} connections over two nodes, {sum(failed(results).values())} lost")
    assert not failed(results), failed(results)


def drain(nodes):
    """The share of slots that this changes, equal on both."""
    changed = [node.json("drain", "10.78.2.2")["slots_changed"] for node in nodes]
    assert changed[0] == changed[1]
    return changed[0] / nodes[0].service()["slots"]


@pytest.mark.parametrize("nodes", [LONG_S], indirect=True)
def test_a_node_leaves_while_the_pool_changes(balancer, nodes):
    """While slots are changing, both know the former owner, and flows need no pins."""
    with crowd_of(balancer, COUNT, SECONDS * RATE, RATE) as crowd:
        share = drain(nodes)
        leave_and_return(balancer, nodes, 0.7)
        results = crowd.results()
    lost = failed(results)
    print(f"\n{COUNT} connections, {share:.0%} of the slots changed; a node left and returned within half "
          f"of idle: {sum(lost.values())} lost")
    assert not lost, lost


def test_a_node_leaves_after_the_pool_changed(balancer, nodes):
    """The worst moment: the change has ended, and only one node knows the flows that stayed."""
    with crowd_of(balancer, COUNT, SECONDS * RATE, RATE) as crowd:
        share = drain(nodes)
        time.sleep(IDLE_S + 0.3)
        leave_and_return(balancer, nodes, 0.7)
        results = crowd.results()
    lost = sum(failed(results).values())
    print(f"\n{COUNT} connections, {share:.0%} of the slots changed; a node left and returned after idle: "
          f"{lost} lost")
    assert lost < COUNT * (share + 0.15)
