# SPDX-License-Identifier: GPL-2.0-only
"""weir import: Weir drops no packet that the original rules accept in the kernel."""

import contextlib
import json
import os
import pathlib
import random
import re
import socket
import struct
import subprocess

import pytest

from labnet import BUILD, Weir, numbers, run, socket_in

RULESETS = pathlib.Path(__file__).parent / "rulesets"
NAMES = sorted(path.name for path in RULESETS.iterdir() if path.suffix in (".nft", ".save"))
FRAMES = int(os.environ.get("IMPORT_FRAMES", "600"))  # 10000 for the whole comparison
SEEDS, FIRST = int(os.environ.get("IMPORT_SEEDS", "4")), int(os.environ.get("IMPORT_FIRST", "1"))
NEAR_MAC, FAR_MAC = bytes.fromhex("027700000001"), bytes.fromhex("027700000002")
SELF = {4: ["10.77.0.1"], 6: ["fd77::1"]}
OTHERS = {4: ["192.0.2.10", "192.0.2.77", "172.17.0.2", "172.17.0.3", "203.0.113.1"], 6: ["2001:db8:99::1"]}
DEVICES = ["br-lan", "docker0"]  # others that rulesets name; they receive nothing
NETS = ["198.51.100.0/24", "203.0.113.0/25", "{ 198.51.100.9, 203.0.113.0/26 }", "203.0.113.9"]
MACS = ["02:77:00:00:00:02", "02:77:00:00:00:03", "{ 02:77:00:00:00:02, 02:77:00:00:00:05 }", "@stations",
        "02:77:00:00:00:01-02:77:00:00:00:04"]
PAIRS = [("tcp", "ip daddr . tcp dport @open"), ("tcp", "ip saddr . tcp sport @stay"), ("udp", "ip saddr . udp sport @stay"),
         ("tcp", "tcp dport . ip daddr { 80 . 10.77.0.1, 443 . 10.77.0.1, 80 . 192.0.2.10 }"),
         ("any", "meta l4proto { tcp, udp } ip daddr . th dport @open"), ("udp", "ip daddr . th dport @open udp sport < 35000"),
         ("tcp", "ip daddr . tcp dport @open ip daddr . tcp dport { 10.77.0.1 . 22-100, 192.0.2.10 . 80, 10.77.0.1 . 1000 }"),
         ("tcp", "ip saddr . tcp sport @stay ip daddr . tcp dport @open")]
IFACES = ['"near0"', '"lo"', '"br-lan"', '"near*"', '"l*"', '{ "near0", "lo" }', '"eth9"']
# What is certain, so that it is seen that Weir does not simply pass everything.
LEAST_DROPPED = {"fail2ban.nft": .3, "firewalld.nft": .2, "maps.nft": .2, "docker.save": .05, "server.save": .3,
                 "openwrt.nft": .05, "pairs.nft": .2}
LEAST_SHOWN = {"pairs.nft": .45}  # the rest of its rules have destinations


