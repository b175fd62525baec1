# SPDX-License-Identifier: GPL-2.0-only
"""Cases for ICMP errors of routers about tunnel packets: they quote, built by scapy, the frames
that the balancer sends."""
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6
from scapy.packet import Raw

import flowhash
from balance_book import (TAGS, count, counting, emit, flow_of, ip, length_of, lines, load, passed, sent,
                          tcp, turned, udp, vips)
from balance_cases import too_big_answer
from balance_model import CAME, KEY, TCP_PROTO, UDP_PROTO, Hop, Service, family_of, link, one_hop

NARROW = {4: "10.200.0.1", 6: "2001:db8:200::1"}  # the router before the narrow link
MTU = 1600  # of the egress
LOWER = 1400
HEADER = {4: 20, 6: 40}
FLOOR = {4: 576, 6: 1280}  # of several routers that agree
INNER = 1280  # of one router alone: what it must leave inside the tunnel


def over(service, family):
    """Bytes in front of the packet, to a backend of this family."""
    return HEADER[family] + (8 if service.mode == "gue" else 0)


def client_mtu(service, address, family, mtu):
    """The MTU in the error to a client: not less than it would use."""
    return max(mtu - over(service, family_of(address)), {4: 552, 6: 1280}[family])


def big(service, family, size=1400, **fields):
    return ip(service, family, **fields) / tcp("PA", counting(size))


def in_tunnel(service, address, packet, flow=None):
    """As it leaves the balancer."""
    flow = flow or flow_of(service, packet.version, TCP_PROTO)
    return bytes(service.encapsulated(address, one_hop(packet), service.flow_hash(flow)))


def addresses(packet):
    """Source and destination of raw bytes of IP."""
    whole = IP(packet) if packet[0] >> 4 == 4 else IPv6(packet)
    return whole.src, whole.dst


def notice(quote, mtu, to=None, whole=None, **fields):
    """From the router to the sender of the quoted packet."""
    to = to or addresses(whole or quote)[0]
    if family_of(to) == 4:
        return IP(src=NARROW[4], dst=to, **fields) / ICMP(type=3, code=4, nexthopmtu=mtu) / Raw(quote)
    return IPv6(src=NARROW[6], dst=to, **fields) / ICMPv6PacketTooBig(mtu=mtu) / Raw(quote)


def begin(used, **known):
    """Before a case: the path MTUs that routers have reported (path, path_age), else none."""
    words = "".join(f" {name.replace('_', '-')} {value}" for name, value in known.items())
    for service in used:
        for hop in service.nexthops():
            emit("hop", hop + words)


def tell(name, used, service, address, packet, mtu, *, quote=None, learned=True, told=None, known=None,
         tags=(), padding=b"", settings=()):
    """The notice about this packet lowers the path MTU, and the client gets an error."""
    whole = in_tunnel(service, address, packet)
    gone = one_hop(packet)
    told = told or mtu
    begin(used, **(known or {}))
    emit("case", f"path: {name}")
    for word, value in settings:
        emit(word, value)
    given = notice(whole[:quote] if quote else whole, mtu)
    answer = too_big_answer(gone.__class__(bytes(gone)), client_mtu(service, address, gone.version, told))
    back = {"src": CAME["dst"], "dst": CAME["src"]}
    emit("frame", link(CAME, tags, bytes(given), padding).hex())
    emit("out", link(back, tags, bytes(answer)).hex())
    if learned:
        for who in "-", address:
            count(service, who, **{"path-learned": 1})
    emit("path", f"{service.name} {address} {told}")
    emit("expect", f"tx service-path-mtu {length_of(given)}")


def shrugged(name, used, given, *, path=0, learned=(), refused=(), known=None, settings=(), frame=None,
             path_of=None, address):
    """It is passed unchanged. learned: services that lower the path MTU of the address nevertheless; refused:
    those that do not accept it; path_of: those that know of `path` afterwards, if not all."""
    begin(used, **(known or {}))
    emit("case", f"path: {name}")
    for word, value in settings:
        emit(word, value)
    emit("frame", (frame or link(CAME, (), bytes(given))).hex())
    for services, event in (learned, "path-learned"), (refused, "path-refused"):
        for service in services:
            for who in "-", address:
                count(service, who, **{event: 1})
    for service in used:
        emit("path", f"{service.name} {address} {path if path_of is None or service in path_of else 0}")
    emit("expect", f"pass default {length_of(given)}")


