#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Servers that remember when they were asked for what.

usage: instants.py web PORT | dns ADDRESS PORT TTL

`web` answers HTTP checks of all addresses; a line ADDRESS on standard input makes that one fail from now on. `dns`
answers each A query with two addresses, of which one changes with each answer if the name does not begin with p. At the end of standard input
{what: [seconds of the monotonic clock]} is printed as JSON.
"""
import asyncio
import collections
import json
import os
import socket
import struct
import sys
import time

asked = collections.defaultdict(list)
failing = set()


async def check(reader, writer):
    address = writer.get_extra_info("sockname")[0]
    asked[address].append(time.monotonic())
    status = "500 Bad" if address in failing else "200 OK"
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    writer.close()


class Names(asyncio.DatagramProtocol):
    def __init__(self, ttl):
        self.ttl, self.transport, self.answers = ttl, None, 0

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        end = data.index(b"\0", 12) + 5
        question, (kind,) = data[12:end], struct.unpack("!H", data[end - 4:end - 2])
        addresses = []
        if kind == 1:
            asked[question[1:1 + question[0]].decode()].append(time.monotonic())
            self.answers += 1
            changing = 0 if question[1:2] == b"p" else self.answers % 250
            addresses = [socket.inet_aton("198.51.100.7"), bytes([198, 51, 101, changing])]
        records = [struct.pack("!HHHIH", 0xC00C, 1, 1, self.ttl, 4) + address for address in addresses]
        header = data[:2] + struct.pack("!HHHHH", 0x8580, 1, len(records), 0, 0)
        self.transport.sendto(header + question + b"".join(records), addr)


async def main():
    loop = asyncio.get_running_loop()
    if sys.argv[1] == "web":
        await asyncio.start_server(check, "", int(sys.argv[2]), backlog=1024)
    else:
        await loop.create_datagram_endpoint(lambda: Names(int(sys.argv[4])), local_addr=(sys.argv[2], int(sys.argv[3])))
    print("running", flush=True)
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        failing.add(line.decode().strip())
    print(json.dumps(asked), flush=True)
    os._exit(0)  # connections may be open


asyncio.run(main())
