#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs the program of flood.bpf.c with live frames, as fast as it can, or at a pace.

usage: flood.py PINNED_PROGRAM RATE: in the network namespace of the device that the program sends to; RATE
in packets a second, 0: all it can. Until standard input ends; then prints packets and seconds.
"""

import ctypes
import os
import select
import struct
import sys
import time

BPF_PROG_TEST_RUN, BPF_OBJ_GET = 10, 7
LIVE_FRAMES = 1 << 1
SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
FRAME_BYTES, BATCH, TURN_S = 60, 64, 0.02

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    done = libc.syscall(SYS_BPF, command, attr, len(attr))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def send(program, count):
    data = ctypes.create_string_buffer(FRAME_BYTES)
    attr = struct.pack("=IIIIQQIIIIQQIII4x", program, 0, FRAME_BYTES, 0, ctypes.addressof(data), 0,
                       count, 0, 0, 0, 0, 0, LIVE_FRAMES, 0, BATCH)
    bpf(BPF_PROG_TEST_RUN, ctypes.create_string_buffer(attr, len(attr)))


def main():
    path, rate = sys.argv[1], int(sys.argv[2])
    name = ctypes.create_string_buffer(path.encode())
    attr = struct.pack("=QII", ctypes.addressof(name), 0, 0)
    program = bpf(BPF_OBJ_GET, ctypes.create_string_buffer(attr, len(attr)))
    turn = max(BATCH, int(rate * TURN_S)) if rate else 20000
    sent, start = 0, time.monotonic()
    while not select.select([0], [], [], 0)[0]:
        send(program, turn)
        sent += turn
        if rate:
            time.sleep(max(0, start + sent / rate - time.monotonic()))
    print(sent, time.monotonic() - start)


main()
