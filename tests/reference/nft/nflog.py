# SPDX-License-Identifier: GPL-2.0-only
"""Receives what nft's `log group N` reports: a packet, and the prefix of the rule that matched it."""
import socket
import struct

NETLINK_NETFILTER = 12
SUBSYSTEM = 4 << 8  # NFNL_SUBSYS_ULOG
MSG_PACKET, MSG_CONFIG = SUBSYSTEM, SUBSYSTEM | 1
CFG_CMD, CFG_MODE, CFG_QTHRESH = 1, 2, 5
PAYLOAD, PREFIX = 9, 10
REQUEST_ACK = 5
HEADER, GENERIC, ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("!BBH"), struct.Struct("=HH")
SO_RCVBUFFORCE = 33
PATIENCE_S = 10


def attribute(kind, content):
    return ATTRIBUTE.pack(4 + len(content), kind) + content + bytes(-len(content) % 4)


def attributes(content):
    at = 0
    while at + 4 <= len(content):
        length, kind = ATTRIBUTE.unpack_from(content, at)
        yield kind & 0x3fff, content[at + 4:at + length]
        at += (length + 3) & ~3


class Log:
    """Group `group` of the network namespace in which it is opened."""

    def __init__(self, group):
        self.group = group
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.socket.settimeout(PATIENCE_S)
        self.configure(CFG_CMD, bytes((1, )))  # bind
        self.configure(CFG_MODE, struct.pack("!IBx", 64, 2))  # the first bytes of a packet
        self.configure(CFG_QTHRESH, struct.pack("!I", 1))

    def configure(self, kind, content):
        body = GENERIC.pack(0, 0, self.group) + attribute(kind, content)
        self.socket.send(HEADER.pack(16 + len(body), MSG_CONFIG, REQUEST_ACK, 1, 0) + body)
        answer = self.socket.recv(4096)
        code = struct.unpack_from("=i", answer, 16)[0]
        if code:
            raise OSError(-code, "nfnetlink_log refuses")

    def read(self):
        """The next (prefix, packet) pairs."""
        content, at = self.socket.recv(1 << 20), 0
        while at + 16 <= len(content):
            length, kind = HEADER.unpack_from(content, at)[:2]
            if kind == MSG_PACKET:
                found = dict(attributes(content[at + 20:at + length]))
                yield found[PREFIX].rstrip(b"\0").decode(), found.get(PAYLOAD, b"")
            at += (length + 3) & ~3