class Host:
    """near and far, joined by a pair of devices; near routes, and knows the MAC address of far."""

    near_device = "near0"

    def __init__(self, ruleset):
        self.name = f"t{os.getpid()}-{next(numbers)}"
        self.near_netns, self.far_netns = f"{self.name}-near", f"{self.name}-far"
        self.ruleset = ruleset

    def near(self, *argv, **options):
        return run(["ip", "netns", "exec", self.near_netns, *argv], **options)

    def up(self):
        for netns in self.near_netns, self.far_netns:
            run(["ip", "netns", "add", netns])
        run(["ip", "-n", self.near_netns, "link", "add", "near0", "address", "02:77:00:00:00:01", "type", "veth",
             "peer", "name", "far0", "address", "02:77:00:00:00:02", "netns", self.far_netns])
        self.near("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1",
                  "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0",
                  "net.ipv4.conf.near0.rp_filter=0", "net.ipv6.conf.near0.accept_dad=0",
                  "net.ipv4.conf.near0.send_redirects=0")
        for words in (["link", "set", "lo", "up"], ["link", "set", "near0", "up"],
                      ["addr", "add", "10.77.0.1/24", "dev", "near0"],
                      ["addr", "add", "fd77::1/64", "dev", "near0", "nodad"],
                      ["neigh", "add", "10.77.0.2", "lladdr", "02:77:00:00:00:02", "dev", "near0"],
                      ["neigh", "add", "fd77::2", "lladdr", "02:77:00:00:00:02", "dev", "near0"],
                      ["route", "add", "default", "via", "10.77.0.2"],
                      ["-6", "route", "add", "default", "via", "fd77::2"]):
            run(["ip", "-n", self.near_netns, *words])
        for name in DEVICES:
            run(["ip", "-n", self.near_netns, "link", "add", name, "type", "bridge"])
        run(["ip", "-n", self.far_netns, "link", "set", "far0", "up"])
        run(["ip", "-n", self.far_netns, "link", "set", "far0", "xdpdrv", "obj", BUILD / "lab" / "pass.bpf.o", "sec",
             "xdp.frags"])

    def load(self):
        """The original, and a record of what it accepts."""
        if self.ruleset.suffix == ".nft":
            self.near("nft", "-f", self.ruleset)
        else:
            text = self.ruleset.read_text()
            for name in set(re.findall(r"--match-set (\S+)", text)):
                self.near("ipset", "create", name, "hash:net")
                self.near("ipset", "add", name, "192.0.2.0/24")
            self.near("iptables-restore", input=text)

    def record(self, table):
        self.near("nft", "-f", "-", input=table)

    def seen(self, table, family):
        """The numbers of the packets that were recorded."""
        document = json.loads(self.near("nft", "-j", "list", "set", *table, f"seen{family}").stdout)
        elements = next(item["set"] for item in document["nftables"] if "set" in item).get("elem", [])
        return {e["elem"]["val"] if isinstance(e, dict) else e for e in elements}

    def down(self):
        for netns in self.near_netns, self.far_netns:
            run(["ip", "netns", "del", netns], check=False)


SETS = """
    set seen4 { typeof ip id; size 65536; flags dynamic; }
    set seen6 { typeof ip6 flowlabel; size 65536; flags dynamic; }
"""
ADD = "add @seen4 { ip id }\n add @seen6 { ip6 flowlabel }\n"
ACCEPTED = f"""table inet oracle {{ {SETS}
    chain input {{ type filter hook input priority 30000;\n {ADD} }}
    chain forward {{ type filter hook forward priority 30000;\n {ADD} }}
}}"""
# After XDP, before everything else.
PASSED = f"""table netdev later {{ {SETS}
    chain in {{ type filter hook ingress device near0 priority -500;\n {ADD} }}
}}"""


def random_conditions(rng, count, used=("", "")):
    """Conditions that Weir has, that it has in part, and that it lacks. nft refuses two protocols in one rule."""
    ports = rng.choice((22, 53, 80, 443, 8080, "1000-40000", "{ 22, 80, 443 }", "{ 53, 1000-2000 }"))
    op = rng.choice(("", "", "", "!= "))
    proto, family, text = rng.choice((
        ("tcp", "", f"tcp dport {op}{ports}"), ("udp", "", f"udp dport {op}{ports}"), ("tcp", "", f"tcp dport {op}@web"),
        ("any", "", f"meta l4proto {{ tcp, udp }} th dport {op}{ports}"), ("tcp", "", f"tcp sport {op}{rng.choice((1024, 30000))}"),
        ("", "ip", f"ip saddr {op}{rng.choice(NETS)}"), ("", "ip", f"ip saddr {op}@four"), ("", "ip", f"ip saddr {op}@timed"), ("", "ip", f"ip {rng.choice(('s', 'd'))}addr @short"),
        ("", "ip6", f"ip6 saddr {op}@six"), ("", "ip", f"ip daddr {op}10.77.0.1"),
        ("", "ip", "ip daddr { 10.77.0.1, 192.0.2.0/25 }"),
        *[(proto, "ip", text) for proto, text in PAIRS], ("tcp", "ip6", "ip6 daddr . tcp dport { fd77::1 . 80, fd77::1 . 443 }"),
        ("any", "", f"meta l4proto {op}{rng.choice(('tcp', 'udp', 'icmp', 'gre', '{ tcp, udp }', '{ icmp, ipv6-icmp }'))}"),
        ("any", "ip", f"ip protocol {op}{rng.choice(('tcp', 'udp', 'gre'))}"),
        ("any", "ip6", f"ip6 nexthdr {op}{rng.choice(('tcp', 'udp'))}"), ("", rng.choice(("ip", "ip6")), "nfproto"),
        ("", "", f"iifname {op}{rng.choice(IFACES)}"),
        ("", "", f"ether saddr {op}{rng.choice(MACS)}"),
        ("icmp", "ip", f"icmp type {op}{rng.choice(('echo-request', 'timestamp-request'))}"),
        ("icmp", "ip6", "icmpv6 type echo-request"), ("tcp", "", f"tcp flags & (fin|syn|rst|ack) {op or '== '}syn"),
        ("tcp", "", "tcp flags syn"), ("tcp", "", "tcp flags & (fin|psh) == 0"),
        ("", "", f"ct state {op}{rng.choice(('established', 'related', 'new', 'invalid', '{ established, related }'))}"),
        ("", "", f"ct state {rng.choice(('!= established', '!= { established, related }', '! established,related'))}"),
        ("", "ip", f"ip ttl {rng.choice(('< ', '> ', ''))}{rng.choice((20, 32, 63, 64))}"),
        ("", "ip", f"ip dscp {op}{rng.choice(('cs1', 'af11'))}"),
        ("", "", f"meta length {rng.choice(('< ', '> '))}{rng.choice((60, 500))}"), ("", "", f"meta mark {op}1"),
        ("", "", f"limit rate {rng.choice(('', 'over '))}{rng.choice((2, 20))}/minute burst {rng.choice((1, 9))} packets"),
        ("", "ip", "ip frag-off & 0x1fff != 0"), ("", "", "meta pkttype unicast"), ("", "", "fib daddr type local"),
    ))
    if not count:
        return ""
    if (proto and used[0]) or (family and used[1] and family != used[1]):
        return random_conditions(rng, count, used)
    text = f"meta nfproto {'ipv4' if family == 'ip' else 'ipv6'}" if text == "nfproto" else text
    return f"{text} {random_conditions(rng, count - 1, (proto or used[0], family or used[1]))}".rstrip()


