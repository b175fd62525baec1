# SPDX-License-Identifier: GPL-2.0-only
"""The policies of the cases for services, and the cases that need a policy of their own."""
import struct

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest
from scapy.layers.l2 import ARP, Ether
from scapy.layers.sctp import SCTPChunkInit
from scapy.packet import Raw

from balance_book import (CLIENT, ROUTER, SPORT, TAGS, case, counting, define, dropped, flow_of, hop, ip,
                          length_of, lines, load, passed, sctp, sent, services, tcp, turned, udp, vips)
from balance_cases import (answer_of, burst_case, echo, echo_cases, foreign_fragment_cases, fragment_cases,
                           martian_cases, mode_cases, mode_services, outer_zero_cases, partial_cases,
                           partial_of, quote_more_cases, quoting, ring_cases, routed_echo_cases, size_cases,
                           size_fragment_cases, split_cases, split_size_case, surplus_cases,
                           time_exceeded_answer, too_big_answer, trailing_cases)
from balance_model import CAME, HERE, TCP_PROTO, UDP_PROTO, Hop, Service, link


def member_cases(ranges, every, prefix, one):
    for dport in 80, 443, 8000, 8005, 8010:
        sent(f"ranges: port {dport}", ranges, ip(ranges, 4) / tcp(dport=dport),
             flow_of(ranges, 4, TCP_PROTO, dport=dport))
    for dport in 0, 79, 81, 442, 444, 7999, 8011, 65535:
        passed(f"ranges: port {dport}", ip(ranges, 4) / tcp(dport=dport))
    for dport in 0, 1, 80, 65535:
        for family in 4, 6:
            sent(f"any port: {family} port {dport}", every, ip(every, family) / tcp(dport=dport),
                 flow_of(every, family, TCP_PROTO, dport=dport))
    passed("any port: another protocol", ip(every, 4) / udp(b"x"))
    passed("any port: gre", ip(every, 4, proto=47) / Raw(bytes(20)))
    for last in 160, 161, 175:
        vip = f"203.0.113.{last}"
        sent(f"prefix: {vip}", prefix, ip(prefix, 4, dst=vip) / tcp(),
             flow_of(prefix, 4, TCP_PROTO, dst=vip))
    for last in 159, 176:
        passed(f"prefix: 203.0.113.{last}", ip(prefix, 4, dst=f"203.0.113.{last}") / tcp())
    for last in range(0x1000, 0x1040):
        # Equal to a VIP in its high or in its low half.
        passed(f"near a VIP: {last:x} low", ip(one, 6, dst=f"2001:db8:f::{last:x}") / tcp())
        passed(f"near a VIP: {last:x} high", ip(one, 6, dst=f"2001:db8:{last:x}::{one.vip(6)[-1]}") / tcp())
    for vip in "2001:db8:f:1::", "2001:db8:f:1:ffff:ffff:ffff:ffff":
        sent(f"prefix: {vip}", prefix, ip(prefix, 6, dst=vip) / tcp(),
             flow_of(prefix, 6, TCP_PROTO, dst=vip))
    for family in 4, 6:
        passed(f"one protocol: {family} udp", ip(one, family) / udp(b"x"))
        passed(f"one protocol: {family} sctp", ip(one, family) / sctp(SCTPChunkInit(), tag=0))
        for dport in 79, 81, 22:
            passed(f"one protocol: {family} port {dport}", ip(one, family) / tcp("S", dport=dport))
        passed(f"from the service's port, {family}", ip(one, family) / tcp(sport=80, dport=SPORT))
        swapped = ip(one, family)
        swapped.src, swapped.dst = swapped.dst, swapped.src
        passed(f"from the VIP, {family}", swapped / tcp(sport=80, dport=SPORT))
    passed("protocol 58 in IPv4", ip(one, 4, proto=58) / Raw(bytes(ICMPv6EchoRequest())))