def mode_cases(service, address):
    """Valid notices, only of one service."""
    outer = family_of(address)
    extra = over(service, outer)
    used = [service]
    for family in 4, 6:
        about = f"{service.name}: {family}"
        packet = big(service, family)
        whole = in_tunnel(service, address, packet)
        short = extra + HEADER[family] + 8
        for size in short, short + 1, 128, 548, None:
            tell(f"{about}, {size or 'all'} bytes quoted", used, service, address, packet, LOWER,
                 quote=size)
        for name, tags in TAGS.items():
            tell(f"{about}{name}, padding", used, service, address, packet, LOWER, quote=short, tags=tags,
                 padding=b"padding")
        tell(f"{about}, the floor", used, service, address, packet, INNER + extra)
        for mtu in INNER + extra - 1, FLOOR[outer], FLOOR[outer] - 1:
            shrugged(f"{about}, below the floor: {mtu}", used, notice(whole, mtu), refused=used,
                     address=address)
        agreed_cases(about, service, address, family)
        shrugged(f"{about}, no size", used, notice(whole, 0), refused=used, address=address)
        shrugged(f"{about}, larger than the packet", used, notice(whole, len(whole)), refused=used,
                 address=address)
        tell(f"{about}, one less than the packet", used, service, address, packet, len(whole) - 1)
        tell(f"{about}, a packet that was merged", used, service, address, big(service, family, 5000), LOWER)
        merged = in_tunnel(service, address, big(service, family, 5000))
        shrugged(f"{about}, no less than the egress", used, notice(merged, MTU), refused=used,
                 address=address)
        again_cases(about, service, address, packet)
        short_cases(about, service, address, whole, short)
        forged_cases(about, service, address, whole, short)
        sent(f"path: {about}, one of another size goes", service, big(service, family, 1000),
             flow_of(service, family, TCP_PROTO))


def again_cases(about, service, address, packet):
    """Path MTUs that are already known."""
    used, whole = [service], in_tunnel(service, address, packet)
    tell(f"{about}, said again", used, service, address, packet, LOWER, known={"path": LOWER},
         learned=False)
    tell(f"{about}, said less before", used, service, address, packet, LOWER, known={"path": 1300},
         learned=False, told=1300)
    shrugged(f"{about}, twice in a second", used, notice(whole, LOWER), known={"path": 1450}, refused=used,
             path=1450, address=address)
    tell(f"{about}, later", used, service, address, packet, LOWER,
         known={"path": 1450, "path_age": 4})
    tell(f"{about}, the lower one expired", used, service, address, packet, LOWER,
         known={"path": 1300, "path_age": 605})


def short_cases(about, service, address, whole, short):
    """Quotes that do not name the client, and those that tell nothing."""
    used, outer = [service], over(service, family_of(address))
    first = outer if service.mode == "gue" else outer + 8
    for size in sorted({first, first + 4, outer + 8, outer + 20, short - 1}):
        shrugged(f"{about}, {size} bytes quoted", used, notice(whole[:size], LOWER, whole=whole),
                 learned=used, path=LOWER, address=address)
    for size in 0, 1, HEADER[family_of(address)] - 1, first - 1:
        shrugged(f"{about}, {size} bytes quoted: too few", used, notice(whole[:size], LOWER, whole=whole),
                 address=address)
    shrugged(f"{about}, short and below the floor", used,
             notice(whole[:first], INNER + outer - 1, whole=whole), refused=used,
             address=address)


