# SPDX-License-Identifier: GPL-2.0-only
"""Hashes of flows and rings of backends, written only from docs/ring.md and the paper of SipHash."""
import functools
import heapq
import ipaddress
import struct
from fractions import Fraction

MASK = (1 << 64) - 1


def siphash13(key, message):
    """key: two words of 64 bits."""
    v = [key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
         key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573]

    def rotate(x, n):
        return (x << n | x >> 64 - n) & MASK

    def rounds(n):
        for _ in range(n):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotate(v[1], 13) ^ v[0]
            v[0] = rotate(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotate(v[1], 17) ^ v[2]
            v[2] = rotate(v[2], 32)

    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) & 255])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(1)
        v[0] ^= word
    v[2] ^= 0xff
    rounds(3)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def key_of(seed):
    return tuple(siphash13((0, 0), b"seed2" + bytes([half]) + seed.encode()) for half in (0, 1))


@functools.cache
def flow_keys(key):
    return [siphash13(key, b"flow2" + bytes([i])) for i in range(12)]


def flow_hash(key, message):
    """Products of pairs of words, then the finalizer."""
    keys = flow_keys(tuple(key))
    sums = [keys[i] + word for i, (word,) in enumerate(struct.iter_unpack("<I", message))]
    x = sum(even * odd for even, odd in zip(sums[::2], sums[1::2])) & MASK
    for i in (10, 11):
        x ^= x >> 32
        x = x * (keys[i] | 1) & MASK
    return x ^ x >> 32


def hash_tuple(key, src, dst, sport, dport, proto):
    addresses = ipaddress.ip_address(src).packed + ipaddress.ip_address(dst).packed
    return flow_hash(key, addresses + struct.pack("!HHB3x", sport, dport, proto))


def hash_source(key, src):
    packed = ipaddress.ip_address(src).packed
    return flow_hash(key, packed + bytes(4) if len(packed) == 4 else packed)


def slot_of(flow, size):
    return (flow & 0xffffffff) * size >> 32


class Turns:
    """A backend that takes its slots."""

    def __init__(self, key, address, weight, size):
        packed = ipaddress.ip_address(address).packed
        self.message = (b"ring2" + bytes([4 if len(packed) == 4 else 6]) + bytes(2) + packed
                        + bytes(16 - len(packed)))
        self.hash = siphash13(key, self.message)
        self.address, self.weight = address, weight
        self.at = slot_of(self.hash, size)
        self.skip = ((self.hash >> 32) * (size - 1) >> 32) + 1


def ring(key, backends, size):
    """The owner of each slot; backends: address to weight."""
    order = [Turns(key, address, weight, size) for address, weight in backends.items() if weight]
    order.sort(key=lambda turns: (turns.hash, turns.message))
    total = sum(turns.weight for turns in order)
    shares = [size * turns.weight // total for turns in order]
    by_rest = sorted(range(len(order)), key=lambda n: -(size * order[n].weight % total))
    for n in by_rest[:size - sum(shares)]:
        shares[n] += 1
    if len(order) == 1:
        return [order[0].address] * size
    owners = [None] * size
    heap = [(Fraction(k, turns.weight), n)
            for n, turns in enumerate(order) for k in range(shares[n])]
    heapq.heapify(heap)
    while heap:
        turns = order[heapq.heappop(heap)[1]]
        while owners[turns.at] is not None:
            turns.at = (turns.at + turns.skip) % size
        owners[turns.at] = turns.address
    return owners


def check():
    """The examples of docs/ring.md."""
    key = struct.unpack("<2Q", bytes(range(16)))
    assert siphash13(key, b"") == 0xabac0158050fc4dc
    assert siphash13(key, b"\0") == 0xc9f49bf37d57ca93
    assert key_of("correct horse battery staple") == (0x3531cbaeefe55c95, 0xc441c95d6521fd4a)
    assert hash_tuple(key, "192.0.2.1", "198.51.100.200", 4660, 443, 6) == 0xb8620371f77c0777
    assert hash_tuple(key, "2001:db8:1:2:3:4:5:6", "2001:db8:fffe::99:80:7f01", 4660, 443,
                      17) == 0x92fb28e9ba3b5e8f
    assert hash_source(key, "192.0.2.1") == 0x5b404b8245e10c98
    assert hash_source(key, "2001:db8:1:2:3:4:5:6") == 0x67bf21975ca8baef
    backends = {"10.0.0.1": 1, "10.0.0.2": 2, "10.0.0.3": 3, "2001:db8::4": 4, "10.0.0.5": 1}
    owners = ring(key, backends, 16381)
    names = list(backends)
    assert [names.index(owner) + 1 for owner in owners[:12]] == [1, 2, 3, 5, 3, 1, 4, 5, 3, 3, 3, 2]


check()