def end_cases(used):
    for family in 4, 6:
        packet = ip(used["at-home"], family) / tcp("S")
        case(f"here: {family} syn", link(CAME, (), bytes(packet)), "pass", "service-here",
             length_of(packet), service=used["at-home"], address=HERE, opened=1)
        packet = partial_of(ip(used["at-home"], family, **{"ttl" if family == 4 else "hlim": 1})
                            / udp(counting(1600)), UDP)
        case(f"here: {family} partial, last hop, big", link(CAME, ((0x8100, 7),), bytes(packet)), "pass",
             "service-here", length_of(packet), service=used["at-home"], address=HERE)
        for name, reason in {"no-backend": "service-no-backend", "no-hop": "service-no-next-hop",
                             "no-device": "service-no-next-hop", "no-xmit": "service-egress"}.items():
            service = used[name]
            dropped(f"{name}: {family}", ip(service, family) / tcp("S"), reason, service)
            quote = answer_of(service, family, TCP(sport=80, dport=SPORT))
            dropped(f"{name}: {family} icmp", quoting(service, family, quote), reason, service)
            turned(f"{name}: {family} echo", *echo(service, family, ({"id": 1, "seq": 2}, b"ping")),
                   "service-echo")
        service = used["no-xmit"]
        sent(f"no-xmit in generic mode: {family}", service, ip(service, family) / tcp(),
             flow_of(service, family, TCP_PROTO), settings=[("generic", 1)])
        service = used["no-xmit-back"]
        sent(f"no-xmit but back: {family}", service, ip(service, family) / tcp(),
             flow_of(service, family, TCP_PROTO))


def source_cases(service, lengths):
    for n in range(8):
        for family in 4, 6:
            sent(f"{service.name}: source {lengths}, {family}, flow {n}", service,
                 ip(service, family) / udp(b"x", sport=2000 + n),
                 flow_of(service, family, UDP_PROTO, 2000 + n))


def malformed_cases(service, reasons):
    """They never reach the balancer."""
    for name, packet, reason in (
            ("tcp offset", ip(service, 4) / tcp(dataofs=4), "tcp-offset"),
            ("tcp cut", ip(service, 4, proto=6) / Raw(bytes(tcp())[:19]), "tcp-truncated"),
            ("udp cut", ip(service, 6, nh=17) / Raw(bytes(udp())[:7]), "udp-truncated"),
            ("udp length", ip(service, 4) / udp(b"abc", len=7), "udp-length"),
            ("udp too long", ip(service, 6) / udp(b"abc", len=12), "udp-length"),
            ("sctp cut", ip(service, 4, proto=132) / Raw(struct.pack("!HHI", SPORT, 80, 0)),
             "sctp-truncated"),
            ("icmp cut", ip(service, 4, proto=1) / Raw(bytes(7)), "icmp-truncated"),
            ("icmp6 cut", ip(service, 6, nh=58) / Raw(bytes(7)), "icmp6-truncated"),
            ("tiny fragment", ip(service, 4, proto=6, flags="MF") / Raw(bytes(tcp())[:16]),
             "fragment-header"),
            ("empty fragment", ip(service, 4, proto=6, frag=9), "fragment-length")):
        if reasons:
            dropped(f"malformed: {name}", packet, reason)
        else:
            passed(f"malformed pass: {name}", packet, "malformed-pass")


# The policies