def agreed_cases(about, service, address, family):
    """Below the floor, the third flow with a pin decides, and the largest size."""
    outer, used = family_of(address), [service]
    low = INNER + over(service, outer) - 20
    flows = {sport: flow_of(service, family, TCP_PROTO, sport=sport) for sport in (41001, 41002, 41003, 41004)}

    def packet(sport):
        return ip(service, family) / tcp("PA", counting(1400), sport=sport)

    def said(sport, mtu=low):
        return notice(in_tunnel(service, address, packet(sport), flows[sport]), mtu)

    def settings(pinned, *first):
        return [("pin", f"{service.name} {address} {flowhash.hash_tuple(KEY, *flows[sport])}") for sport in pinned] + [
            ("first", link(CAME, (), bytes(one)).hex()) for one in first]

    everyone = 41001, 41002, 41003
    largest = settings(everyone, said(41001, low - 4), said(41002, low))
    for name, state, mtu in (("three flows", settings(everyone, said(41001), said(41002)), low),
                             ("three flows, one again", settings(everyone, said(41001), said(41001), said(41002)), low),
                             ("three flows of other sizes", largest, low)):
        begin(used)
        emit("case", f"path: {about}, {name}")
        for word, value in state:
            emit(word, value)
        given = said(41003, low - 8 if state is largest else low)
        gone = one_hop(packet(41003))
        answer = too_big_answer(gone.__class__(bytes(gone)), client_mtu(service, address, family, mtu))
        emit("frame", link(CAME, (), bytes(given)).hex())
        emit("out", link({"src": CAME["dst"], "dst": CAME["src"]}, (), bytes(answer)).hex())
        for who in "-", address:
            count(service, who, **{"path-learned": 1})
        emit("path", f"{service.name} {address} {mtu}")
        emit("expect", f"tx service-path-mtu {length_of(given)}")
    for name, state in (("two flows", settings(everyone, said(41002))),
                        ("one flow, four times", settings(everyone, said(41003), said(41003), said(41003))),
                        ("two flows, twice each", settings(everyone, said(41001), said(41003), said(41001))),
                        ("three flows, one without a pin", settings((41001, 41003), said(41001), said(41002))),
                        ("three flows without pins", settings((), said(41001), said(41002)))):
        shrugged(f"{about}, {name}", used, said(41003), refused=used, settings=state, address=address)
    less = FLOOR[outer] - 1
    shrugged(f"{about}, three flows below the least", used, said(41003, less), refused=used, address=address,
             settings=settings(everyone, said(41001, less), said(41002, less)))
    whole = in_tunnel(service, address, packet(41003), flows[41003])
    shrugged(f"{about}, three flows, one quote is short", used,
             notice(whole[:over(service, outer) + 8], low, whole=whole),
             refused=used, address=address, settings=settings(everyone, said(41001), said(41002)))


def changed(raw, at, *values):
    return raw[:at] + bytes(values) + raw[at + len(values):]


def forged_cases(about, service, address, whole, short):
    """One field differs from what we send. A short quote and a long one: a shorter quote has less."""
    used, outer, extra = [service], family_of(address), over(service, family_of(address))
    ends = {4: (12, 16), 6: (8, 24)}[outer]
    source = addresses(whole)[0]
    last = 3 if outer == 4 else 15
    wrong = {
        "to another backend": changed(whole, ends[1] + last, whole[ends[1] + last] ^ 64),
        "of another protocol": changed(whole, 9 if outer == 4 else 6, 47),
        "of another version": changed(whole, 0, whole[0] ^ 0x20),
        "of another length": changed(whole, 3 if outer == 4 else 5, whole[3 if outer == 4 else 5] ^ 1),
        "of no version inside": changed(whole, extra, 0x10 | whole[extra] & 15),
    }
    if outer == 4:
        wrong["without DF"] = changed(whole, 6, 0)
        wrong["of a fragment"] = changed(whole, 6, 0x40, 1)
        wrong["with options"] = changed(whole, 0, 0x46)
    if service.mode == "gue":
        wrong["to another port"] = changed(whole, HEADER[outer] + 3, 0xc1)
        wrong["from a port that is not GUE's"] = changed(whole, HEADER[outer], 0x40)
        wrong["with another length of UDP"] = changed(whole, HEADER[outer] + 5, whole[HEADER[outer] + 5] ^ 1)
    for name, raw in wrong.items():
        for size in short, extra + 8:
            shrugged(f"{about}, {size} bytes {name}", used, notice(raw[:size], LOWER, to=source),
                     address=address)
    other = changed(whole, ends[0] + last, whole[ends[0] + last] ^ 64)
    for size in short, extra + 8:
        shrugged(f"{about}, {size} bytes from another source", used,
                 notice(other[:size], LOWER, to=source), address=address)
    shrugged(f"{about}, to another host's source", used, notice(other, LOWER), refused=used,
             address=address)
    shrugged(f"{about}, to another host's source, short", used,
             notice(other[:extra + 8], LOWER, whole=other), address=address)
    inner_cases(about, service, address, whole, short)
    frame_cases(about, used, address, whole)


