# SPDX-License-Identifier: GPL-2.0-only
"""drain, weight, apply and trials of a running pool: the previous ring or the new one, complete, and no
known flow moves in either case."""

from labnet import numbers, run
from policylab import packet
from scapy.layers.inet import TCP
from scapy.layers.l2 import Ether
from scenario import Prober, Scenario, sweep
from statefile import read_drains, read_rows, write_old_drains

VIP = "10.77.9.1"
KNOWN, FRESH = 48, 64
POOLS = {"before": (1, 2, 3), "after": (2, 3, 4)}
# The backends of new flows. With 64 flows, it is practically impossible that one gets none of its third by chance.
RINGS = {"before": {1, 2, 3}, "drained": {2, 3}, "after": {2, 3, 4}}


def address(number):
    return f"10.77.0.{100 + number}"


def mac(number):
    return f"02:77:00:00:01:{number:02x}"


def pool(backends, options="port 80; mode dr; idle 8h; pins 65536"):
    lines = "\n".join(f"\tbackend {address(number)}" for number in backends)
    return f'interface near0\nseed "faults"\nservice web {{\n\tvip {VIP}\n\tproto tcp\n\t{options}\n{lines}\n}}\n'


def segment(flow, flags):
    source = f"198.18.{flow >> 8 & 255}.{flow & 255}"
    return packet(TCP(sport=1024 + (flow >> 16), dport=80, flags=flags), source, dst=VIP)


class PoolProber(Prober):
    """Sees the packets that leave by near0, by backend."""

    def __init__(self, lab):
        super().__init__(lab)
        self.sniffer.close()
        self.sniffer = type(self.sniffer)(lab.far_netns, lab.far_device)

    def owners(self, flows, flags):
        """The number of the backend for a segment of each flow; None: no backend."""
        list(self.sniffer.frames(wait=0.0001))
        frames = [segment(flow, flags) for flow in flows]
        for frame in frames:
            self.out.send(bytes(frame))
        wanted = {(frame.src, frame[TCP].sport) for frame in map(lambda one: one["IP"], frames)}
        found = {}
        for data in self.arrivals(len(flows)):
            ip = Ether(data)["IP"]
            if (ip.src, ip[TCP].sport) in wanted:
                found[ip.src, ip[TCP].sport] = data[5] if data[:5] == bytes.fromhex("0277000001") else None
        return [found.get((frame["IP"].src, frame[TCP].sport)) for frame in frames]

    def arrivals(self, count):
        got = []
        for data, sent in self.sniffer.frames(wait=3):
            if not sent and data[12:14] == b"\x08\x00":
                got.append(data)
                if len(got) == count:
                    break
        return got


class Pool(Scenario):
    """Three backends; flows that are known, whatever the slots have changed to since."""

    after = "drained"
    undo = ("undrain", address(1))

    def begin(self):
        for number in range(1, 5):
            run(["ip", "-n", self.lab.near_netns, "neigh", "replace", address(number), "lladdr", mac(number),
                 "dev", "near0", "nud", "permanent"])
        super().begin()
        self.prober.close()
        self.prober = PoolProber(self.lab)
        self.learn()

    def text(self, _, backends):
        return pool(backends)

    def prepare(self):
        self.paths = {}
        for name, backends in POOLS.items():
            self.paths[name] = self.folder / f"{name}.weir"
            self.paths[name].write_text(self.text(name, backends))
        self.weir("attach", "near0", "--max-entries", "64")
        self.weir("apply", self.paths["before"])
        self.state = "before"

    def fresh(self, count):
        return [next(numbers) for _ in range(count)]

    def learn(self):
        """Flows, and their backends from now on."""
        self.flows = self.fresh(KNOWN)
        self.homes = self.prober.owners(self.flows, "S")
        assert None not in self.homes
        assert self.prober.owners(self.flows, "A") == self.homes

    def before(self):
        if self.state != "before":
            self.weir(*self.undo)
        self.state = "before"

    def whole(self):
        self.state = "unknown"
        assert self.prober.owners(self.flows, "A") == self.homes, "a flow moved"
        found = set(self.prober.owners(self.fresh(FRESH), "S"))
        for name, owners in RINGS.items():
            if found == owners:
                break
        else:
            raise AssertionError(f"new flows go to {found}")
        service = self.weir.json("service", "web")["services"][0]
        rows = {row["backend"]: row["slots"] for row in service["backends"]}
        assert sum(rows.values()) == service["slots"], "slots of unknown backends"
        owners = {number for number in range(1, 5) if rows.get(address(number))}
        assert owners == RINGS[name], f"service says {owners}, packets {found}"
        self.state = name
        return name

    def go_on(self, state, fault, outcome):
        if fault.nth % 3 == 2:
            self.restart((state,) if state == self.after else ("before", self.after))
        self.weir(*self.argv)
        assert self.whole() == self.after
        assert len(list((self.weir.bpffs / "gen").iterdir())) <= 4

    def restart(self, states):
        """From the files on disk, as after a reboot."""
        self.weir("detach", "--force")
        assert not list(self.weir.bpffs.parent.glob(f"{self.weir.name}*")), "objects in bpffs are left"
        self.weir("attach", "near0", "--max-entries", "64")
        self.learn()
        assert self.whole() in states, "the restored state was never active"
        assert not list(self.weir.state.rglob("*.new"))

    def start_again(self, state):
        self.restart((self.after,))