def random_rules(rng, n, calls, verdicts):
    lines = []
    for _ in range(n):
        conditions = random_conditions(rng, rng.choice((0, 1, 1, 1, 2, 2, 3)))
        verdict = rng.choice(verdicts + [f"{how} {name}" for name in calls for how in ("jump", "jump", "goto")])
        if rng.random() < .12 and len(verdicts) > 3:
            a, b = (rng.choice(["accept", "drop", "continue", "return"] + [f"jump {name}" for name in calls]) for _ in "ab")
            last = rng.choice((", * : drop", ", * : accept", ""))
            conditions = rng.choice(("", "ip saddr 198.51.100.0/24", "meta mark 1"))
            verdict = rng.choice((f"tcp dport vmap {{ 22 : {a}, 80-443 : {b}{last} }}",
                                  f"ip saddr vmap {{ 198.51.100.0/25 : {a}, 203.0.113.9 : {b} }}",
                                  f"meta l4proto vmap {{ tcp : {a}, udp : {b} }}",
                                  f"ct state vmap {{ established : accept, invalid : {a}, new : {b} }}"))
        lines.append(f"        {conditions} {verdict}".rstrip())
    return "\n".join(lines)


def random_ruleset(rng):
    """A table with chains that call later ones, one or two base chains of a hook, and sometimes NAT."""
    text = """table inet t {
    set four { type ipv4_addr; flags interval; elements = { 198.51.100.0/26, 203.0.113.9, 203.0.113.100-203.0.113.150 } }
    set six { type ipv6_addr; flags interval; elements = { 2001:db8:113::/64 } }
    set timed { type ipv4_addr; flags timeout; elements = { 198.51.100.40, 203.0.113.70 timeout 1h } }
    set short { type ipv4_addr; flags timeout; timeout 2h; elements = { 203.0.113.9, 198.51.100.130, 10.77.0.1 } }
    set stations { type ether_addr; elements = { 02:77:00:00:00:03, 02:77:00:00:00:09 } }
    set open { type ipv4_addr . inet_service; flags interval; elements = { 10.77.0.1 . 22, 10.77.0.1 . 79-1000, 192.0.2.10 . 80, 192.0.2.64/26 . 443 } }
    set stay { type ipv4_addr . inet_service; flags timeout; elements = { 198.51.100.9 . 1024, 203.0.113.9 . 30000, 203.0.113.9 . 40000, 198.51.100.40 . 40000, 203.0.113.70 . 1024 timeout 1h } }
    set web { type inet_service; flags interval; elements = { 22, 80, 443, 1000-1100 } }
"""
    verdicts = ["accept", "accept", "drop", "drop", "reject", "return", "counter", "log"]
    for i in range(4):
        later = [f"sub{k}" for k in range(i)]
        text += f"    chain sub{i} {{\n{random_rules(rng, rng.randrange(4), later, verdicts)}\n    }}\n"
    subs = [f"sub{k}" for k in range(4)]
    for hook in "input", "forward":
        for i in range(rng.choice((1, 1, 1, 2))):
            text += (f"    chain {hook}{i} {{\n        type filter hook {hook} priority {i}; policy "
                     f"{rng.choice(('accept', 'drop'))};\n{random_rules(rng, rng.randrange(1, 9), subs, verdicts)}\n    }}\n")
    if rng.random() < .4:
        nat = ["dnat ip to 192.0.2.77", "redirect to :80", "accept", "return"]
        lines = [f"        meta nfproto ipv4 meta l4proto tcp {random_conditions(rng, 1, ('tcp', 'ip'))} {rng.choice(nat)}" for _ in range(3)]
        text += "    chain pre {\n        type nat hook prerouting priority -100;\n" + "\n".join(lines) + "\n    }\n"
        text += "    chain post {\n        type nat hook postrouting priority 100;\n        masquerade\n    }\n"
    return text + "}\n"


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def transport(rng, family, src, dst, proto, ports):
    """A segment of the protocol, with its checksum."""
    sport, dport = ports
    pad = bytes(rng.choice((0, 0, 0, 4, 90, 1100)))
    at = {6: 16, 17: 6, 1: 2, 58: 2}.get(proto)
    if proto == 6:
        flags = rng.choice((2, 2, 2, 2, 2, 16, 24, 17, 4, 0, 41, 3))
        body = struct.pack("!HHIIBBHHH", sport, dport, rng.getrandbits(32), 0, 0x50, flags, 1024, 0, 0) + pad
    elif proto == 17:
        body = struct.pack("!HHHH", sport, dport, 8 + len(pad), 0) + pad
    elif proto in (1, 58):
        kind = rng.choice((8, 8, 8, 13, 0) if proto == 1 else (128, 128, 128, 129))
        body = struct.pack("!BBHHH", kind, 0, 0, sport, 1) + pad
    else:
        return bytes(rng.getrandbits(8) for _ in range(24)) if proto != 47 else bytes(4) + pad
    head = b"" if proto == 1 else src + dst + struct.pack("!IBBBB", len(body), 0, 0, 0, proto) if family == 6 else (
        src + dst + struct.pack("!BBH", 0, proto, len(body)))
    value = checksum(head + body)
    return body[:at] + struct.pack("!H", value or 0xFFFF) + body[at + 2:]