def main_policy():
    modes = list(mode_services())
    both = {"10.2.0.1": hop(1), "10.2.0.2": (hop(2, device="out"), 3),
            "2001:db8:b2::3": hop(3, vlan=9), "2001:db8:b2::4": (hop(4, device="out", vlan=10), 2)}
    pool = define("pool", vips(30), both, "ipip")
    by_source = define("by-source", vips(31), both, "gue", hash="source")
    mixed = define("mixed", vips(32), {a: h for a, h in both.items() if "." in a}, "dr", hash="source")
    spread = [
        define("spread-1", vips(33), {"10.3.0.1": hop(1), "2001:db8:b3::1": hop(2)}, "ipip",
               sources={4: "10.9.0.0/16", 6: "2001:db8:9::/64"}),
        define("spread-2", vips(34), {"10.3.0.1": hop(1), "2001:db8:b3::1": hop(2)}, "gue",
               sources={4: "10.9.9.8/31", 6: "2001:db8:9::/97"}),
        define("spread-3", vips(35), {"10.3.0.1": hop(1), "2001:db8:b3::1": hop(2)}, "gue",
               sources={4: "10.0.0.0/8", 6: "2001:db8:9::fe/127"}, hash="source")]
    small = [(define("small-dr", vips(40), {"10.4.0.1": hop(1, mtu=1500)}, "dr"), 0),
             (define("small-ipip4", vips(41), {"10.4.0.2": hop(1, mtu=1500)}, "ipip"), 20),
             (define("small-ipip6", vips(42), {"2001:db8:b4::3": hop(1, mtu=1500, vlan=5)}, "ipip"), 40),
             (define("small-gue4", vips(43), {"10.4.0.4": hop(1, mtu=1500, device="out")}, "gue"), 28),
             (define("small-source", vips(45), {"10.4.0.6": hop(1, mtu=1500)}, "ipip", hash="source"), 20),
             (define("small-gue6", vips(44), {"2001:db8:b4::5": hop(1, mtu=1500)}, "gue"), 48)]
    ranges = define("ranges", vips(50), {"10.5.0.1": hop(1)}, "ipip", port="80, 443, 8000-8010")
    every = define("all-ports", vips(51), {"10.5.0.2": hop(1)}, "ipip", port="any", proto="tcp")
    prefix = define("prefix", ["203.0.113.160/28", "2001:db8:f:1::/64"], {"10.5.0.3": hop(1)}, "dr")
    one = define("one", vips(53), {"10.5.0.4": hop(1)}, "ipip", proto="tcp")
    ends = {service.name: service for service in (
        define("at-home", vips(60), {HERE: Hop()}, "dr"),
        define("no-backend", vips(61), {"10.6.0.1": (hop(1), 0)}, "ipip"),
        define("no-hop", vips(62), {"10.6.0.2": hop(1, device="none")}, "ipip"),
        define("no-device", vips(63), {"10.6.0.3": hop(1, device="lost")}, "gue"),
        define("no-xmit", vips(64), {"10.6.0.4": hop(1, device="out", no_xmit=1)}, "ipip"),
        define("no-xmit-back", vips(65), {"10.6.0.5": hop(1, no_xmit=1)}, "ipip"))}
    load([], services.values())
    for service in modes:
        mode_cases(service)
    for name in "dr-in", "ipip4-out", "ipip6-in77", "gue4-out4094", "gue6-in":
        partial_cases(services[name])
        split_cases(services[name])
        surplus_cases(services[name])
    for name in "gue6-in", "gue6-out4094":
        outer_zero_cases(services[name])
    echo_cases(services["ipip4-in"])
    routed_echo_cases(services["ipip4-in"])
    martian_cases(services["gue4-in"], services["dr-out"])
    quote_more_cases(services["gue6-in"])
    for service, over in small:
        size_cases(service, over)
        trailing_cases(service, over)
        size_fragment_cases(service, over)
    burst_case(small[0][0])
    split_size_case(small[0][0])
    ring_cases(pool, by_source, mixed)
    fragment_cases(by_source, pool)
    foreign_fragment_cases(one)
    member_cases(ranges, every, prefix, one)
    end_cases(ends)
    for service, name in zip(spread, ("/16 and /64", "/31 and /97", "/8 and /127")):
        source_cases(service, name)
    malformed_cases(services["ipip4-in"], True)
    arp = bytes(Ether(**CAME) / ARP())
    case("arp", arp, "pass", "not-ip", len(arp))


def reset_of(syn):
    return (IP(src=syn.dst, dst=syn.src, id=0, flags="DF", ttl=64)
            / TCP(sport=80, dport=SPORT, flags="RA", seq=0, ack=syn[TCP].seq + 1, window=0))


