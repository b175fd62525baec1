# SPDX-License-Identifier: GPL-2.0-only
"""The parts of tests with real traffic: a lab, its traffic, and Weir on the near side."""

import contextlib
import copy
import ctypes
import fcntl
import importlib.util
import itertools
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time

from scapy.layers.dns import DNS, DNSQR
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAB = ROOT / "scripts" / "lab"
BUILD = ROOT / os.environ.get("O", "build")
WEIR = pathlib.Path(os.environ.get("WEIR", BUILD / "weir")).resolve()

CLONE_NEWNET = 0x40000000
ETH_P_ALL = 3
ETH_P_8021Q = 0x8100
SOL_PACKET = 263
SO_RCVBUFFORCE = 33
PACKET_AUXDATA = 8
TP_STATUS_VLAN_VALID = 0x10
TP_STATUS_VLAN_TPID_VALID = 0x40

# Limits of time are those of a quiet machine. Beside other workers, which take the processors, they are longer; a test that
# fails all the same is repeated alone.
PATIENCE = 3 if "PYTEST_XDIST_WORKER" in os.environ else 1

libc = ctypes.CDLL(None, use_errno=True)
numbers = itertools.count()  # part of unique names


def fixtures_of_the_lab():
    """The module conftest of this folder, for tests in others."""
    spec = importlib.util.spec_from_file_location("lab_conftest", pathlib.Path(__file__).with_name("conftest.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(argv, check=True, timeout=30, **options):
    """Runs a command with captured output. If it fails, the assertion shows the output."""
    argv = [str(arg) for arg in argv]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=timeout * PATIENCE, check=False, **options
    )
    if check:
        assert done.returncode == 0, f"{' '.join(argv)}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def enter(netns):
    """From now on this thread is in the network namespace, and no other one of the process."""
    with open(f"/run/netns/{netns}", "rb") as handle:
        if libc.setns(handle.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {netns}")


def socket_in(netns, *args):
    """A socket in another network namespace."""
    made = []

    def open_there():
        enter(netns)
        made.append(socket.socket(*args))

    thread = threading.Thread(target=open_there)
    thread.start()
    thread.join()
    assert made, f"no socket in network namespace {netns}"
    return made[0]


def traces(name):
    """All objects on the machine that still have the name of a lab."""
    found = [str(path) for place in ("/run/netns", "/etc/netns", "/run/weir-lab")
             for path in pathlib.Path(place).glob(f"{name}*")]
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"/run/weir-lab/{name}/" in process.read_text(errors="replace"):
                found.append(str(process))
        except OSError:
            pass
    return found


class Sniffer:
    """Every frame that a device receives or sends after this object was created."""

    def __init__(self, netns, device):
        self.socket = socket_in(netns, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
        self.socket.bind((device, ETH_P_ALL))

    def frames(self, wait=0.3):
        """The frames until the line is silent for that many seconds: (bytes, sent by this host)."""
        self.socket.settimeout(wait)
        with contextlib.suppress(TimeoutError):
            while True:
                data, ancillary, _, address = self.socket.recvmsg(65536, 256)
                yield self.with_tag(data, ancillary), address[2] == socket.PACKET_OUTGOING

    def received(self, wanted, wait=0.3):
        """The received frames for which wanted(bytes) is true."""
        return [data for data, sent in self.frames(wait) if not sent and wanted(data)]

    def until(self, last, wait=2):
        """The received frames up to the one for which last(bytes) is true, and stragglers."""
        got = []
        for data, sent in self.frames(wait * PATIENCE):
            if not sent:
                got.append(data)
                if last(data):
                    return got + self.received(lambda data: True, wait=0.003)
        raise AssertionError("the last frame did not arrive")

    @staticmethod
    def with_tag(data, ancillary):
        """Reinserts the outer VLAN tag that the kernel removed from the frame."""
        for level, kind, aux in ancillary:
            if (level, kind) != (SOL_PACKET, PACKET_AUXDATA):
                continue
            status, _, _, _, _, tci, tpid = struct.unpack("=IIIHHHH", aux[:20])
            if status & TP_STATUS_VLAN_VALID:
                tpid = tpid if status & TP_STATUS_VLAN_TPID_VALID else ETH_P_8021Q
                return data[:12] + struct.pack("!HH", tpid, tci) + data[12:]
        return data

    def close(self):
        self.socket.close()


class Pair:
    """The lab of scripts/lab.d/pair.sh: Weir attaches to near0; all peers and names are on far."""

    near_device, far_device = "near0", "far0"
    near_mac, far_mac = "02:77:00:00:00:01", "02:77:00:00:00:02"
    near4, near6 = "10.77.0.1", "fd77::1"
    far4, far6 = "10.77.0.2", "fd77::2"
    resolver = far4

    def __init__(self, name, mtu=1500):
        self.name, self.mtu = name, mtu
        self.near_netns, self.far_netns = f"{name}-near", f"{name}-far"
        self.has_changed_names = False

    def lab(self, *args, check=True):
        return run([LAB, *args, "--name", self.name], check=check)

    def up(self):
        self.lab("up", "pair", "--mtu", self.mtu)

    def down(self):
        self.lab("down", "pair")

    def dns(self, *args):
        """dns(NAME, ADDRESS...), dns(NAME, "none"), dns("reset"): the change is active on return."""
        self.has_changed_names = args != ("reset",)
        self.lab("dns", "pair", *args)

    # Commands on a host. dns=True gives them the resolv.conf of the lab; weir must run without it.

    def near(self, argv, dns=False, **options):
        return run(self.enter(self.near_netns, dns) + list(argv), **options)

    def far(self, argv, dns=False, **options):
        return run(self.enter(self.far_netns, dns) + list(argv), **options)

    @staticmethod
    def enter(netns, dns=False):
        if dns:
            return ["ip", "netns", "exec", netns]
        return ["nsenter", f"--net=/run/netns/{netns}", "--"]

    # Reachability. Each takes milliseconds with an answer and a second without.

    def ping4(self, host, *options):
        return self.ping("-4", host, options)

    def ping6(self, host, *options):
        return self.ping("-6", host, options)

    def ping(self, family, host, options):
        argv = ["ping", family, "-n", "-q", "-c1", "-W1", *options, host]
        return self.near(argv, dns=True, check=False).returncode == 0

    def curl4(self, host):
        return self.curl("-4", host)

    def curl6(self, host):
        return self.curl("-6", host)

    def curl(self, family, host):
        host = f"[{host}]" if ":" in host else host
        argv = ["curl", family, "-sf", "-o", "/dev/null", "--max-time", "1", f"http://{host}/"]
        return self.near(argv, dns=True, check=False).returncode == 0

    def query(self, name, kind="A"):
        """Queries the DNS server of the lab: (response code, [(owner, type, data, ttl)])."""
        with socket_in(self.near_netns, socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(2)
            sock.sendto(bytes(DNS(rd=1, qd=DNSQR(qname=name, qtype=kind))), (self.resolver, 53))
            reply = DNS(sock.recv(65535))
        answers = [reply.an[i] for i in range(reply.ancount)]
        return reply.rcode, [
            (text(rr.rrname), rr.get_field("type").i2repr(rr, rr.type), text(rr.rdata), rr.ttl)
            for rr in answers
        ]

    # Raw frames, including tags.

    def send_from_far(self, *frames):
        """Sends frames (scapy packets or bytes, from the Ethernet header on) to near."""
        with socket_in(self.far_netns, socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
            sock.bind((self.far_device, 0))
            for frame in frames:
                sock.send(bytes(frame))

    def ether(self, *tags):
        """The headers of a frame from far to near."""
        frame = Ether(dst=self.near_mac, src=self.far_mac)
        for tag in tags:
            frame /= Dot1Q(vlan=tag)
        return frame

    def udp(self, src, dst=None, tags=(), payload=b"weir-lab"):
        """A UDP packet from any address to near or to another address on its link."""
        ip = IPv6 if ":" in src else IP
        header = ip(src=src, dst=dst or (self.near6 if ":" in src else self.near4))
        return self.ether(*tags) / header / UDP(sport=53, dport=9) / Raw(payload)

    def passes(self, *frames):
        """Which of these frames reach the stack of near? Returns a bool for each, without waiting: a last
        frame that is not IP, and therefore always passes, shows that the others have arrived or never will."""
        end = bytes(self.ether())[:12] + b"\x88\xb5" + f"the end {next(numbers)}".encode().ljust(60)
        frames = [bytes(frame) for frame in frames]
        with self.sniff_near() as sniffer:
            self.send_from_far(*frames, end)
            got = sniffer.until(lambda data: data == end)
        return [frame in got for frame in frames]

    def free(self, *sources):
        """Do packets from these addresses pass? Returns a list of bool."""
        return self.passes(*(self.udp(source) for source in sources))

    @contextlib.contextmanager
    def sniff_near(self):
        with contextlib.closing(Sniffer(self.near_netns, self.near_device)) as sniffer:
            yield sniffer

    @contextlib.contextmanager
    def sniff_far(self):
        with contextlib.closing(Sniffer(self.far_netns, self.far_device)) as sniffer:
            yield sniffer

    def xdp_attached(self):
        """True if an XDP program is on near0, in any mode."""
        link = run(["ip", "-n", self.near_netns, "-o", "link", "show", "dev", self.near_device])
        return "prog/xdp" in link.stdout


    def link(self, *words, host="near"):
        """Runs ip link WORDS... on a host."""
        return run(["ip", "-n", f"{self.name}-{host}", "link", *words])

    def attach_foreign(self, mode="xdpdrv", device=None):
        """Attaches an XDP program other than Weir's to near0, or another device of near."""
        program = ["obj", BUILD / "lab" / "pass.bpf.o", "sec", "xdp.frags"]
        self.link("set", "dev", device or self.near_device, mode, *program)

    def detach_foreign(self, mode="xdpdrv"):
        self.link("set", "dev", self.near_device, mode, "off")

    def xdp_names(self):
        """{device of near: name of its XDP program, "?" for a program without name, or None}."""
        links = json.loads(run(["ip", "-n", self.near_netns, "-j", "-d", "link"]).stdout)
        programs = {link["ifname"]: link.get("xdp", {}).get("prog") for link in links}
        return {device: program and (program.get("name") or "?")
                for device, program in programs.items()}


def text(value):
    return (value.decode() if isinstance(value, bytes) else value).rstrip(".")


def plain(document):
    """A document of -j without what each begins with: the version of its keys, and its time."""
    assert list(document)[:2] == ["schema", "time"] and document.pop("schema") == 1, document
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", document.pop("time"))
    return document


def unique(pairs):
    """An object of JSON, which has each key once."""
    keys = [key for key, _ in pairs]
    assert len(set(keys)) == len(keys), keys
    return dict(pairs)


class Weir:
    """Runs build/weir on the near side, in a separate instance that is removed without a trace."""

    def __init__(self, pair):
        assert WEIR.exists(), f"no {WEIR}: run make"
        self.pair = pair
        self.name = f"t{os.getpid()}-{next(numbers)}"
        self.started = []

    @property
    def bpffs(self):
        return pathlib.Path("/sys/fs/bpf/weir", self.name)

    @property
    def state(self):
        return pathlib.Path("/var/lib/weir", self.name)

    @property
    def lock(self):
        """The folder that commands lock."""
        return pathlib.Path("/sys/fs/bpf/weir-locks", self.name)

    @contextlib.contextmanager
    def locked(self, how=fcntl.LOCK_EX, command="block"):
        """This process has the lock, as a command has it; yields its descriptor."""
        self.lock.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.lock, os.O_RDONLY)
        try:
            fcntl.flock(folder, how)
            if how & fcntl.LOCK_EX:
                pathlib.Path("/run/weir", self.name, "lock").write_text(f"pid {os.getpid()}, weir {command}\n", encoding="ascii")
            yield folder
        finally:
            os.close(folder)

    def argv(self, *args):
        return [str(WEIR), "-N", self.pair.near_netns, "-n", self.name, *map(str, args)]

    def __call__(self, *args, check=True, **options):
        return run(self.argv(*args), check=check, **options)

    def json(self, *args, status=0, **options):
        """The document that -j prints, for any exit status, without its version and time."""
        done = self("-j", *args, check=False, **options)
        assert done.returncode == status, f"{args}: {done.returncode}\n{done.stdout}{done.stderr}"
        document = json.loads(done.stdout, object_pairs_hook=unique)
        return plain(document)

    def cut(self, device="near0"):
        """Detaches Weir's program from a device without Weir, like `bpftool link detach`."""
        details = json.loads(run(["ip", "-n", self.pair.near_netns, "-j", "-d", "link", "show", device]).stdout)
        program = details[0]["xdp"]["prog"]["id"]
        for link in json.loads(run(["bpftool", "-j", "link"]).stdout):
            if link["type"] == "xdp" and link["prog_id"] == program:
                run(["bpftool", "link", "detach", "id", str(link["id"])])
                return
        run(["ip", "-n", self.pair.near_netns, "-force", "link", "set", "dev", device, "xdp", "off"])

    def fails(self, status, *args, **options):
        """The single line on standard error of a command that fails."""
        done = self(*args, check=False, **options)
        assert done.returncode == status, f"{args}: {done.returncode}\n{done.stdout}{done.stderr}"
        lines = done.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("weir: "), done.stderr
        return lines[0]

    def entries(self):
        """The overlay: {address: entry}; of several kinds, the last entry."""
        return {entry["address"]: entry for entry in self.json("list")["entries"]}

    def start(self, *args):
        """For 'block --live' and 'watch': a running command, stopped at the end of the test."""
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            self.argv(*args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.started.append(process)
        return process

    def run(self, *args, **environment):
        """The agent, 'weir run', ready; ended with the test at the latest."""
        agent = Agent(self.argv("run", *args), environment)
        self.started.append(agent.process)
        agent.wait_for("READY=1")
        return agent

    def processes(self):
        """The numbers of all commands and agents of this instance, also of those whose agent was killed."""
        wanted, found = ["-n", self.name], []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
                found += [int(folder.name)] * (wanted in (words[n:n + 2] for n in range(len(words))))
        return found

    def kill(self):
        """All of its processes: a command that an agent has started outlives it, and would attach again."""
        while found := self.processes():
            for number in found:
                with contextlib.suppress(OSError):
                    os.kill(number, signal.SIGKILL)
            time.sleep(0.01)

    def remove(self):
        for process in self.started:
            process.kill()
            process.wait()
            process.stdout.close()
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # without its pins and its state it is gone, too
            self("detach", "--force", check=False)
        leftovers = self.bpffs.parent.glob(f"{self.name}+*")
        for folder in self.bpffs, self.lock, *leftovers, self.state, f"/run/weir/{self.name}":
            shutil.rmtree(folder, ignore_errors=True)
        device = ["dev", self.pair.near_device]
        for mode in ("xdpdrv", "xdpgeneric"):
            run(["ip", "-n", self.pair.near_netns, "link", "set", *device, mode, "off"], check=False)


@contextlib.contextmanager
def second_link(pair, addresses=()):
    """The two hosts of a lab over another link, near1 and far1; addresses: (host, "ADDRESS/LENGTH") of its devices."""
    near1, far1 = ["near1", "netns", pair.near_netns], ["far1", "netns", pair.far_netns]
    run(["ip", "link", "add", *near1, "address", pair.near_mac, "type", "veth", "peer", *far1])
    try:
        for host in "near", "far":
            pair.link("set", f"{host}1", "up", host=host)
        for host, address in addresses:
            run(["ip", "-n", f"{pair.name}-{host}", "address", "add", address, "dev", f"{host}1",
                 *(["nodad"] if ":" in address else [])])
        link = copy.copy(pair)
        link.near_device, link.far_device = "near1", "far1"
        yield link
    finally:
        pair.link("del", "near1")


@contextlib.contextmanager
def shared_weir(lab):
    """An instance on near0 of a lab, with small tables, for all tests of a file: each applies its own policy."""
    instance = Weir(lab)
    try:
        instance("attach", "near0", "--max-entries", "1000")
        yield instance
    finally:
        instance.remove()


class Agent:
    """A running agent, as a service manager sees it: its datagrams, its lines on standard error. Its session is its own,
    as is a service's: it shares no processor time with the tests."""

    def __init__(self, argv, environment):
        self.folder = tempfile.TemporaryDirectory()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = f"{self.folder.name}/notify"
        self.socket.bind(path)
        self.log = pathlib.Path(self.folder.name, "log")
        self.told = []  # lines of all datagrams so far
        environment = {**os.environ, "NOTIFY_SOCKET": path, **environment}
        with self.log.open("w", encoding="utf-8") as log:
            if environment.get("JOURNAL_STREAM") == "stderr":
                there = os.fstat(log.fileno())
                environment["JOURNAL_STREAM"] = f"{there.st_dev}:{there.st_ino}"
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                argv, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, start_new_session=True)

    @property
    def pid(self):
        return self.process.pid

    def said(self):
        return self.log.read_text(encoding="utf-8")

    def wait_for(self, line, seconds=20):
        """Waits for a line of a datagram; returns all lines that came up to it since the last call."""
        got = []
        end = time.monotonic() + seconds * PATIENCE
        while line not in got:
            assert self.process.poll() is None, f"the agent has ended: {self.said()}"
            assert time.monotonic() < end, f"no {line}, only {got}: {self.said()}"
            self.socket.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                got += self.socket.recv(65536).decode().split("\n")
        self.told += got
        return got

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        """Ends the agent and returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout=10 * PATIENCE)

    def kill(self):
        self.stop(signal.SIGKILL)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def rss_kb(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))

    def processor_ms(self):
        """What its loop has used so far."""
        return int(pathlib.Path(f"/proc/{self.pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e6


def until(true, seconds=10, what="it"):
    """Waits until true() is."""
    end = time.monotonic() + seconds * PATIENCE
    while not true():
        assert time.monotonic() < end, f"{what} has not come true in {seconds * PATIENCE} s"
        time.sleep(0.05)


@contextlib.contextmanager
def read_only(folder):
    """Nothing below a folder can be written."""
    run(["mount", "--bind", folder, folder])
    try:
        run(["mount", "-o", "remount,bind,ro", folder])
        yield
    finally:
        run(["umount", folder])


@contextlib.contextmanager
def running_lab(**options):
    """For tests that need a separate lab, for example with another MTU: with running_lab(mtu=9000)."""
    lab = Pair(f"t{os.getpid()}-{next(numbers)}", **options)
    lab.up()
    try:
        yield lab
    finally:
        lab.down()


def on_terminal(weir, *argv, columns=80, **environment):
    """What the command prints on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with subprocess.Popen(weir.argv(*argv), stdout=theirs, env={**os.environ, **environment}) as running:
        os.close(theirs)
        said = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # EIO: the other side is closed
                break
            if not more:
                break
            said += more
        assert running.wait() in (0, 2), said
    os.close(ours)
    return said.decode().replace("\r\n", "\n")
