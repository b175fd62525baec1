# SPDX-License-Identifier: GPL-2.0-only
"""Devices are not their names: what becomes of them while Weir is there, and as many as are promised."""

from labnet import run

INTERFACES = 63
MULTIPLIER = 0x9E3779B1  # of ctl/datapath/iface_table.c


def worst_indexes():
    """Equal in their last eight bits, and in their place under the first multiplier."""
    place = (7 * MULTIPLIER & 0xFFFFFFFF) >> 24
    indexes = range(7 + 65536, 1 << 31, 256)
    same = (one for one in indexes if (one * MULTIPLIER & 0xFFFFFFFF) >> 24 == place)
    return [next(same) for _ in range(INTERFACES)]


def test_as_many_interfaces_as_promised_whatever_their_indexes(lab, weir_on):
    pair = lab()
    weir = weir_on(pair)
    names = [f"many{n}" for n in range(INTERFACES)]
    near, far = f"netns {pair.near_netns}", f"netns {pair.far_netns}"
    lines = [f"link add {name} index {index} {near} up type veth peer name {name} {far}"
             for name, index in zip(names, worst_indexes())]
    run(["ip", "-batch", "-"], input="\n".join(lines))
    run(["ip", "-n", pair.far_netns, "-batch", "-"],
        input="\n".join(f"link set {name} up" for name in names))
    assert len(weir.json("attach", *names)["interfaces"]) == INTERFACES
    assert "has 63 interfaces already" in weir.fails(3, "attach", "near0")
    weir("block", "192.0.2.7")
    for name in names:
        pair.far_device = name
        pair.send_from_far(pair.udp("192.0.2.7"))
    counters = weir.json("stats", "--interfaces")["counters"]
    drops = {row["interface"]: row["packets"] for row in counters if row["reason"] == "block-from"}
    assert drops == {name: 1 for name in names}
    weir("detach", *names[1::2])
    weir("attach", *names[1::4])
    pair.send_from_far(pair.udp("192.0.2.7"))
    weir("detach")
    assert set(pair.xdp_names().values()) == {None}