def rule_policies():
    """Services come last: an earlier drop wins."""
    web = Service("web", vips(1), {"10.7.0.1": hop(1)}, "ipip")
    flow4, flow6 = flow_of(web, 4, TCP_PROTO), flow_of(web, 6, TCP_PROTO)
    load(["drop from 192.0.2.66", "drop to web port 80 flags fin",
          "reject to 203.0.113.1 port 80 from 192.0.2.67", "pass to web from 192.0.2.68",
          "drop from 192.0.2.68", "always drop from 192.0.2.69"], [web])
    syn = ip(web, 4) / tcp("S")
    sent("rules: no rule", web, syn, flow4, opened=1)
    dropped("rules: drop", ip(web, 4, src="192.0.2.66") / tcp("S"), "rule-drop")
    dropped("rules: drop the service's", ip(web, 4) / tcp("F"), "rule-drop")
    dropped("rules: always drop", ip(web, 4, src="192.0.2.69") / tcp("S"), "rule-drop")
    dropped("rules: no echo", ip(web, 4, src="192.0.2.66") / ICMP(), "rule-drop")
    refused = ip(web, 4, src="192.0.2.67") / tcp("S")
    turned("rules: reject", refused, reset_of(refused), "reply")
    passes = ip(web, 4, src="192.0.2.68") / tcp("S")
    sent("rules: pass", web, passes, flow_of(web, 4, TCP_PROTO, src="192.0.2.68"), opened=1)
    block = (f"block-from {CLIENT[4]}", f"block-to {web.vip(6)}")
    dropped("overlay: block from", syn, "block-from", settings=entries(0, *block))
    dropped("overlay: block to", ip(web, 6) / tcp("S"), "block-to", settings=entries(1, *block))
    dropped("overlay: no echo", ip(web, 6) / ICMPv6EchoRequest(), "block-to", settings=entries(1, *block))
    allow = entries(0, f"allow-from {CLIENT[6]}", f"block-to {web.vip(6)}")
    sent("overlay: allow", web, ip(web, 6) / tcp("S"), flow6, opened=1, settings=allow)
    load(["default drop", "pass to web proto tcp"], [web])
    sent("default drop: passed", web, syn, flow4, opened=1)
    dropped("default drop: udp", ip(web, 4) / udp(b"x"), "default-drop")
    dropped("default drop: echo", ip(web, 4) / ICMP(), "default-drop")
    quote = answer_of(web, 4, TCP(sport=80, dport=SPORT))
    sent("default drop: an error is essential", web, quoting(web, 4, quote), flow4, quoted=1)
    passed("default drop: an error for others", quoting(web, 4, quote[:20]), "essential-icmp")
    load(["malformed pass", "fragments drop proto udp"], [web])
    malformed_cases(web, False)
    sent("malformed pass: whole", web, syn, flow4, opened=1)
    dropped("fragments drop: udp", ip(web, 4, frag=9, proto=17) / Raw(bytes(32)), "fragments-drop")
    dropped("fragments drop: tcp", ip(web, 4, frag=9, proto=6) / Raw(bytes(32)), "service-fragment", web)


def entries(hit, *words):
    """The overlay, and which of its entries counts the packet."""
    return [("overlay", ", ".join(words)), ("hit", words[hit])]


def allow_policies():
    """What an entry allows may be for a service: the entry counts it once, whichever program ends it. Not only the
    first look at its packets tells that the short program cannot forward them."""
    narrow = Service("narrow", vips(1), {"10.7.0.2": hop(1, mtu=1500)}, "ipip")
    away = Service("away", vips(2), {HERE: Hop()}, "dr", port="1-100")
    load(["drop from 192.0.2.0/24, 2001:db8:c::/48"], [narrow, away])
    for family in 4, 6:
        for kind, given in {"from": CLIENT[family], "to": narrow.vip(family)}.items():
            about, allow = f"allow: {kind}, {family}", entries(0, f"allow-{kind} {given}")
            sent(f"{about} syn", narrow, ip(narrow, family) / tcp("S"), flow_of(narrow, family, TCP_PROTO), opened=1,
                 settings=allow)
            late = ip(narrow, family, **{"ttl" if family == 4 else "hlim": 1}) / udp(b"late")
            turned(f"{about} no hops", late, time_exceeded_answer(late), "service-ttl", settings=allow)
            big = ip(narrow, family) / udp(counting(1480))
            turned(f"{about} too big", big, too_big_answer(big, 1480), "service-too-big", settings=allow)
            turned(f"{about} echo", *echo(narrow, family, ({"id": 1, "seq": 2}, b"ping")), "service-echo", settings=allow)
            passed(f"{about} another port", ip(narrow, family) / tcp(dport=81), "allow", settings=allow)
        allow = entries(0, f"allow-from {CLIENT[family]}")
        passed(f"allow: {family} no service's", ip(narrow, family, dst=ROUTER[family]) / tcp(), "allow", settings=allow)
        passed(f"allow: {family} icmp to another address", echo(narrow, family, ({}, b""), dst=ROUTER[family])[0],
               "allow", settings=allow)
        packet = ip(away, family) / tcp("S")
        case(f"allow: {family} here", link(CAME, (), bytes(packet)), "pass", "service-here", length_of(packet),
             service=away, address=HERE, opened=1, settings=allow)


