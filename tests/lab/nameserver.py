# SPDX-License-Identifier: GPL-2.0-only
"""A name server on the far side of a lab that says what a test wants, by UDP and TCP, and writes down what it was asked."""
import contextlib
import ipaddress
import select
import socket
import struct
import threading
import time

from labnet import socket_in

A, CNAME, AAAA = 1, 5, 28
NOERROR, SERVFAIL, NXDOMAIN = 0, 2, 3
UDP_BYTES = 512
RECEIVE_BYTES = 4 << 20  # a burst shall be counted, not lost


def packed(name):
    labels = [label.encode() for label in name.rstrip(".").split(".")]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def record(owner, kind, ttl, data):
    return packed(owner) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data


def read_question(query):
    """(name, type, where the question ends)"""
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]])
        at += 1 + query[at]
    return b".".join(labels).decode().lower(), struct.unpack_from("!H", query, at + 1)[0], at + 5


class NameServer:
    """names[NAME] = (TTL, ADDRESS...), CNAMEs as "=NAME"; or a response code; or None: silence. fallback(NAME): others."""

    port = 5353

    def __init__(self, pair):
        self.names, self.asked = {}, []  # asked: (monotonic time, name, type, "udp" or "tcp")
        self.fallback = lambda name: NXDOMAIN
        self.resolver = f"{pair.far4}:{self.port}"
        self.udp = socket_in(pair.far_netns, socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.SOL_SOCKET, 33, RECEIVE_BYTES)  # SO_RCVBUFFORCE
        self.tcp = socket_in(pair.far_netns, socket.AF_INET, socket.SOCK_STREAM)
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for sock in self.udp, self.tcp:
            sock.bind((pair.far4, self.port))
        self.tcp.listen(64)
        self.ends, self.end = socket.socketpair()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def records(self, name, kind):
        """(response code, [record]); a chain of CNAMEs is part of the answer. None: no answer at all."""
        found, made = self.names.get(name, self), []
        found = self.fallback(name) if found is self else found
        if found is None or isinstance(found, int):
            return found if found is None else (found, [])
        ttl, *addresses = found
        for address in addresses:
            if address.startswith("="):
                made.append(record(name, CNAME, ttl, packed(address[1:])))
                code, more = self.records(address[1:], kind) or (SERVFAIL, [])
                return code, made + more
            data = ipaddress.ip_address(address).packed
            if kind == (A if len(data) == 4 else AAAA):
                made.append(record(name, kind, ttl, data))
        return NOERROR, made

    def reply(self, query, way):
        name, kind, end = read_question(query)
        self.asked.append((time.monotonic(), name, kind, way))
        found = self.records(name, kind)
        if not found:
            return None
        code, answers = found

        def message(flags, answers):
            header = struct.pack("!HHHHHH", struct.unpack_from("!H", query)[0], flags | code, 1, len(answers), 0, 0)
            return header + query[12:end] + b"".join(answers)

        whole = message(0x8580, answers)
        return whole if way == "tcp" or len(whole) <= UDP_BYTES else message(0x8780, [])  # truncated

    def serve(self):
        while True:
            ready = select.select([self.udp, self.tcp, self.ends], [], [])[0]
            if self.ends in ready:
                return
            if self.udp in ready:
                query, client = self.udp.recvfrom(4096)
                answer = self.reply(query, "udp")
                if answer:
                    self.udp.sendto(answer, client)
            if self.tcp in ready:
                threading.Thread(target=self.serve_one, args=(self.tcp.accept()[0],), daemon=True).start()

    def serve_one(self, client):
        with client, contextlib.suppress(OSError, struct.error):
            client.settimeout(10)
            while True:
                size = struct.unpack("!H", client.recv(2, socket.MSG_WAITALL))[0]
                answer = self.reply(client.recv(size, socket.MSG_WAITALL), "tcp")
                if answer:
                    client.sendall(struct.pack("!H", len(answer)) + answer)

    def close(self):
        self.end.send(b"x")
        self.thread.join()
        for sock in self.udp, self.tcp, self.ends, self.end:
            sock.close()

    def rate(self, begin, end):
        """Queries in each second between two times."""
        counts = [0] * int(end - begin)
        for when, *_ in self.asked:
            if begin <= when < begin + len(counts):
                counts[int(when - begin)] += 1
        return counts


@contextlib.contextmanager
def name_server(pair):
    server = NameServer(pair)
    try:
        yield server
    finally:
        server.close()
