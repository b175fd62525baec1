# SPDX-License-Identifier: GPL-2.0-only
"""The lab of scripts/lab.d/balancer.sh, and queries to its hosts."""

import collections
import contextlib
import hashlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import types

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

from labnet import BUILD, LAB, Sniffer, Weir, numbers, run, socket_in

BIG = BUILD / "lab" / "big"
BIG_BYTES = 128 << 20
MULTIARCH = f"{os.uname().machine}-linux-gnu"
CROWD = pathlib.Path(__file__).with_name("crowd.py")
TOS = 0x28  # marks a flood, flood.bpf.c
FULL = os.environ.get("BALANCE") == "full"  # make connections
PART = 20_000_000 if FULL else 6_000_000


class Balancer:
    """A client, balancers and backends. Weir attaches to net0 of the balancers."""

    client4, client6 = "10.78.0.2", "fd78::2"
    vip4, vip6 = "10.78.80.1", "fd78:80::1"
    vips = (vip4, vip6)
    device = "net0"

    def __init__(self, name, backends=3, **options):
        """Options of 'lab up balancer': mode="ipip", link_mtu=1500, v6=True."""
        self.name, self.count = name, backends
        self.options = ["--backends", backends]
        for key, value in options.items():
            self.options += [f"--{key.replace('_', '-')}", *([] if value is True else [value])]

    def lab(self, command, *args, check=True):
        return run([LAB, command, "balancer", *args, "--name", self.name], check=check)

    def up(self):
        self.lab("up", *self.options)

    def down(self):
        self.lab("down")

    def route(self, *hosts):
        """Sets where the router sends the VIPs: names of hosts, or "reset"."""
        self.lab("route", *hosts)

    @property
    def backends(self):
        return [f"backend{i}" for i in range(1, self.count + 1)]

    def netns(self, host):
        return f"{self.name}-{host}"

    def on(self, host, argv, **options):
        return run(["nsenter", f"--net=/run/netns/{self.netns(host)}", "--", *argv], **options)

    def sniff(self, host, device="net0"):
        return contextlib.closing(Sniffer(self.netns(host), device))

    def send(self, host, frame, device="net0"):
        with socket_in(self.netns(host), socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
            sock.bind((device, 0))
            sock.send(bytes(frame))

    # Requests of the client

    def curl(self, address, path, *options, scheme="http", check=True):
        host = f"[{address}]" if ":" in address else address
        argv = ["curl", "-skf", "--max-time", "10", *options, f"{scheme}://{host}{path}"]
        return self.on("client", argv, check=check).stdout

    def answers(self, address):
        """True if a web server answers."""
        return bool(self.curl(address, "/name", "--max-time", "1", check=False))

    def udp(self, address, port, data):
        """Returns what this server, and no other, answers within a second."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket_in(self.netns("client"), family, socket.SOCK_DGRAM) as sock:
            sock.settimeout(1)
            sock.connect((address, port))
            sock.send(data)
            return sock.recv(65535)

    def kill_web(self, host):
        """Also closes the connections of the server. Take the link down first if clients must not notice."""
        state = pathlib.Path("/run/weir-lab", self.name)
        os.kill(int((state / f"nginx-{host}.pid").read_text(encoding="ascii")), signal.SIGTERM)

    def start_web(self, host):
        state = pathlib.Path("/run/weir-lab", self.name, host)
        nginx = ["nginx", "-p", state, "-e", state / "error.log", "-c", state / "nginx.conf"]
        for _ in range(50):  # until the previous one has exited
            if not self.on(host, nginx, check=False).returncode:
                return
            time.sleep(0.1)
        raise AssertionError(f"no web server on {host}")

    def attach(self, host, device, path, section="xdp.frags"):
        """Attaches an XDP program other than Weir's to a device, in native mode."""
        link = ["ip", "-n", self.netns(host), "link", "set", "dev", device, "xdpdrv"]
        run([*link, "obj", path, "sec", section])


@contextlib.contextmanager
def running_balancer(**options):
    lab = Balancer(f"t{os.getpid()}-b{next(numbers)}", **options)
    lab.up()
    try:
        yield lab
    finally:
        lab.down()


class Node(Weir):
    """Weir on a balancer of the lab, in a separate instance."""

    def __init__(self, lab, host="balancer1"):
        super().__init__(types.SimpleNamespace(near_netns=lab.netns(host), near_device="net0"))
        self.lab = lab

    def service(self, name="web"):
        return self.json("service", name)["services"][0]

    def backend(self, address, name="web"):
        return next(one for one in self.service(name)["backends"] if one["backend"] == address)

    def events(self, name="web"):
        return {one["event"]: one["times"] for one in self.service(name)["events"]}

    def pinned(self, name="web"):
        one = self.service(name)
        return sum(one[f"pins_{level}"] for level in ("half", "found", "talks", "closed"))


@contextlib.contextmanager
def running_node(lab, host="balancer1"):
    node = Node(lab, host)
    try:
        yield node
    finally:
        node.remove()


def policy(lab, backends, *lines, mode=None, weights=None, backups=(), extra=""):
    """The service `web` with these backends, by number, in this order; weights by number."""
    mode = mode or dict(zip(lab.options[::2], lab.options[1::2])).get("--mode", "dr")
    prefix = "fd78:2::" if "--v6" in lab.options else "10.78.2."
    weights = weights or {}
    body = [f"vip {', '.join(lab.vips)}", "proto tcp, udp", "port 7, 80, 443", f"mode {mode}", *lines]
    body += [f"backend {prefix}{n} weight {weights.get(n, 1)}{' backup' * (n in backups)}" for n in backends]
    inside = "\n".join(f"\t{line}" for line in body)
    return f'interface net0\nseed "lab"\nservice web {{\n{inside}\n}}\n{extra}'


def apply_web(node, folder, backends, *lines, **options):
    """Applies the service `web` from a file in this folder, which it returns."""
    path = folder / "web.weir"
    path.write_text(policy(node.lab, backends, *lines, **options))
    node("apply", path)
    return path


def digest(data):
    return hashlib.sha256(data).hexdigest()


def transfers(lab, folder, size=PART):
    """Downloads and uploads of that many bytes, to each VIP."""
    data = BIG.read_bytes()[1000 : 1000 + size]
    for vip in lab.vips:
        lab.curl(vip, "/big", "-o", folder / "got", "-r", f"1000-{999 + size}")
        assert digest((folder / "got").read_bytes()) == digest(data)
        upload(lab, vip, folder, size)


def upload(lab, vip, folder, size=PART):
    data = BIG.read_bytes()[1000 : 1000 + size]
    part = folder / "part"
    part.write_bytes(data)
    backend, got, sha256 = lab.curl(vip, "/upload", "-T", part, "--max-time", "25").split()
    assert backend in lab.backends and (int(got), sha256) == (size, digest(data))
    return backend


class Crowd:
    """Downloads that run while the pool changes."""

    def __init__(self, lab, count, size, rate, seconds=0, newcomers=0, vips=None):
        argv = ["nsenter", f"--net=/run/netns/{lab.netns('client')}", "--", "/usr/bin/python3", "-ES",
                CROWD, BIG, ",".join(vips or lab.vips), count, size, rate, seconds, newcomers]
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [str(arg) for arg in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.count = count
        first = self.process.stdout.readline()
        assert first == "running\n", first

    def results(self, newcomers=False):
        """Returns the result of each download when all have ended. Clients stop arriving, unless all
        newcomers are to run."""
        with self.process:
            if not newcomers:
                self.process.stdin.close()
            out = self.process.stdout.read()
        assert self.process.returncode == 0
        return json.loads(out)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@contextlib.contextmanager
def crowd_of(lab, *args, **options):
    crowd = Crowd(lab, *args, **options)
    try:
        yield crowd
    finally:
        crowd.stop()


class Flood:
    """Packets from unused sources, which meet the program on net0 of a balancer as if the driver had
    received them. With `shield`, packets do not pass the router, so that the balancer is flooded and not the
    backends. rate: packets per second, 0: as many as possible."""

    def __init__(self, lab, flags, rate=0, host="balancer1", shield=True):
        self.lab, self.host, self.shield = lab, host, shield
        self.object = BUILD / "lab" / f"{lab.name}-flood-{next(numbers)}.o"
        self.compile(self.frame(lab, host, flags))
        if shield:
            self.replace_program(self.object)
        argv = ["nsenter", f"--net=/run/netns/{lab.netns(host)}", "--", "/usr/bin/python3", "-ES",
                CROWD.with_name("flood.py"), self.object, lab.device, self.attached(), rate]
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [str(arg) for arg in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    @staticmethod
    def frame(lab, host, flags):
        mac = f"02:78:01:00:00:{int(host[-1]):02x}"
        tcp = TCP(sport=0, dport=80, flags=flags, seq=1, ack=1 if "A" in flags else 0)
        return bytes(Ether(src="02:78:00:00:00:03", dst=mac) / IP(src="0.0.0.0", dst=lab.vip4, tos=TOS) / tcp)

    def compile(self, frame):
        run(["clang", "-O2", "-g", "-target", "bpf", "-idirafter", f"/usr/include/{MULTIARCH}",
             f"-DFRAME={','.join(map(str, frame))}", "-c", CROWD.with_name("flood.bpf.c"),
             "-o", self.object])

    def attached(self):
        link = run(["ip", "-j", "-n", self.lab.netns(self.host), "link", "show", self.lab.device]).stdout
        return json.loads(link)[0]["xdp"]["prog"]["id"]

    def replace_program(self, path):
        run(["ip", "-n", self.lab.netns("router"), "-force", "link", "set", "dev", self.host, "xdpdrv",
             "obj", path, "sec", "xdp.frags"])

    def stop(self):
        """Returns packets and seconds."""
        self.process.stdin.close()
        sent, seconds = self.process.stdout.read().split()
        return int(sent), float(seconds)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        if self.shield:
            self.replace_program(BUILD / "lab" / "pass.bpf.o")
        self.object.unlink(missing_ok=True)


def failed(results, dead=()):
    """The downloads that did not complete, except from dead backends, by error."""
    return collections.Counter(
        (one["backend"], one["error"]) for one in results
        if one["error"] and one["backend"] not in dead
    )
