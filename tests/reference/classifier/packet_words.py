# SPDX-License-Identifier: GPL-2.0-only
"""Packets of the fixed cases, written in words.

    tcp | udp | sctp | icmp | icmp6 | proto N     from ADDRESS [PORT]    to ADDRESS [PORT]
    flags NAMES | flags 0xHEX    type N    code N    ttl N    dscp N    length N    on IFACE
    mac ADDRESS (of the source)
    vlan N (again for each tag, outermost first; N@0xTYPE for another tag type)
    first | later | atomic    at N (the fragment header comes after N extension headers)
    ext N[+UNITS]    options N    tcpoptions N    ethertype 0xHEX    over    established    unroutable
and then, on the bytes:
    pad N    cut N (from the end)    ip OFFSET 0xHEX..    l4 OFFSET 0xHEX..    raw HEX

Without these: tcp, ttl 64, flags syn, no payload."""
import ipaddress

from fields import FLAGS
from frames import ATOMIC, FIRST, ICMP, ICMP6, LATER, SCTP, TCP, UDP, Spec, build

PROTOS = {"tcp": TCP, "udp": UDP, "sctp": SCTP, "icmp": ICMP, "icmp6": ICMP6}
FRAGMENTS = {"first": FIRST, "later": LATER, "atomic": ATOMIC}
NUMBERS = {"proto": "proto", "type": "type", "code": "code", "ttl": "ttl", "dscp": "dscp", "length": "length",
           "options": "options", "tcpoptions": "tcp_options", "at": "fragment_at", "pad": "padding",
           "ethertype": "ethertype"}
CHANGES = ("cut", "ip", "l4", "raw")


def number(word):
    return int(word, 0)


def pair(word, mark, second):
    """A number, then maybe a mark and another number."""
    first, _, more = word.partition(mark)
    return number(first), number(more) if more else second


def flags_of(word):
    if word[0] == "0":
        return number(word)
    return sum(1 << FLAGS.index(name) for name in word.split(",") if name != "none")


class Reader:
    """The words of one packet."""

    def __init__(self, text):
        self.words = text.split()
        self.iface, self.flags = "-", []
        self.spec = Spec()
        self.spec.proto, self.spec.ttl, self.spec.flags, self.spec.offset = TCP, 64, flags_of("syn"), 100

    def next(self):
        return self.words.pop(0)

    def end(self, address, port):
        found = ipaddress.ip_address(self.next())
        self.spec.family = found.version
        setattr(self.spec, address, int(found))
        if self.words and self.words[0].isdigit():
            setattr(self.spec, port, number(self.next()))

    def field(self, word):
        spec = self.spec
        if word in PROTOS:
            spec.proto = PROTOS[word]
        elif word in FRAGMENTS:
            spec.fragment = FRAGMENTS[word]
        elif word in NUMBERS:
            setattr(spec, NUMBERS[word], number(self.next()))
        elif word in ("over", "established", "unroutable"):
            self.flags.append(word)
        elif word == "from":
            self.end("src", "sport")
        elif word == "to":
            self.end("dst", "dport")
        elif word == "flags":
            spec.flags = flags_of(self.next())
        elif word == "vlan":
            tci, kind = pair(self.next(), "@", 0x8100)
            spec.tags.append((kind, tci))
        elif word == "ext":
            spec.exts.append(pair(self.next(), "+", 0))
        elif word == "mac":
            spec.mac = int(self.next().replace(":", ""), 16)
        elif word == "on":
            self.iface = self.next()
        else:
            raise ValueError(f"unknown word '{word}'")

    def change(self, word, frame):
        if word == "cut":
            del frame.bytes[-number(self.next()):]
        elif word == "raw":
            frame.bytes[:] = bytes.fromhex(self.next())
        else:
            at = {"ip": frame.ip, "l4": frame.transport}[word] + number(self.next())
            patch = bytes.fromhex(self.next().removeprefix("0x"))
            if at + len(patch) > len(frame.bytes):
                raise ValueError("a change after the end")
            frame.bytes[at:at + len(patch)] = patch

    def line(self):
        """As refmatch reads it."""
        frame = None
        while self.words:
            word = self.next()
            if word in CHANGES:
                frame = frame or build(self.spec)
                self.change(word, frame)
            elif frame and word != "on":
                raise ValueError(f"'{word}' after a change of bytes")
            else:
                self.field(word)
        frame = frame or build(self.spec)
        return f"{self.iface} {','.join(self.flags) or '-'} {frame.bytes.hex() or '-'}\n"
