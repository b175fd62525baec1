# SPDX-License-Identifier: GPL-2.0-only
"""Addresses of the lab that tests block, and which of them get through."""

BLOCKED4, BLOCKED6 = "203.0.113.10", "2001:db8:113::10"
OTHER4, OTHER6 = "203.0.113.20", "2001:db8:113::20"
SHARED4, SHARED6 = "203.0.113.30", "2001:db8:113::30"
MANY = [f"198.51.100.{i}" for i in range(1, 5)] + [f"2001:db8:100::{i}" for i in range(1, 5)]
HALF_SECOND = ("-W0.5",)


def nothing(pair, *addresses):
    """True if no packet arrives from these addresses."""
    return not any(pair.free(*addresses))


def everything(pair, *addresses):
    return all(pair.free(*addresses))


def answers(pair, host4, host6):
    """What works with a host: [ping4, ping6, curl4, curl6]."""
    return [
        pair.ping4(host4, *HALF_SECOND), pair.ping6(host6, *HALF_SECOND),
        pair.curl4(host4), pair.curl6(host6),
    ]
