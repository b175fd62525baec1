# SPDX-License-Identifier: GPL-2.0-only
"""weir doctor: each finding with its level and the command that fixes it."""


def findings(weir, *words):
    """{(about, level): [(text, mend)]}; exit status 2 if and only if there is a problem."""
    done = weir("-j", "doctor", *words, check=False)
    found = weir.json("doctor", *words, status=done.returncode)["findings"]
    assert (done.returncode == 2) == any(f["level"] == "problem" for f in found)
    grouped = {}
    for f in found:
        grouped.setdefault((f["about"], f["level"]), []).append((f["text"], f["mend"]))
    return grouped


def said(found, about, level, text):
    """The command that fixes the finding with this text; an error without such a finding."""
    hits = [mend for words, mend in found.get((about, level), []) if text in words]
    assert hits, found
    return hits[0]


def test_a_healthy_machine(on):
    found = findings(on)
    assert not [about for about, level in found if level == "problem"]
    said(found, "kernel", "ok", "runs XDP")
    said(found, "jit", "ok", "compiled")
    said(found, "bpffs", "ok", "/sys/fs/bpf")
    said(found, "near0", "ok", "driver veth, mtu 1500")
    said(found, "near0", "ok", "attached in native mode")
    text = on("doctor").stdout
    assert all(line.split()[0] in ("ok", "note", "problem") for line in text.splitlines())


def test_nothing_is_attached(weir):
    assert said(findings(weir), "instance", "note", "not attached to any interface") == "weir attach IFACE"


def test_veth_hides_tags(on):
    assert "txvlan off" in said(findings(on, "near0"), "near0", "note", "hides VLAN tags")


def test_generic_mode(weir):
    weir("attach", "near0", "--mode", "generic")
    found = findings(weir, "near0")
    said(found, "near0", "note", "generic mode")
    assert said(found, "near0", "note", "GRO may merge packets") == "ethtool -K near0 gro off"


def test_the_program_was_taken_away(on):
    on.cut()
    assert said(findings(on), "near0", "problem", "not attached") == "weir attach near0"


def test_another_program(pair, weir):
    pair.attach_foreign()
    try:
        said(findings(weir, "near0"), "near0", "note", "carries another XDP program: 'lab_pass'")
    finally:
        pair.detach_foreign()


def test_devices_that_are_down_or_of_the_wrong_kind(pair, weir):
    pair.link("add", "br7", "type", "bridge")
    pair.near(["ip", "tuntap", "add", "tun7", "mode", "tun"])
    try:
        found = findings(weir, "br7", "tun7")
        assert said(found, "br7", "note", "is down") == "ip link set br7 up"
        said(found, "br7", "note", "a bridge sees only packets for this host")
        said(found, "tun7", "problem", "not an Ethernet device")
    finally:
        pair.link("del", "br7")
        pair.link("del", "tun7")


def test_an_unknown_interface(weir):
    done = weir("doctor", "naer0", check=False)
    assert done.returncode == 1
    assert "no interface 'naer0' (did you mean 'near0'?)" in done.stderr