def interface_policies():
    """On an interface that the policy does not name there are no rules and no services."""
    web = Service("web", vips(1), {"10.7.0.1": hop(1)}, "ipip")
    load(["interface other0", "drop from 192.0.2.66, 2001:db8:c::66", "default drop"], [web])
    for family in 4, 6:
        about, blocked = f"another interface: {family}", {4: "192.0.2.66", 6: "2001:db8:c::66"}[family]
        for name, payload in {"syn": tcp("S"), "ack": tcp(), "udp": udp(b"x"), "sctp": sctp(SCTPChunkInit(), tag=0)}.items():
            passed(f"{about} {name}", ip(web, family) / payload)
        passed(f"{about} echo", echo(web, family, ({"id": 1, "seq": 2}, b"ping"))[0])
        passed(f"{about} a dropped source", ip(web, family, src=blocked) / tcp("S"))
        passed(f"{about} a tag", ip(web, family) / tcp("S"), tags=((0x8100, 7),))
        passed(f"{about} allowed", ip(web, family) / tcp("S"), "allow",
               settings=entries(0, f"allow-from {CLIENT[family]}"))
        dropped(f"{about} blocked", ip(web, family) / tcp("S"), "block-to",
                settings=entries(0, f"block-to {web.vip(family)}"))


def budget_cases():
    """A flood exhausts the limit of one kind of answer to one receiver, and no other limit."""
    narrow = Service("narrow", vips(1), {"10.7.0.2": hop(1, mtu=1500)}, "ipip")
    load(["reject from 192.0.2.64/27, 2001:db8:d::/64 proto tcp"], [narrow])
    def flood(packet):
        return [("flood", link(CAME, (), bytes(packet)).hex())]
    for family in 4, 6:
        here, near, far = {4: ("192.0.2.67", "192.0.2.68", "192.0.2.80"),
                           6: ("2001:db8:d::7", "2001:db8:d::8", "2001:db8:e::7")}[family]
        big, refused, ask = {}, {}, {}
        for source in here, near, far:
            big[source] = ip(narrow, family, src=source) / udp(counting(1480))
            refused[source] = ip(narrow, family, src=source) / tcp("S")
            ask[source] = echo(narrow, family, ({"id": 1, "seq": 2}, b"ping"), src=source)
        about = f"budgets: {family}"
        echoes = flood(ask[here][0])
        for name, other in {"rejects": refused, "echo": {s: a for s, (a, _) in ask.items()}}.items():
            turned(f"{about} too big, in a flood of {name}", big[here], too_big_answer(big[here], 1480),
                   "service-too-big", settings=flood(other[here]))
        turned(f"{about} echo, in a flood of too big", *ask[here], "service-echo",
               settings=flood(big[here]))
        dropped(f"{about} echo, in a flood of itself", ask[here][0], "service-echo-silent",
                settings=echoes)
        late = ip(narrow, family, src=here, **{"ttl" if family == 4 else "hlim": 1}) / udp(b"late")
        turned(f"{about} no hops, in a flood of too big", late, time_exceeded_answer(late), "service-ttl",
               settings=flood(big[here]))
        dropped(f"{about} no hops, in a flood of itself", late, "service-ttl-silent", narrow,
                settings=flood(late))
        dropped(f"{about} too big, in a flood of itself", big[here], "service-too-big-silent", narrow,
                settings=flood(big[here]))
        turned(f"{about} echo, in a flood of another's", *ask[far], "service-echo", settings=echoes)
        turned(f"{about} too big, in a flood of another's", big[far], too_big_answer(big[far], 1480),
               "service-too-big", settings=flood(big[here]))
        if family == 4:
            turned(f"{about} reject, in a flood of too big", refused[here], reset_of(refused[here]),
                   "reply", settings=flood(big[here]))
            dropped(f"{about} reject, in a flood of itself", refused[here], "rule-reject",
                    settings=flood(refused[here]))
            turned(f"{about} reject, in a flood of another's", refused[near], reset_of(refused[near]),
                   "reply", settings=flood(refused[here]))
        else:  # a host may have all the addresses of its /64
            dropped(f"{about} echo, in a flood from its /64", ask[near][0], "service-echo-silent",
                    settings=echoes)


