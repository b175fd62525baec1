# SPDX-License-Identifier: GPL-2.0-only
"""Quick rules of an instance, and a policy that they precede."""
import json

from policylab import udp
from statefile import read_rows, write_rows

SOURCE = "203.0.113.7"
POLICY = """set ban dynamic max 100
define web = 80, 443
"a" drop proto tcp to any port 77
"limit" drop proto udp to any port 55 over 1/h burst 2
expect drop via "a" tcp from 203.0.113.1 to 10.77.0.1 port 77
expect pass udp from 203.0.113.1 to 10.77.0.1 port 40
"""


def passes(on, port=9, src=SOURCE):
    return on.pair.passes(udp(port, src))[0]


def listed(on):
    return on.json("rule", "list")["rules"]


def ids(on):
    return [rule["id"] for rule in listed(on)]


def revision(on):
    return on.json("status")["revision"]


def alarms(on):
    return json.loads(on("-j", "status", check=False).stdout)["alarms"]


def later(on, seconds):
    """Makes all quick rules older."""
    path = on.state / "rules"
    rows = read_rows(path, "rule")
    for row in rows:
        if "until_s" in row:
            row["until_s"] -= seconds
    write_rows(path, "rule", rows)