class Drain(Pool):
    argv = ("drain", "web", address(1))


class DrainOfAnEarlierVersion(Drain):
    """The file of overrides is in the form of an earlier version: it stays so, or is replaced as a whole, and the
    other override of it survives."""

    def prepare(self):
        super().prepare()
        self.weir("weight", "web", address(3), 1)  # as it was
        self.path = self.weir.state / "drains"
        self.kept, = read_rows(self.path, "override")

    def before(self):
        super().before()
        write_old_drains(self.path, [self.kept])

    def whole(self):
        assert self.kept in read_drains(self.path), "an override is lost"
        return super().whole()


class Weight(Pool):
    argv = ("weight", "web", address(1), 0)


class Change(Pool):
    """apply."""

    after = "after"
    stride, rare_stride = 48, 4

    def prepare(self):
        super().prepare()
        self.argv = ("apply", self.paths["after"])
        self.undo = ("apply", self.paths["before"])

    def before(self):
        super().before()
        self.weir("service", "--refresh")


class ChangeOnTrial(Change):
    """Only in the kernel: a reboot restores the previous policy."""

    stride, rare_stride = 96, 8

    def prepare(self):
        super().prepare()
        self.argv = ("apply", self.paths["after"], "--confirm=60s")
        self.undo = ("rollback",)

    def go_on(self, state, fault, outcome):
        ended = self.weir("rollback", check=False)
        if state == self.after:
            assert ended.returncode == 0, ended.stderr
        assert self.whole() == "before"
        if fault.nth % 3 == 2:
            self.restart(("before",))
        self.weir(*self.argv)
        assert self.whole() == self.after
        assert len(list((self.weir.bpffs / "gen").iterdir())) <= 4

    def start_again(self, state):
        self.restart(("before",))


class EndOfTrial(ChangeOnTrial):
    """rollback, during a trial."""

    after = "before"
    stride, rare_stride = 24, 2

    def prepare(self):
        super().prepare()
        self.trial, self.argv = self.argv, ("rollback",)

    def before(self):
        if self.state != "after":
            self.weir(*self.trial)
        self.state = "after"

    def go_on(self, state, fault, outcome):
        if state == "after":
            self.weir("rollback")
        assert self.whole() == "before"


def test_drain(labs):
    sweep(Drain, labs, {"before", "drained"})


def test_drain_after_an_upgrade(labs):
    sweep(DrainOfAnEarlierVersion, labs, {"before", "drained"})


def test_weight(labs):
    sweep(Weight, labs, {"before", "drained"})


def test_apply_to_a_pool(labs):
    sweep(Change, labs, {"before", "after"})


def test_apply_to_a_pool_on_trial(labs):
    sweep(ChangeOnTrial, labs, {"before", "after"})


def test_end_of_a_trial_of_a_pool(labs):
    sweep(EndOfTrial, labs, {"before", "after"})