def inner_cases(about, service, address, whole, short):
    """The packet inside is not one that we would have sent."""
    used, extra = [service], over(service, family_of(address))
    family = whole[extra] >> 4
    vip_at = extra + {4: 19, 6: 39}[family]
    port_at = extra + HEADER[family] + 3
    for name, raw in {"to another address": changed(whole, vip_at, whole[vip_at] ^ 128),
                      "to another port": changed(whole, port_at, 81),
                      "of another length": changed(whole, extra + {4: 3, 6: 5}[family], 0)}.items():
        shrugged(f"{about}, inside {name}", used, notice(raw[:short], LOWER, whole=whole), address=address)
    if service.mode == "gue":
        raw = changed(whole, HEADER[family_of(address)] + 1, whole[HEADER[family_of(address)] + 1] ^ 1)
        shrugged(f"{about}, from the port of another flow", used, notice(raw, LOWER), refused=used,
                 address=address)


def frame_cases(about, used, address, whole):
    """The notice itself is invalid."""
    good = notice(whole, LOWER)
    raw = bytearray(bytes(good))
    raw[-1] ^= 1
    shrugged(f"{about}, a broken checksum", used, good, frame=link(CAME, (), bytes(raw)), address=address)
    head = {"dst": "ff:ff:ff:ff:ff:ff", "src": CAME["src"]}
    shrugged(f"{about}, in a frame to all", used, good, frame=link(head, (), bytes(good)),
             address=address)
    if family_of(address) == 4:
        other = notice(whole, LOWER)
        other[ICMP].code = 1
        shrugged(f"{about}, another code", used, other, address=address)
        shrugged(f"{about}, a first fragment", used, notice(whole[:544], LOWER, flags="MF"),
                 address=address)
        with_length = notice(whole[:128], LOWER)
        with_length[ICMP].length = 32  # RFC 4884
        tell_length(about, used, address, whole, with_length)


def tell_length(about, used, address, whole, given):
    service = used[0]
    gone = whole[over(service, 4):]
    gone = (IP if gone[0] >> 4 == 4 else IPv6)(gone)
    begin(used)
    answer = too_big_answer(gone, LOWER - over(service, 4))
    turned(f"path: {about}, with a length of RFC 4884", given, answer, "service-path-mtu")
    lines_count(service, address)


def lines_count(service, address):
    """Of the last case: its last line runs it."""
    run = lines.pop()
    for who in "-", address:
        count(service, who, **{"path-learned": 1})
    lines.append(run)


def age_cases(service, address):
    """A packet that is too long for a path MTU of the past."""
    extra = over(service, family_of(address))
    for family in 4, 6:
        about, packet = f"path: {service.name}: {family}", big(service, family)
        flow, whole = flow_of(service, family, TCP_PROTO), in_tunnel(service, address, packet)
        for name, known, mtu in (("just said", {"path": LOWER}, LOWER),
                                 ("said some minutes ago", {"path": LOWER, "path_age": 590}, LOWER),
                                 ("one byte less", {"path": len(whole) - 1}, len(whole) - 1)):
            begin([service], **known)
            turned(f"{about} too big, {name}", packet, too_big_answer(packet, mtu - extra),
                   "service-too-big", settings=[("path", f"{service.name} {address} {known['path']}")])
        for name, known, after in (("after ten minutes", {"path": LOWER, "path_age": 605}, 0),
                                   ("just fits", {"path": len(whole)}, len(whole)),
                                   ("more than the egress", {"path": 9000}, 9000)):
            begin([service], **known)
            sent(f"{about} sent, {name}", service, packet, flow,
                 settings=[("path", f"{service.name} {address} {after}")])
        least_cases(about, service, address, family)
        begin([service], path=9000)
        larger = big(service, family, MTU)
        turned(f"{about} too big for the egress", larger, too_big_answer(larger, MTU - extra),
               "service-too-big")


