# SPDX-License-Identifier: GPL-2.0-only
"""Two policies are swapped 200 times under a stream of packets: each packet meets one of them, complete.

The stream consists of groups of packets, sent back to back, each with its number after the IP packet: pairs
of which A passes only the first and B only the second, then one packet that both pass and one that both
drop. Thus every packet of a pair names the policy that it met. In the order of sending, that name may change
as often as the policy did, and not more often. A moment without a policy, or with a mixture of the two,
would be visible.
"""

import contextlib
import itertools
import os
import signal
import socket
import struct
import threading
import time

from labnet import socket_in
from policylab import OTHER4, OTHER6, SOURCE6, Policies, hits, reasons, tcp, udp

ROUNDS, SWAPS = 50, 200
GROUPS_S = 550  # of four pairs: 2200 pairs per second
LONGEST_S = 240
MAGIC = b"weir swap "
SO_RCVBUFFORCE = 33

COMMON = """
set inner { 198.51.100.0/24, 2001:db8:100::/48 }
set ours { @inner, 203.0.113.9, 2001:db8:113::9 }
"never" drop proto udp to port 5000
"""
LAST = '"rest" pass from @ours'
A = f"""{COMMON}
"port" drop proto udp to port 1001 from @inner
"source" drop from 203.0.113.9
"six" drop from 2001:db8:113::9
"flags" drop flags fin/fin,ack
{LAST}"""
B = f"""{COMMON}
"flags" drop flags ack/fin,ack
"six" drop from 2001:db8:100::1 ttl 9
"port" drop proto udp to port 1000 from @inner
"source" drop proto udp to port 9 from 198.51.100.1
{LAST}"""
PAIRS = [
    (udp(1000), udp(1001)),
    (udp(9), udp(9, OTHER4)),
    (udp(9, SOURCE6, hlim=9), udp(9, OTHER6)),
    (tcp(80, flags="A"), tcp(80, flags="F")),
]
FRAMES = [bytes(frame) for frame in (*itertools.chain(*PAIRS), udp(4000), udp(5000))]
SIZE = len(FRAMES)
ALWAYS, NEVER = SIZE - 2, SIZE - 1


class Stream:
    """A process that sends groups at an even pace until stop(), which returns the number of packets."""

    def __init__(self, pair):
        self.result, result = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.write(result, struct.pack("!I", self.send(pair)))
            os._exit(0)
        os.close(result)

    @staticmethod
    def send(pair):
        stopped = []
        signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
        sock = socket_in(pair.far_netns, socket.AF_PACKET, socket.SOCK_RAW, 0)
        sock.bind((pair.far_device, 0))
        start, number = time.monotonic(), 0
        while not stopped and number < LONGEST_S * GROUPS_S * SIZE:
            for frame in FRAMES:
                sock.send(frame + MAGIC + struct.pack("!I", number))
                number += 1
            time.sleep(max(0, start + number / SIZE / GROUPS_S - time.monotonic()))
        return number

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        sent = os.read(self.result, 4)
        os.waitpid(self.pid, 0)
        os.close(self.result)
        return struct.unpack("!I", sent)[0]


class Arrivals:
    """The numbers of the packets that reach the stack of near."""

    def __init__(self, sniffer):
        self.numbers = set()
        self.socket = sniffer.socket
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        self.socket.settimeout(0.3)
        while True:
            try:
                data = self.socket.recv(2048)
            except TimeoutError:
                if self.done.is_set():
                    return
                continue
            if data[-14:-4] == MAGIC:
                self.numbers.add(struct.unpack("!I", data[-4:])[0])

    def all(self):
        self.done.set()
        self.thread.join()
        return self.numbers


@contextlib.contextmanager
def streaming(pair):
    with pair.sniff_near() as sniffer:
        arrivals, stream = Arrivals(sniffer), Stream(pair)
        ends = []
        try:
            yield lambda: ends or ends.extend((stream.stop(), arrivals.all())) or ends
        finally:
            if not ends:
                stream.stop()
                arrivals.all()


def policies_met(sent, arrived):
    """The policy that each packet of a pair met, in the order of sending."""
    for number in range(sent):
        place = number % SIZE
        if place < ALWAYS:
            yield "A" if (number in arrived) == (place % 2 == 0) else "B"


def swap(policies, on, rounds):
    """By apply, by a trial and by its end; begins and ends with A."""
    files = {}
    for name, text in (("A", A), ("B", B)):
        files[name] = policies.folder / f"{name}.weir"
        files[name].write_text(f"interface near0\n{text}\n")
    for _ in range(rounds):
        on("apply", files["B"])
        on("apply", files["A"], "--confirm=60s")
        on("rollback")
        on("apply", files["A"])


def test_every_packet_meets_one_policy_whole(pair, on, tmp_path):
    policies = Policies(on, tmp_path)
    policies(A)
    before = reasons(on)
    start = time.monotonic()
    with streaming(pair) as end:
        time.sleep(0.1)
        swap(policies, on, ROUNDS)
        seconds = time.monotonic() - start
        time.sleep(0.1)
        sent, arrived = end()
    pairs = sent // SIZE * len(PAIRS)
    print(f"\n{SWAPS} swaps in {seconds:.1f} s under {sent} packets, {pairs / seconds:.0f} pairs/s")
    met = list(policies_met(sent, arrived))
    changes = sum(one != other for one, other in itertools.pairwise(met))
    # On a busy machine no packet may be sent between two swaps: both are missing then.
    assert (met[0], met[-1]) == ("A", "A") and changes in range(SWAPS - SWAPS // 10, SWAPS + 1, 2)
    assert all(number in arrived for number in range(ALWAYS, sent, SIZE))
    assert not any(number in arrived for number in range(NEVER, sent, SIZE))
    # Weir received all of them, and the counters of rules and reasons survived 200 swaps.
    after = reasons(on)
    passed, dropped = (after[one] - before[one] for one in ("rule-pass", "rule-drop"))
    strays = dropped - (sent - len(arrived))  # sent by the kernel: listener reports for instance
    assert passed == len(arrived) and 0 <= strays <= 3
    assert not after["program-missing"]
    names = "never", "port", "source", "six", "flags", "rest"
    assert hits(on, "never") == sent // SIZE
    assert sent <= sum(hits(on, name) for name in names) <= sent + 3
    assert pairs / seconds > 1000