def crowd_policies():
    """All receivers together get 5,000 answers a second of echo and as many of reject."""
    web = Service("web", vips(1), {"10.7.0.1": hop(1, mtu=1500)}, "ipip")
    load(["reject proto tcp"], [web])
    refused = ip(web, 4) / tcp("S")
    turned("crowd: echo", *echo(web, 4, ({"id": 1, "seq": 2}, b"ping")), "service-echo", settings=[("crowd", 9000)])
    turned("crowd: reject", refused, reset_of(refused), "reply", settings=[("crowd", 9000)])
    dropped("crowd: reject to an address of this host", refused, "rule-reject", settings=[("own", CLIENT[4])])


def station_policies():
    """Frames to other stations are neither balanced nor answered; if no station is known, all frames are ours."""
    web = Service("web", vips(1), {"10.7.0.1": hop(1, mtu=1500)}, "ipip")
    load(["reject from 192.0.2.67", "drop from 192.0.2.68"], [web])
    ours, other = CAME["dst"], "02:99:00:00:00:05"
    near = [ours[:-2] + "03", "02:00:00:00:01:01", "03" + ours[2:], "02:01" + ours[5:]]
    near = [mac for mac in near if not int(mac[:2], 16) & 1]
    refused, blocked = ip(web, 4, src="192.0.2.67") / tcp("S"), ip(web, 4, src="192.0.2.68") / tcp("S")
    for name, stations in {"its own": ours, "a device above": f"{other} {ours}",
                           "one of many": " ".join([other, *near, ours])}.items():
        known = [("stations", stations)]
        for family in 4, 6:
            sent(f"stations: {name}, {family}", web, ip(web, family) / tcp("S"),
                 flow_of(web, family, TCP_PROTO), opened=1, settings=known)
            turned(f"stations: {name}, {family} echo",
                   *echo(web, family, ({"id": 1, "seq": 2}, b"ping")), "service-echo", settings=known)
        turned(f"stations: {name}, reject", refused, reset_of(refused), "reply", settings=known)
    for name, stations in {"another": other, "many others": " ".join([other, *near])}.items():
        foreign = [("stations", stations), ("foreign", 1)]
        for family in 4, 6:
            quote = answer_of(web, family, TCP(sport=80, dport=SPORT))
            big = ip(web, family) / udp(counting(1600))
            for what, packet in {"syn": ip(web, family) / tcp("S"), "too big": big,
                                 "icmp": quoting(web, family, quote),
                                 "no hops": ip(web, family, **{"ttl" if family == 4 else "hlim": 1}) / tcp(),
                                 "echo": echo(web, family, ({"id": 1, "seq": 2}, b"ping"))[0],
                                 "martian": ip(web, family, src=web.vip(family)) / tcp("S")}.items():
                passed(f"stations: {name}, {family} {what}", packet, settings=foreign)
            unasked = [("stations", stations)]
            passed(f"stations: {name}, {family} no service's", ip(web, family) / tcp(dport=81),
                   settings=unasked)
            passed(f"stations: {name}, {family} icmp to another address",
                   echo(web, family, ({}, b""), dst=ROUTER[family])[0], settings=unasked)
        dropped(f"stations: {name}, reject", refused, "rule-reject", settings=foreign)
        dropped(f"stations: {name}, drop", blocked, "rule-drop", settings=[("stations", stations)])
        dropped(f"stations: {name}, block", ip(web, 4) / tcp(), "block-from",
                settings=[("stations", stations), *entries(0, f"block-from {CLIENT[4]}")])


def mode_policies():
    """Each mode separately: the program has no code for the others."""
    for mode, address in ("dr", "10.8.0.1"), ("ipip", "10.8.0.2"), ("gue", "2001:db8:b8::3"):
        alone = Service("alone", vips(1), {address: hop(1)}, mode)
        load([], [alone])
        for family in 4, 6:
            sent(f"only {mode}: {family}", alone, ip(alone, family) / tcp("S"),
                 flow_of(alone, family, TCP_PROTO), opened=1)
            turned(f"only {mode}: {family} echo", *echo(alone, family, ({"id": 1, "seq": 2}, b"ping")),
                   "service-echo")
        passed(f"only {mode}: another port", ip(alone, 4) / tcp(dport=81))


