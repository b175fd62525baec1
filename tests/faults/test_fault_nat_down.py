# SPDX-License-Identifier: GPL-2.0-only
"""backend down in fullnat: no connection of a living backend ends, and the connections of the one that is down end, by
this command or by the next one."""

from labnet import numbers, run
from policylab import packet
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scenario import Prober, Scenario, sweep

VIP, SOURCE = "10.77.9.1", "10.77.0.1"
FRESH = 64


def address(number):
    return f"10.77.0.{100 + number}"


def mac(number):
    return f"02:77:00:00:01:{number:02x}"


POLICY = f"""interface near0
seed "faults"
service web {{
	vip {VIP}; port 80; mode fullnat; source {SOURCE}; idle 8m; check none
	backend {address(1)}; backend {address(2)}
}}
"""


class Translation(Prober):
    """Sends as a client or as a backend, and sees the packets that leave by near0."""

    def __init__(self, lab):
        super().__init__(lab)
        self.sniffer.close()
        self.sniffer = type(self.sniffer)(lab.far_netns, lab.far_device)

    def leaving(self, frame, wanted, wait):
        """The frame that leaves after this one, and for which wanted() is true; None: no such frame."""
        list(self.sniffer.frames(wait=0.0001))
        self.out.send(bytes(frame))
        for data, sent in self.sniffer.frames(wait=wait):
            if not sent and data[12:14] == b"\x08\x00" and wanted(Ether(data)):
                return Ether(data)
        return None

    def open(self, flow):
        """The number of the backend, and the port of the source."""
        client = f"198.18.{flow >> 8 & 255}.{flow & 255}"
        syn = packet(TCP(sport=1024 + (flow >> 16), dport=80, flags="S", seq=flow), client, dst=VIP)
        frame = self.leaving(syn, lambda got: got[IP].src == SOURCE and got[TCP].seq == flow, 3)
        assert frame, "a new connection is not sent to a backend"
        return client, int(frame.dst[-2:], 16), frame[TCP].sport

    def answers(self, client, number, port):
        """Whether an answer of the backend reaches the client, from the VIP."""
        answer = packet(TCP(sport=80, dport=port, flags="A"), address(number), dst=SOURCE)
        answer.src = mac(number)
        return bool(self.leaving(answer, lambda got: got[IP].dst == client and got[IP].src == VIP, 0.2))


class Down(Scenario):
    argv = ("backend", "down", "web", address(1))
    after = "down"

    def begin(self):
        for number in (1, 2):
            run(["ip", "-n", self.lab.near_netns, "neigh", "replace", address(number), "lladdr", mac(number),
                 "dev", "near0", "nud", "permanent"])
        super().begin()
        self.prober.close()
        self.prober = Translation(self.lab)
        self.kept = self.connect(2)

    def prepare(self):
        self.path = self.folder / "nat.weir"
        self.path.write_text(POLICY)
        self.weir("attach", "near0", "--max-entries", "64")
        self.weir("apply", self.path)
        self.state = "up"

    def connect(self, number):
        """A connection with this backend."""
        while True:
            opened = self.prober.open(next(numbers))
            if opened[1] == number:
                return opened

    def before(self):
        if self.state != "up":
            self.weir("backend", "up", "web", address(1))
        self.state = "up"
        self.lost = self.connect(1)

    def whole(self):
        assert self.prober.answers(*self.kept), "a connection of a living backend has ended"
        lives = self.prober.answers(*self.lost)
        service = self.weir.json("service", "web")["services"][0]
        shown = {row["backend"]: row["connections"] for row in service["backends"]}
        assert (shown[address(1)] > 0) == lives, f"service says {shown}"
        found = {self.prober.open(next(numbers))[1] for _ in range(FRESH)}
        assert found in ({1, 2}, {2}), f"new connections go to {found}"
        assert lives or found == {2}, "connections of a backend that gets new ones have ended"
        self.state = "up" if found == {1, 2} else "ending" if lives else "down"
        return self.state

    def go_on(self, state, fault, outcome):
        self.weir(*self.argv)
        assert self.whole() == "down"

    def start_again(self, state):
        self.weir("detach", "--force")
        assert not list(self.weir.bpffs.parent.glob(f"{self.weir.name}*")), "objects in bpffs are left"
        self.weir("attach", "near0", "--max-entries", "64")
        self.kept = self.connect(2)
        self.state = "down"


def test_down_ends_connections(labs):
    sweep(Down, labs, {"up", "ending", "down"})