def ports_of(text):
    """Numbers of the ruleset, and their neighbours."""
    found = {int(n) for n in re.findall(r"\b\d{1,5}\b", text)} | {22, 80, 443, 53}
    return sorted({p for n in found for p in (n - 1, n, n + 1) if 0 < p < 65536})


def sources_of(text, family):
    if family == 6:
        found = re.findall(r"\b2001:db8:[0-9a-f:]+", text) + ["2001:db8:113::5", "2001:db8:7::1"]
        return [a if not a.endswith("::") else f"{a}9" for a in found]
    found = re.findall(r"\b(?:198\.51\.100|203\.0\.113|10\.\d+\.\d+)\.\d+", text)
    near = [re.sub(r"\d+$", lambda m, by=by: str(max(1, min(254, int(m[0]) + by))), a) for a in found for by in (0, 1, -1)]
    return near + [f"{net}.{n}" for net in ("198.51.100", "203.0.113") for n in (9, 40, 70, 130, 200)] + ["192.0.9.7"]


def frame(rng, number, text, published):
    """Bytes of the frames of one packet: two, where it is fragmented."""
    family = rng.choice((4, 4, 4, 6))
    kind = rng.randrange(3)  # this host, published ports, forwarded
    pack = lambda a: socket.inet_pton(socket.AF_INET if family == 4 else socket.AF_INET6, a)  # noqa: E731
    src = pack(rng.choice(sources_of(text, family)))
    dst = pack(rng.choice(OTHERS[family] if kind == 2 else SELF[family]))
    proto = rng.choice((6, 6, 6, 6, 17, 17, 17, 1 if family == 4 else 58, 47))
    port = rng.choice(published if kind == 1 and published else ports_of(text))
    body = transport(rng, family, src, dst, proto, (rng.choice((1024, 30000, 40000, 123, 67)), port))
    ttl, tos = rng.choice((64, 64, 64, 1 + 31, 20)), rng.choice((0, 0, 0, 0, 32, 40))
    ether = NEAR_MAC + (FAR_MAC if rng.random() < .8 else FAR_MAC[:5] + bytes([rng.randrange(1, 10)]))
    if family == 6:
        head = struct.pack("!IHBB", 6 << 28 | tos << 20 | number, len(body), proto, ttl)
        return [ether + b"\x86\xdd" + head + src + dst + body]
    parts = [(body, 0)]
    if len(body) > 100 and rng.random() < .3:
        parts = [(body[:64], 0x2000), (body[64:], 8)]
    made = []
    for part, offset in parts:
        head = struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(part), number, offset, ttl, proto, 0) + src + dst
        made.append(ether + b"\x08\x00" + head[:10] + struct.pack("!H", checksum(head)) + head[12:] + part)
    return made


