#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Many clients at once. Each downloads a different part of /even and checks it byte for byte.

usage: crowd.py FILE ADDRESSES COUNT BYTES RATE [SECONDS NEWCOMERS]

COUNT downloads of BYTES bytes each start together, at RATE bytes per second, with the addresses in turn as
sources. Once all of them transfer data, "running" is printed. Another client arrives every SECONDS /
NEWCOMERS seconds, for SECONDS or until standard input ends, and requests /name. At the end, a JSON list of
{"backend", "error", "bytes", "newcomer", "silent_s"} with an element for each client is printed; silent_s is the longest
time in which a download got no data, so that the client sent nothing.
"""

import asyncio
import contextlib
import json
import mmap
import os
import resource
import sys
import time

NETWORKS = {4: "198.18.{}.{}", 6: "2001:db8::{:x}:{:x}"}  # the client has all of these
NAME_S = 10  # the maximum for a newcomer; a download may take twice its time plus this


class Client:
    """One connection. It has a source address of its own, so that `hash source` spreads connections as well."""

    def __init__(self, number, address, newcomer=False):
        self.number, self.address, self.newcomer = number, address, newcomer
        self.backend = self.error = None
        self.got = 0
        self.offset = 0
        self.heard = None
        self.silent = 0.0

    def source(self):
        form = NETWORKS[6 if ":" in self.address else 4]
        return form.format(self.number // 250 % 250 + 1, self.number % 250 + 1)

    async def ask(self, path, *headers):
        reader, writer = await asyncio.open_connection(
            self.address, 80, local_addr=(self.source(), 0), limit=1 << 18
        )
        lines = [f"GET {path} HTTP/1.1", "Host: lab", "Connection: close", *headers]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        status = await reader.readline()
        if status.split(b" ")[1:2] not in ([b"200"], [b"206"]):
            raise ValueError(f"answer {status!r}")
        while (line := await reader.readline()).strip():
            if line.lower().startswith(b"x-backend:"):
                self.backend = line.split(b":")[1].strip().decode()
        return reader, writer

    async def name(self):
        reader, writer = await self.ask("/name")
        body = await reader.read()
        writer.close()
        if body.decode().strip() != self.backend:
            raise ValueError(f"{self.backend} answers {body!r}")
        self.got = len(body)

    async def download(self, big, size, rate, started):
        self.offset = self.number * 104729 % (len(big) - size)
        last = self.offset + size - 1
        try:
            reader, writer = await self.ask(
                f"/even?rate={rate}", f"Range: bytes={self.offset}-{last}"
            )
        finally:
            started()
        self.hear()
        while data := await reader.read(1 << 16):
            self.hear()
            at = self.offset + self.got
            if data != big[at : at + len(data)]:
                raise ValueError(f"wrong bytes from {at} on")
            self.got += len(data)
        writer.close()
        if self.got != size:
            raise ValueError(f"{self.got} of {size} bytes")

    def hear(self):
        now = time.monotonic()
        self.silent = max(self.silent, now - (self.heard or now))
        self.heard = now

    async def tell(self, work, limit_s=NAME_S):
        """Runs the connection and records how it failed."""
        try:
            await asyncio.wait_for(work, limit_s)
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            self.error = f"{type(error).__name__}: {error}"
            self.hear()

    def account(self):
        return {"backend": self.backend, "error": self.error, "bytes": self.got,
                "newcomer": self.newcomer, "silent_s": round(self.silent, 2)}


async def crowd(big, addresses, count, size, rate, seconds=0, newcomers=0):
    waiting = asyncio.Event()
    left = [count]

    def started():
        left[0] -= 1
        if not left[0]:
            waiting.set()

    def client(number, newcomer):
        return Client(number, addresses[number % len(addresses)], newcomer)

    clients = [client(i, False) for i in range(count)]
    tasks = []
    for each in clients:
        work = each.download(big, size, rate, started)
        tasks.append(asyncio.ensure_future(each.tell(work, 2 * size / rate + NAME_S)))
        if len(tasks) % 50 == 0:
            await asyncio.sleep(0.05)
    if count:
        await waiting.wait()
    print("running", flush=True)
    over = asyncio.Event()

    def end():
        asyncio.get_running_loop().remove_reader(0)
        over.set()

    asyncio.get_running_loop().add_reader(0, end)
    for i in range(newcomers):
        each = client(count + i, True)
        clients.append(each)
        tasks.append(asyncio.ensure_future(each.tell(each.name())))
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(over.wait(), seconds / newcomers)
        if over.is_set():
            break
    await asyncio.gather(*tasks)
    return [each.account() for each in clients]


def main():
    path, addresses, *numbers = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
    with open(path, "rb") as file:
        big = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    result = asyncio.run(crowd(big, addresses.split(","), *map(json.loads, numbers)))
    print(json.dumps(result), flush=True)
    os._exit(0)  # immediately, with connections still open


main()
