#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Clients that the API of the agent could do without, until standard input ends.

usage: hostile.py SOCKET COUNT ADDRESS PORT COUNT

As many connections to the socket and to the address of the metrics are kept at once: idle ones, and ones that send a
byte at a time, junk, bodies without an end, requests whose answers they do not read, or for which they do not wait. Who
is closed comes again. How often each kind was closed is printed as JSON.
"""
import asyncio
import collections
import contextlib
import json
import random
import resource
import sys

AGAIN_S = 1
HEAD = b"Host: x\r\n\r\n"
closed = collections.Counter()


async def until_closed(reader):
    while await reader.read(65536):
        pass


async def idle(reader, writer):
    await until_closed(reader)


async def drip(reader, writer):
    for byte in b"GET /v1/overlay?what=" + b"1" * 1000:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.5)


async def junk(reader, writer):
    writer.write(random.randbytes(random.randrange(20000)) + b"\r\n\r\n")
    await until_closed(reader)


async def huge(reader, writer):
    writer.write(b"POST /v1/batch HTTP/1.1\r\nContent-Length: 16000000\r\n" + HEAD + b"#" * (4 << 20))
    await until_closed(reader)


async def chunk(reader, writer):
    writer.write(b"POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD)
    while True:
        writer.write(b"0" * 65536)
        await writer.drain()


async def brackets(reader, writer):
    writer.write(b"POST /v1/block HTTP/1.1\r\nContent-Length: 200000\r\n" + HEAD + b"[" * 200000)
    await until_closed(reader)


async def deaf(reader, writer):
    writer.transport.pause_reading()
    for _ in range(200):
        writer.write(b"GET /metrics HTTP/1.1\r\n" + HEAD)
        await writer.drain()
    await asyncio.sleep(60)


async def hasty(reader, writer):
    writer.write(b"GET /v1/rules HTTP/1.1\r\n" + HEAD)
    await writer.drain()
    await asyncio.sleep(0.01)


# Of a hundred.
ON_SOCKET = [(idle, 50), (drip, 40), (junk, 5), (huge, 1), (chunk, 1), (brackets, 1), (deaf, 1), (hasty, 1)]
ON_ADDRESS = [(idle, 50), (drip, 35), (junk, 5), (chunk, 5), (deaf, 5)]


async def client(kind, connect):
    await asyncio.sleep(random.random() * 2)
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await connect()
            with contextlib.suppress(OSError):
                await kind(reader, writer)
            closed[kind.__name__] += 1
            writer.transport.abort()
        await asyncio.sleep(AGAIN_S)


def clients(kinds, count, connect):
    return [asyncio.ensure_future(client(kind, connect)) for kind, share in kinds for _ in range(count * share // 100)]


async def main():
    path, on_socket, address, port, on_address = sys.argv[1:]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20000), hard))
    tasks = clients(ON_SOCKET, int(on_socket), lambda: asyncio.open_unix_connection(path))
    tasks += clients(ON_ADDRESS, int(on_address), lambda: asyncio.open_connection(address, int(port)))
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    await lines.read()
    for task in tasks:
        task.cancel()
    print(json.dumps(closed), flush=True)


asyncio.run(main())
