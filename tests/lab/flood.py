#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs the program of flood.bpf.c with live frames on every CPU, at full speed or at a given rate.

usage: flood.py OBJECT DEVICE PROGRAM RATE
       flood.py frame DEVICE PROGRAM RATE HEX

The frames are handled as if DEVICE of this network namespace had received them and the program with id
PROGRAM were attached to it. In the second form all frames have the bytes HEX. RATE is in packets per second; 0 means no limit. Runs until standard input ends,
then prints packets and seconds.
"""

import ctypes
import os
import select
import socket
import struct
import sys
import threading
import time

LIVE_FRAMES = 1 << 1  # linux/bpf.h
FRAGS = 1 << 5
FRAME_BYTES, BATCH, TURN_S = 60, 64, 0.02

libbpf = ctypes.CDLL("libbpf.so.1", use_errno=True)
libbpf.bpf_object__open.restype = ctypes.c_void_p
libbpf.bpf_object__find_program_by_name.restype = ctypes.c_void_p


class TestRun(ctypes.Structure):
    """struct bpf_test_run_opts of bpf/bpf.h"""

    _fields_ = [
        ("size", ctypes.c_size_t), ("data_in", ctypes.c_void_p), ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32), ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_void_p), ("ctx_out", ctypes.c_void_p), ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32), ("retval", ctypes.c_uint32), ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    ]


def checked(code):
    if code < 0:
        raise OSError(-code, os.strerror(-code))
    return code


def load(path, program):
    """The flood program. Its tail call requires a target that was loaded with the same attributes."""
    obj = ctypes.c_void_p(libbpf.bpf_object__open(path.encode()))
    flood = ctypes.c_void_p(libbpf.bpf_object__find_program_by_name(obj, b"flood"))
    libbpf.bpf_program__set_expected_attach_type(flood, 0)
    libbpf.bpf_program__set_flags(flood, FRAGS)
    checked(libbpf.bpf_object__load(obj))
    attached = libbpf.bpf_object__find_map_fd_by_name(obj, b"attached")
    key, fd = ctypes.c_uint32(0), ctypes.c_uint32(checked(libbpf.bpf_prog_get_fd_by_id(program)))
    checked(libbpf.bpf_map_update_elem(attached, ctypes.byref(key), ctypes.byref(fd), ctypes.c_uint64(0)))
    return libbpf.bpf_program__fd(flood)


def send(flood, device, count, frame):
    data = ctypes.create_string_buffer(frame, len(frame))
    received = struct.pack("=IIIIII", 0, len(frame), 0, device, 0, 0)  # struct xdp_md
    opts = TestRun(size=ctypes.sizeof(TestRun), data_in=ctypes.addressof(data), data_size_in=len(frame),
                   ctx_in=ctypes.cast(received, ctypes.c_void_p), ctx_size_in=len(received),
                   repeat=count, flags=LIVE_FRAMES, batch_size=BATCH)
    checked(libbpf.bpf_prog_test_run_opts(flood, ctypes.byref(opts)))


class Sender(threading.Thread):
    """Runs the flood on one CPU."""

    def __init__(self, cpu, flood, device, rate, frame):
        super().__init__(daemon=True)
        self.cpu, self.flood, self.device, self.rate, self.frame = cpu, flood, device, rate, frame
        self.sent, self.ended = 0, False
        self.start()

    def run(self):
        os.sched_setaffinity(0, {self.cpu})
        turn = max(BATCH, int(self.rate * TURN_S)) if self.rate else 20000
        start = time.monotonic()
        while not self.ended:
            send(self.flood, self.device, turn, self.frame)
            self.sent += turn
            if self.rate:
                time.sleep(max(0, start + self.sent / self.rate - time.monotonic()))

    def end(self):
        self.ended = True
        self.join()
        return self.sent


def main():
    path, device, program, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    device, frame = socket.if_nametoindex(device), bytes(FRAME_BYTES)
    if path == "frame":
        flood, frame = checked(libbpf.bpf_prog_get_fd_by_id(program)), bytes.fromhex(sys.argv[5])
    else:
        flood = load(path, program)
    cpus, start = sorted(os.sched_getaffinity(0)), time.monotonic()
    senders = [Sender(cpu, flood, device, rate / len(cpus), frame) for cpu in cpus]
    select.select([0], [], [])
    print(sum(sender.end() for sender in senders), time.monotonic() - start)


main()
