#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Answers every HTTP request on port 80, IPv4 and IPv6, with a line that names the host and its address.

usage: httpd.py PIDFILE

Listens, writes the process id of the server, and continues in the background.
"""

import os
import socket
import sys
import threading


def host_of(request):
    for line in request.split("\r\n"):
        if line.lower().startswith("host:"):
            return line[5:].strip()
    return "?"


def answer(conn):
    try:
        with conn:
            conn.settimeout(2)
            request = conn.recv(4096).decode("latin-1")
            address = conn.getsockname()[0].removeprefix("::ffff:")
            body = f"{host_of(request)} answers from {address}\n"
            conn.sendall(
                "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode("latin-1")
            )
    except OSError:
        pass


def serve(listener):
    while True:
        conn, _ = listener.accept()
        threading.Thread(target=answer, args=(conn,), daemon=True).start()


def main():
    listener = socket.create_server(
        ("::", 80), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128
    )
    pid = os.fork()
    if pid:
        with open(sys.argv[1], "w", encoding="ascii") as pidfile:
            print(pid, file=pidfile)
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    serve(listener)


main()
