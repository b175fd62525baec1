#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Servers of a lab's backend in addition to its web server: uploads and UDP.

usage: backend.py NAME SOCKET PIDFILE

Accepts HTTP uploads on a unix socket, to which the web server forwards them. Answers UDP on port 7 (echo) and
443 (NAME, a space, the request), on all addresses. Listens, writes its process id, and continues in the
background.
"""

import hashlib
import http.server
import os
import socket
import socketserver
import struct
import sys
import threading

PKTINFO = struct.Struct("=16sI")


class Upload(http.server.BaseHTTPRequestHandler):
    """Answers an upload with "NAME BYTES SHA256"."""

    def do_PUT(self):  # pylint: disable=invalid-name # http.server's name
        left = int(self.headers.get("Content-Length", -1))
        if left < 0:
            self.send_error(411)
            return
        digest, got = hashlib.sha256(), 0
        while got < left:
            data = self.rfile.read(min(left - got, 1 << 18))
            if not data:
                break
            digest.update(data)
            got += len(data)
        body = f"{self.server.name} {got} {digest.hexdigest()}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT

    def log_message(self, *_):
        pass


class Uploads(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, name, path):
        self.name = name
        super().__init__(path, Upload)

    def handle_error(self, *_):
        pass  # the client has closed the connection


def udp_socket(port):
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    sock.bind(("::", port))
    return sock


def answer(sock, prefix):
    """Answers every datagram from the address to which it was sent: a VIP or an address of the host."""
    while True:
        try:
            data, ancillary, _, client = sock.recvmsg(65535, 256)
            address, _ = PKTINFO.unpack(ancillary[0][2])
            source = (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, PKTINFO.pack(address, 0))
            sock.sendmsg([prefix + data], [source], 0, client)
        except OSError:
            pass  # the client is unreachable, or the answer is too long


def main():
    name, path, pidfile = sys.argv[1:]
    uploads = Uploads(name, path)
    sockets = [(udp_socket(7), b""), (udp_socket(443), f"{name} ".encode())]
    pid = os.fork()
    if pid:
        with open(pidfile, "w", encoding="ascii") as file:
            print(pid, file=file)
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    for each in sockets:
        threading.Thread(target=answer, args=each, daemon=True).start()
    uploads.serve_forever()


main()
