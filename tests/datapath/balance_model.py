# SPDX-License-Identifier: GPL-2.0-only
"""The expected output of the balancer, built by scapy, which computes all checksums and lengths."""
import ipaddress
import struct

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import checksum

import flowhash

SEED = "frames"
KEY = flowhash.key_of(SEED)
RING = 4093
GUE_PORT = 6080
CAME = {"src": "02:00:00:00:00:02", "dst": "02:00:00:00:00:01"}  # the frame that comes in
HERE = "here"
TCP_PROTO, UDP_PROTO, SCTP_PROTO = 6, 17, 132


def family_of(address):
    return ipaddress.ip_address(address).version


def link(head, tags, packet, padding=b""):
    """A frame around bytes of IP; tags: pairs of TPID and TCI, outermost first."""
    addresses = bytes(Ether(**head))[:12]
    kind = 0x0800 if packet[0] >> 4 == 4 else 0x86dd
    return (addresses + b"".join(struct.pack("!HH", *tag) for tag in tags)
            + struct.pack("!H", kind) + packet + padding)


class Hop:
    """The path to a backend."""

    def __init__(self, device="in", vlan=0, mtu=9000, no_xmit=0, number=1):
        self.device, self.vlan, self.mtu, self.no_xmit = device, vlan, mtu, no_xmit
        self.mac, self.own = f"02:bb:00:00:00:{number:02x}", f"02:aa:00:00:00:{number:02x}"

    def verdict(self):
        return "tx" if self.device == "in" else "redirect"

    def frame(self, packet, padding=b""):
        """As scapy builds it: the tag of the egress, nothing of the ingress."""
        built = Ether(src=self.own, dst=self.mac)
        if self.vlan:
            built = built / Dot1Q(vlan=self.vlan)
        return bytes(built / packet) + padding


class Service:
    """A service of the policy; backends: address to (Hop, weight)."""

    def __init__(self, name, vips, backends, mode, **fields):
        self.name, self.vips, self.mode = name, vips, mode
        self.backends = {address: hop if isinstance(hop, tuple) else (hop, 1)
                         for address, hop in backends.items()}
        self.proto = fields.pop("proto", "tcp, udp, sctp")
        self.port = fields.pop("port", "80")
        self.hash = fields.pop("hash", "tuple")
        self.check = fields.pop("check", "none")
        self.sources = fields.pop("sources", {4: "10.255.0.1", 6: "2001:db8:ffff::1"})
        assert not fields
        weights = {address: weight for address, (_, weight) in self.backends.items()}
        self.slots = (flowhash.ring(KEY, weights, RING)
                      if HERE not in weights and any(weights.values()) else None)

    def vip(self, family):
        return next(vip for vip in self.vips if family_of(vip.split("/")[0]) == family)

    def policy(self):
        lines = [f"service {self.name} {{", f"\tvip {', '.join(self.vips)}", f"\tproto {self.proto}",
                f"\tport {self.port}", f"\tmode {self.mode}", f"\thash {self.hash}",
                f"\tring {RING}", "\tpins 1024", f"\tcheck {self.check}"]
        lines += [f"\tbackend {address} weight {weight}"
                 for address, (_, weight) in self.backends.items()]
        return [*lines, "}"]

    def nexthops(self):
        for address, (hop, _) in self.backends.items():
            if address == HERE:
                continue
            family = family_of(address)
            yield (f"{self.name} {address} device {hop.device} mac {hop.mac} own {hop.own} "
                   f"vlan {hop.vlan} mtu {hop.mtu} no-xmit {hop.no_xmit} "
                   f"source {self.sources[family]}")

    def flow_hash(self, flow):
        """flow: source, destination, ports and protocol."""
        return (flowhash.hash_source(KEY, flow[0]) if self.hash == "source"
                else flowhash.hash_tuple(KEY, *flow))

    def backend(self, flow):
        if HERE in self.backends:
            return HERE
        return self.slots[flowhash.slot_of(self.flow_hash(flow), RING)]

    def source(self, family, hashed):
        """Of the outer header: the host bits are the upper half of the hash."""
        net = ipaddress.ip_network(self.sources[family])
        host = (hashed >> 32) & (int(net.hostmask) & 0xffffffff)
        return str(net.network_address + host)

    def encapsulated(self, address, packet, hashed):
        """The packet, its TTL decremented, in the encapsulation of the mode."""
        if self.mode == "dr":
            return packet
        family = family_of(address)
        tos = packet.tos if packet.version == 4 else packet.tc
        ends = {"src": self.source(family, hashed), "dst": address}
        proto = {"gue": UDP_PROTO, "ipip": 4 if packet.version == 4 else 41}[self.mode]
        if family == 4:
            outer = IP(**ends, tos=tos, id=hashed >> 16 & 0xffff, flags="DF", ttl=64, proto=proto)
        else:
            outer = IPv6(**ends, tc=tos, fl=hashed & 0xfffff, hlim=64, nh=proto)
        inner = Raw(bytes(packet))
        if self.mode == "ipip":
            return outer / inner
        udp = UDP(sport=0xc000 | hashed & 0x3fff, dport=GUE_PORT)
        if family == 4:
            udp.chksum = 0
        return outer / udp / inner


def one_hop(packet):
    """TTL or hop limit decremented, with the checksum that scapy computes."""
    after = packet.copy()
    if after.version == 4:
        after.ttl -= 1
        after.chksum = None
    else:
        after.hlim -= 1
    return after


def pseudo_sum(src, dst, proto, length):
    """RFC 9293 section 3.1, RFC 8200 section 8.1: the partial checksum that a sender leaves to its device."""
    ends = ipaddress.ip_address(src).packed + ipaddress.ip_address(dst).packed
    tail = struct.pack("!BBH", 0, proto, length) if len(ends) == 8 else struct.pack("!IHBB", length, 0,
                                                                                0, proto)
    return 0xffff ^ checksum(ends + tail)


def ones_complement(value):
    """The representative of 1 … 65535."""
    return (value - 1) % 0xffff + 1