def least_cases(about, service, address, family):
    """The least path MTU that is accepted from a router does not cut off a client, which sends 552 bytes of IPv4
    or 1280 of IPv6 whatever it is told."""
    floor = FLOOR[family_of(address)]
    room = client_mtu(service, address, family, floor)
    header = HEADER[family] + 20
    state = [("path", f"{service.name} {address} {floor}")]
    begin([service], path=floor)
    sent(f"{about} fits the least", service, big(service, family, room - header),
         flow_of(service, family, TCP_PROTO), settings=state)
    begin([service], path=floor)
    longer = big(service, family, room + 1 - header)
    turned(f"{about} too big for the least", longer, too_big_answer(longer, room), "service-too-big",
           settings=state)


def spread_cases(service, address):
    """The source of the outer header is drawn from the flow: a packet with another source was not sent."""
    used, extra = [service], over(service, family_of(address))
    for family in 4, 6:
        packet = big(service, family)
        whole = in_tunnel(service, address, packet)
        tell(f"{service.name}: {family}, a source that is drawn", used, service, address, packet, LOWER)
        at = {4: 15, 6: 23}[family_of(address)]
        other = changed(whole, at, whole[at] ^ 1)
        shrugged(f"{service.name}: {family}, a source of another flow", used, notice(other, LOWER),
                 refused=used, address=address)
        shrugged(f"{service.name}: {family}, a source of another flow, short", used,
                 notice(other[:extra + 8], LOWER, whole=other), learned=used, path=LOWER, address=address)


def fragment_cases(service, address):
    """With `hash source` later fragments go to the same backend and are not answered."""
    raw = bytes(ip(service, 4) / udp(counting(2000)))
    flow = flow_of(service, 4, UDP_PROTO)
    later = ip(service, 4, proto=17, frag=80, flags="MF") / Raw(raw[20 + 640:20 + 640 + 1400])
    whole = in_tunnel(service, address, later, flow)
    shrugged(f"{service.name}: a later fragment", [service], notice(whole, LOWER), learned=[service],
             path=LOWER, address=address)
    first = ip(service, 4, proto=17, flags="MF") / Raw(raw[20:20 + 1440])
    tell(f"{service.name}: a first fragment", [service], service, address, first, LOWER)


def shared_cases(used, ours, address):
    """Services that have the same backend; `ours`: those with this mode and source."""
    one = ours[0]
    whole = in_tunnel(one, address, big(one, 4))
    tell("shared: the service is told", used, one, address, big(one, 4), LOWER)
    shrugged("shared: a short quote is for all of them", used, notice(whole[:28], LOWER, whole=whole),
             learned=ours, path=LOWER, path_of=ours, address=address)


def policies():
    def alone(name, address, mode, **fields):
        return Service(name, vips(1), {address: Hop(mtu=MTU)}, mode, **fields)

    for mode, address in (("ipip", "10.30.0.1"), ("ipip", "2001:db8:30::1"), ("gue", "10.30.0.2"),
                          ("gue", "2001:db8:30::2")):
        service = alone(f"narrow-{mode}{family_of(address)}", address, mode)
        load([], [service])
        mode_cases(service, address)
        age_cases(service, address)
    for mode, hashed in ("ipip", "tuple"), ("gue", "source"):
        for address in "10.30.0.3", "2001:db8:30::3":
            service = alone(f"drawn-{mode}{family_of(address)}", address, mode, hash=hashed,
                            sources={4: "10.9.0.0/16", 6: "2001:db8:9::/64"})
            load([], [service])
            spread_cases(service, address)
    by_source = alone("by-source", "10.30.0.4", "ipip", hash="source")
    load([], [by_source])
    fragment_cases(by_source, "10.30.0.4")
    same = [Service(name, vips(n), {"10.30.0.5": Hop(mtu=MTU)}, mode) for n, (name, mode) in enumerate(
        (("one", "ipip"), ("two", "ipip"), ("three", "gue"), ("four", "dr")), 1)]
    load([], same)
    shared_cases(same, same[:2], "10.30.0.5")
    mirror = alone("mirror", "10.30.0.7", "gue")
    load([], [mirror])
    tell("many at once", [mirror], mirror, "10.30.0.7", big(mirror, 6), LOWER, settings=[("burst", 4000)])
    direct = Service("direct", vips(1), {"10.30.0.6": Hop(mtu=MTU)}, "dr")
    tunnel = alone("direct", "10.30.0.6", "ipip")
    load([], [direct])
    passed("path: no tunnels", notice(in_tunnel(tunnel, "10.30.0.6", big(tunnel, 4)), LOWER))