@contextlib.contextmanager
def two_hosts(ruleset):
    """The same rules on both; only the second one gets Weir."""
    with contextlib.ExitStack() as stack:
        hosts = [Host(ruleset), Host(ruleset)]
        for host in hosts:
            stack.callback(host.down)
            host.up()
            host.load()
        yield hosts


def send_to_both(hosts, seed, text):
    """Sends the packets one by one to both hosts; {number: family}."""
    rng = random.Random(seed)
    published = [int(n) for n in re.findall(r"dport (\d+)[^\n]*(?:DNAT|dnat|redirect)", text)]
    families = {}
    with contextlib.ExitStack() as stack:
        ways = [stack.enter_context(socket_in(host.far_netns, socket.AF_PACKET, socket.SOCK_RAW)) for host in hosts]
        for way in ways:
            way.bind(("far0", 0))
        for number in range(1, FRAMES + 1):
            made = frame(rng, number, text, published)
            families[number] = 4 if made[0][12:14] == b"\x08\x00" else 6
            for data in made:
                for way in ways:
                    way.send(data)
    return families


def fill_sets(weir, policy):
    """Runs the commands in comments, with the words that a shell makes of them."""
    for command in re.findall(r"^# weir (block --set .+)", policy.read_text(), re.M):
        weir(*run(["sh", "-c", f"echo {command}"]).stdout.split(), "--force")


def check_lines(name, text):
    """Each rule has an expect line, but for those that the head counts; `weir apply` has run the lines."""
    rules = re.findall(r'^"(.+)" (?:pass|drop|reject|count)\b', text, re.M)
    shown = set(re.findall(r'^expect \w+ via "(.+?)" (?:\S+ from|ethertype) ', text, re.M))
    missing = len(set(rules) - shown)
    assert shown <= set(rules) and len(rules) == len(set(rules))
    assert f"# rules below without an expect line: {missing} of {len(rules)}\n" in text
    assert len(shown) >= LEAST_SHOWN.get(name, .9) * len(rules) or name.startswith("random"), text


def compare(name, ruleset, options, tmp_path):
    """(packets, accepted by the original, passed by Weir), as numbers of packets."""
    text = ruleset.read_text()
    form = "nft" if ruleset.suffix == ".nft" else "iptables"
    policy = tmp_path / "imported.weir"
    with two_hosts(ruleset) as hosts:
        weir = Weir(hosts[1])
        policy.write_text(weir("import", form, ruleset, *options).stdout)
        try:
            weir("apply", policy, *([] if "-i" in options else ["-i", "near0"]))
            check_lines(name, policy.read_text())
            fill_sets(weir, policy)
            hosts[0].record(ACCEPTED)
            hosts[1].record(PASSED)
            families = send_to_both(hosts, 1, text)
            seen = {f: (hosts[0].seen(["inet", "oracle"], f), hosts[1].seen(["netdev", "later"], f)) for f in (4, 6)}
        finally:
            weir.remove()
    accepted = {n for n, f in families.items() if n in seen[f][0]}
    passed = {n for n, f in families.items() if n in seen[f][1]}
    print(f"{name} {' '.join(options)}: {len(families)} packets, {len(accepted)} accepted, {len(passed)} passed by Weir, "
          f"{len(accepted - passed)} accepted and dropped, {len(passed - accepted)} left to the original")
    assert accepted <= passed, f"{policy.read_text()}\n{sorted(accepted - passed)[:20]}"
    return len(families), len(accepted), len(passed)


