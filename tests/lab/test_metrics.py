# SPDX-License-Identifier: GPL-2.0-only
"""weir metrics: Prometheus reads it, and it says what weir stats and weir status say."""
import re
import shutil
import subprocess

import pytest

from labnet import ROOT

BLOCKED = "203.0.113.10"
POLICY = 'interface near0\n"odd" drop proto udp to port 9999\nservice www {{\n vip 192.0.2.10\n proto tcp\n port 80\n mode ipip\n source 10.77.0.77\n backend {far}\n}}\n'


def read(text):
    """{(name, labels): value}; each line is a comment or a sample."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\} (\d+(?:\.\d{3})?)', line)
        assert match, line
        key = match[1], frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2]))
        assert key not in found, line
        found[key] = float(match[3])
    return found


@pytest.fixture(name="read_now")
def reader(weir):
    return lambda: read(weir("metrics").stdout)


def value(metrics, name, **labels):
    """Of the one sample with these labels."""
    found = [number for (which, has), number in metrics.items() if which == name and set(labels.items()) <= has]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def test_counters_and_states(pair, weir, tmp_path, read_now):
    path = tmp_path / "p.weir"
    path.write_text(POLICY.format(far=pair.far4))
    weir("apply", path)
    weir("block", BLOCKED, "--origin", "ban")
    before = read_now()
    assert pair.free(BLOCKED) == [False]
    counted = {(one["verdict"], one["reason"]): one["packets"] for one in weir.json("stats", "-i")["counters"]}
    now = read_now()
    for (verdict, reason), packets in counted.items():
        assert value(now, "weir_packets_total", interface="near0", verdict=verdict, reason=reason) >= packets > 0
    assert sum(number for (name, has), number in now.items() if name == "weir_packets_total" and ("verdict", "drop") in has) >= 1
    assert value(now, "weir_origin_entries", origin="ban", verb="block") == 1
    assert value(now, "weir_origin_packets", origin="ban") > value(before, "weir_origin_packets", origin="ban")
    assert value(now, "weir_interface_attached", interface="near0") == 1
    assert value(now, "weir_service_backends", service="www", state="up") == 1
    assert value(now, "weir_alarms") == len(weir.json("status", status=2 if weir("status", check=False).returncode else 0)["alarms"])
    assert {name for name, _ in now} >= {"weir_build_info", "weir_table_entries", "weir_table_size", "weir_rule_packets_total"}


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
def test_promtool_finds_nothing(on):
    done = subprocess.run(["promtool", "check", "metrics"], input=on("metrics").stdout, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_without_an_instance(weir):
    assert "does not exist" in weir.fails(1, "metrics")
    assert "one form only" in weir("-j", "metrics", check=False).stderr


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
def test_alerts(on):
    folder = ROOT / "docs/monitoring"
    for words in ("check", folder / "weir.rules.yml"), ("test", folder / "weir.rules.test.yml"):
        done = subprocess.run(["promtool", words[0], "rules", words[1]], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    # Each metric that an alert looks at exists under this name.
    named = set(re.findall(r"\bweir_\w+", re.sub(r"\$labels\.\w+|\(weir_instance", "", (folder / "weir.rules.yml").read_text())))
    source = (ROOT / "ctl/cmd/metrics.c").read_text()
    assert named and all(f'"{name}"' in source or name == "weir_build_info" for name in named - {"weir_instance"}), named
    assert on("metrics").stdout