def await_words(packet, ms=60000, **fields):
    """The check that this packet answers; fields: what differs."""
    layer = packet.getlayer(TCP) or packet.getlayer(UDP)
    flow = {"proto": packet.proto if packet.version == 4 else packet.nh, "src": packet.src, "sport": layer.sport,
            "dst": packet.dst, "dport": layer.dport, **fields}
    return "await", f"{flow['proto']} {flow['src']} {flow['sport']} {flow['dst']} {flow['dport']} {ms}"


def taken(name, packet, tags=()):
    """The agent takes it as an answer: its last ethertype is another one."""
    given = link(CAME, tags, bytes(packet))
    at = 12 + 4 * len(tags)
    case(name, given, "pass", "service-answer", length_of(packet), out=given[:at] + b"\x88\xb5" + given[at + 2:],
         settings=[await_words(packet)])


def answer_policies():
    """Answers to checks via path come before all rules; those that nothing awaits are packets like others."""
    rules = [f"drop from {vip}" for vip in vips(1)]
    for kind, policy, reason in (("short", rules, "rule-drop"), ("always", [f"always {line}" for line in rules], "rule-drop"),
                                 ("default drop", ["default drop"], "default-drop")):
        web = Service("web", vips(1), {"10.7.0.1": hop(1)}, "ipip", check="tcp via path")
        load(policy, [web])
        for family in 4, 6:
            answer_cases(f"answers: {kind}, {family}", web, family, reason)
    without = Service("web", vips(1), {"10.7.0.1": hop(1)}, "ipip")
    load(rules, [without])
    for family in 4, 6:
        packet = answer_from(without, family, TCP(sport=80, dport=0x7000, flags="SA"))
        dropped(f"answers: no such check, {family}", packet, "rule-drop", settings=[await_words(packet)])


def answer_from(service, family, payload):
    return ip(service, family, src=service.vip(family), dst=CLIENT[family]) / payload


def answer_cases(about, web, family, reason):
    packet = answer_from(web, family, TCP(sport=80, dport=0x7123, flags="SA"))
    for name, tags in TAGS.items():
        taken(f"{about}{name}", packet, tags)
    taken(f"{about}, a reset", answer_from(web, family, TCP(sport=80, dport=0x7fff, flags="RA")))
    taken(f"{about}, data", answer_from(web, family, TCP(sport=443, dport=0x7000, flags="PA") / Raw(counting(900))))
    taken(f"{about}, UDP", answer_from(web, family, UDP(sport=80, dport=0x7001) / Raw(counting(64))))
    dropped(f"{about}, not awaited", packet, reason)
    dropped(f"{about}, awaited no longer", packet, reason, settings=[await_words(packet, ms=0)])
    for name, fields in {"another source": {"src": ROUTER[family]}, "another destination": {"dst": ROUTER[family]},
                         "another port": {"sport": 81}, "another port of the check": {"dport": 0x7124},
                         "another protocol": {"proto": UDP_PROTO}}.items():
        dropped(f"{about}, {name}", packet, reason, settings=[await_words(packet, **fields)])
    awaited = await_words(packet)
    dropped(f"{about}, in a frame to another station", packet, reason,
            settings=[("stations", "02:99:00:00:00:05"), awaited])
    if family == 4:
        first = answer_from(web, 4, TCP(sport=80, dport=0x7123, flags="SA") / Raw(bytes(4)))
        first.flags = "MF"
        dropped(f"{about}, a first fragment", first, reason, settings=[awaited])
    for dport in 0x6fff, 0x8000, 0x0123:
        packet = answer_from(web, family, TCP(sport=80, dport=dport, flags="SA"))
        dropped(f"{about}, port {dport} is no check's", packet, reason, settings=[await_words(packet)])


def write(out, *more):
    main_policy()
    rule_policies()
    allow_policies()
    interface_policies()
    budget_cases()
    crowd_policies()
    station_policies()
    mode_policies()
    answer_policies()
    for policies in more:
        policies()
    print("\n".join(lines), file=out)