@pytest.mark.parametrize("options", [(), ("-i", "near0"), ("--forward",)], ids=["", "interface", "forward"])
@pytest.mark.parametrize("name", NAMES)
def test_drops_nothing_that_the_original_accepts(name, options, tmp_path):
    ruleset = RULESETS / name
    if "--forward" in options and not re.search(r":FORWARD|hook forward", ruleset.read_text()):
        refused = subprocess.run([BUILD / "weir", "import", "nft", ruleset, *options], capture_output=True, text=True)
        assert refused.returncode == 1 and "no chain of type filter and hook forward" in refused.stderr
        return
    packets, accepted, passed = compare(name, ruleset, options, tmp_path)
    assert accepted
    if "-i" in options:
        assert packets - passed >= LEAST_DROPPED.get(name, 0) * packets


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_rulesets(seed, tmp_path):
    rng = random.Random(FIRST + seed)
    ruleset = tmp_path / "random.nft"
    ruleset.write_text(random_ruleset(rng))
    options = rng.choice([(), (), ("-i", "near0"), ("-i", "near0"), ("--forward",)])
    try:
        compare(f"random {FIRST + seed}", ruleset, options, tmp_path)
    except AssertionError as failure:
        raise AssertionError(f"seed {FIRST + seed}\n{ruleset.read_text()}\n{failure}") from None


TIMED = """table inet t {
    set s { type ipv4_addr; flags timeout; elements = { 203.0.113.70 timeout 1h } }
    chain in { type filter hook input priority 0; ip saddr @s drop; }
}
"""


def test_dynamic_set_has_only_the_elements_of_the_ruleset(tmp_path):
    """Not the entries of a set of the same name, which the active policy fills."""
    ruleset, policy = tmp_path / "timed.nft", tmp_path / "policy.weir"
    ruleset.write_text(TIMED)
    with two_hosts(ruleset) as hosts:
        weir = Weir(hosts[1])
        try:
            policy.write_text("set s dynamic\ndrop from @s\n")
            weir("apply", policy, "-i", "near0")
            weir("block", "--set", "s", "203.0.113.9", "--force")
            strict = weir("import", "nft", ruleset, "--strict", check=False)
            assert strict.returncode == 3 and "1 rule has a condition or set elements that Weir lacks" in strict.stderr
            policy.write_text(weir("import", "nft", ruleset).stdout)
            weir("apply", policy, "-i", "near0")
            packet, = weir.json("explain", *"tcp from 203.0.113.9 to 10.77.0.1 port 22".split())["packets"]
            assert packet["verdict"] == "pass"
            fill_sets(weir, policy)
            entry, = weir.json("list", "--set", "nft-s")["addresses"]
            assert entry["address"] == "203.0.113.70" and 3500 < entry["left_s"] <= 3600
        finally:
            weir.remove()


def refused(words, text, weir=BUILD / "weir"):
    """What `weir import` prints when it refuses a text; nothing on standard output."""
    done = subprocess.run(["unshare", "-n", weir, "import", *words, "-"], input=text, capture_output=True, text=True,
                          timeout=10)
    assert done.returncode == 1 and not done.stdout, done
    return done.stderr


SAVE = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\nCOMMIT\n"


def test_bad_input():
    assert "line 2: 'include' is not followed" in refused(["nft"], "# x\ninclude \"/etc/shadow\"\n")
    assert "Error: syntax error" in refused(["nft"], "table inet t {\n chain in {\n type filter hook")
    assert "conflicting protocols" in refused(["nft"], "table inet t { chain c { tcp dport 1 udp dport 1 drop; }; }")
    assert "no chain of type filter and hook input" in refused(["nft"], "table arp t { }")
    assert "for IPv4 or IPv6?" in refused(["iptables"], SAVE)
    assert "the rules are for IPv6, not IPv4" in refused(["iptables", "--ipv4"], "# Generated by ip6tables-save v1\n" + SAVE)
    assert "host/network" in refused(["iptables", "--ipv4"], SAVE.replace("-p tcp", "-s slow.example -p tcp"))
    assert "line 3" in refused(["iptables", "--ipv4"], SAVE.replace(" -j ACCEPT", " -m comment --comment \"x"))
    assert "a NUL byte at 0" in refused(["nft"], "\0")
    assert "'eth*' is a pattern" in refused(["nft", "-i", "eth*"], "")
    assert "'a\"b' cannot be an interface" in refused(["nft", "-i", 'a"b'], "")
    assert "at most 63 interfaces" in refused(["nft"] + [f"-ie{n}" for n in range(64)], "")
    assert "unknown form 'pf'" in refused(["pf"], "")


def test_family_by_option():
    done = subprocess.run([BUILD / "weir", "import", "iptables", "--ipv4", "-"], input=SAVE, capture_output=True, text=True)
    assert done.returncode == 0 and "pass proto tcp from 0.0.0.0/0 to any port 22" in done.stdout


def test_strict_counts_omitted_conditions():
    for mark, status in ("", 0), ("-m mark --mark 1 ", 3):
        text = SAVE.replace("-j", f"{mark}-j")
        done = subprocess.run([BUILD / "weir", "import", "iptables", "--ipv4", "--strict", "-"], input=text,
                              capture_output=True, text=True)
        assert done.returncode == status and bool(done.stdout) == (status == 0), done


def test_port_of_a_bridge_is_refused_for_forward():
    script = ("ip link add name b type bridge; ip link add p type veth peer name q; ip link set p master b; "
              f"{BUILD / 'weir'} import nft -i $0 --forward -")
    text = "table ip t { chain f { type filter hook forward priority 0; policy drop; }; }"
    for name, message in ("p", "the bridge 'b' is above 'p'"), ("q", ""):
        done = subprocess.run(["unshare", "-n", "sh", "-c", script, name], input=text, capture_output=True, text=True)
        assert message in done.stderr and done.returncode == bool(message), done


def test_lists(tmp_path):
    """Lists that a policy can use, and options that a form does not have."""
    for name, words, text in (("plain", ["plain"], "a,192.0.2.1,b\na,192.0.2.1,c\n"),
                              ("ipset", ["ipset", "--set", "x"], "create x hash:ip\nadd x 192.0.2.1\n"),
                              ("nft", ["nft", "--set", "x"],
                               "table ip t { set x { type ipv4_addr; elements = { 192.0.2.1 }; }; }")):
        done = subprocess.run([BUILD / "weir", "import", *words, "-"], input=text, capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.splitlines()[1:] == ["192.0.2.1"], done
        (tmp_path / f"{name}.txt").write_text(done.stdout)
    policy = tmp_path / "p.weir"
    policy.write_text('set x { file "plain.txt", file "ipset.txt", file "nft.txt" }\ndrop from @x\n')
    checked = subprocess.run([BUILD / "weir", "check", "--offline", policy], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "'plain' has no option --set" in refused(["plain", "--set", "x"], "192.0.2.1\n")
    assert "'0' is not the number of a column" in refused(["plain", "--column", "0"], "192.0.2.1\n")
    strict = subprocess.run([BUILD / "weir", "import", "plain", "--strict", "-"], input="192.0.2.1\nx\n",
                            capture_output=True, text=True)
    assert strict.returncode == 3 and not strict.stdout


KEEPALIVED = """
virtual_server 192.0.2.10 80 {
    delay_loop 6
    lb_kind TUN
    sorry_server 10.0.0.19 80
    real_server 10.0.0.11 80 {
        weight 2
        SSL_GET {
            url {
                path "/up?a=1"
                status_code 200
            }
        }
    }
}
virtual_server 192.0.2.11 80 {
    lb_kind NAT
    real_server 10.0.0.11 80 {
    }
}
"""


def test_services_of_keepalived(tmp_path):
    policy = tmp_path / "p.weir"
    done = subprocess.run([BUILD / "weir", "import", "keepalived", "-"], input=KEEPALIVED, capture_output=True, text=True)
    policy.write_text(done.stdout)
    assert done.returncode == 0 and "1 service, 1 left to keepalived" in done.stdout
    checked = subprocess.run([BUILD / "weir", "check", "--offline", policy], capture_output=True, text=True)
    assert checked.returncode == 0 and "service vs1" in checked.stdout, checked.stderr + done.stdout
    strict = subprocess.run([BUILD / "weir", "import", "keepalived", "--strict", "-"], input=KEEPALIVED,
                            capture_output=True, text=True)
    assert strict.returncode == 3 and not strict.stdout
    assert "line 1: '}' is missing" in refused(["keepalived"], "virtual_server 192.0.2.10 80 {")
