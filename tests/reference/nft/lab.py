# SPDX-License-Identifier: GPL-2.0-only
"""Two network namespaces with a cable: frames from `far`, nft in `near`, which reports the rule of each."""
import contextlib
import ctypes
import os
import select
import socket
import subprocess

from nflog import Log

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
GROUP = 7
BATCH = 64
END = "end"
FAR4, FAR6 = "10.9.0.2", "2001:db8:9::2"
TCP_PORT, UDP_PORT = 7000, 7001
SETTINGS = {"nf_conntrack_checksum": 0, "nf_conntrack_tcp_be_liberal": 1, "nf_conntrack_udp_timeout_stream": 3600,
            "nf_conntrack_udp_timeout": 3600}
ROUTES = ("route add default via 10.20.0.2 dev n1", "-6 route add default via 2001:db8:20::2 dev n1",
          "route add 10.30.0.0/16 via 10.9.0.2", "-6 route add 2001:db8:30::/64 via 2001:db8:9::2",
          "route add blackhole 10.40.0.0/24", "-6 route add blackhole 2001:db8:40::/64",
          "route add unreachable 10.41.0.0/24", "-6 route add unreachable 2001:db8:41::/64",
          "route add prohibit 10.42.0.0/24", "-6 route add prohibit 2001:db8:42::/64",
          "route add 10.50.0.0/24 dev n0", "-6 route add 2001:db8:50::/64 dev n0",
          "route add 10.70.0.0/24 dev n0 table 70", "-6 route add 2001:db8:70::/64 dev n0 table 70",
          "route add 10.20.0.0/16 dev n0 table 71", "-6 route add 2001:db8:20::/64 dev n0 table 71",
          "rule add dsfield 0x10 table 70", "-6 rule add dsfield 0x10 table 70",
          "rule add from 10.0.3.0/24 ipproto udp table 71", "-6 rule add from 2001:db8:3::/64 ipproto udp table 71")
VLAN_ROUTES = ("route add 10.60.0.0/24 dev n0.7", "-6 route add 2001:db8:60::/64 dev n0.7")
ALL_NEAR = ("set n0 address 02:00:00:00:00:01", "set lo up", "set n0 up")


@contextlib.contextmanager
def inside(name):
    """In the network namespace. Sockets that are opened here stay in it."""
    with open("/proc/self/ns/net", encoding="ascii") as before, open(f"/run/netns/{name}", encoding="ascii") as there:
        if LIBC.setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            LIBC.setns(before.fileno(), CLONE_NEWNET)


def run(*command, **options):
    subprocess.run(command, check=True, **options)


class Lab:
    """Addresses 10.0.X.1 and 2001:db8:X::1 of near, for each X of `nets`."""

    def __init__(self, nets):
        self.near, self.far = f"weir-nft-{os.getpid()}-near", f"weir-nft-{os.getpid()}-far"
        self.nets, self.open, self.vlans = nets, [], False

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.remove()
            raise
        return self

    def build(self):
        for name in self.near, self.far:
            run("ip", "netns", "add", name)
        run("ip", "-n", self.near, "link", "add", "n0", "type", "veth", "peer", "name", "f0", "netns", self.far)
        for words in ALL_NEAR:
            run("ip", "-n", self.near, "link", *words.split())
        run("ip", "-n", self.far, "link", "set", "f0", "address", "02:00:00:00:00:02", "up")
        self.address(self.near, "n0", "10.9.0.1/24", "2001:db8:9::1/64")
        self.address(self.far, "f0", f"{FAR4}/24", f"{FAR6}/64")
        for net in self.nets:
            self.address(self.near, "lo", f"10.0.{net}.1/32", f"2001:db8:{net:x}::1/128")
        run("ip", "-n", self.far, "route", "add", "10.0.0.0/16", "via", "10.9.0.1")
        run("ip", "-n", self.far, "route", "add", "2001:db8::/32", "via", "2001:db8:9::1")
        with inside(self.near):
            self.log = Log(GROUP)
        with inside(self.far):
            self.cable = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.cable.bind(("f0", 0))

    def add_vlan(self):
        """Packets with tag 7 reach near's stack, too, where the kernel has VLAN devices."""
        add = ("ip", "-n", self.near, "link", "add", "link", "n0", "name", "n0.7", "type", "vlan", "id", "7")
        self.vlans = not subprocess.run(add, capture_output=True, check=False).returncode
        if self.vlans:
            run("ip", "-n", self.near, "link", "set", "n0.7", "up")
        else:
            print("skipped: tagged frames, which cannot reach connection tracking: this kernel has no VLAN devices")

    def add_routes(self):
        """Of all kinds, by n0, by another cable n1, and by n0.7 if there is one, in several tables."""
        run("ip", "-n", self.near, "link", "add", "n1", "type", "veth", "peer", "name", "f1", "netns", self.far)
        run("ip", "-n", self.near, "link", "set", "n1", "up")
        run("ip", "-n", self.far, "link", "set", "f1", "up")
        self.address(self.near, "n1", "10.20.0.1/24", "2001:db8:20::1/64")
        for value in ROUTES + (VLAN_ROUTES if self.vlans else ()):
            run("ip", "-n", self.near, *value.split())
        for family in "ipv4", "ipv6":
            run("ip", "netns", "exec", self.near, "sysctl", "-qw", f"net.{family}.conf.lo.forwarding=1")

    def remove(self):
        for name in self.near, self.far:
            subprocess.run(("ip", "netns", "del", name), capture_output=True, check=False)

    def __exit__(self, *_):
        for one in self.open:
            one.close()
        self.cable.close()
        self.remove()

    @staticmethod
    def address(name, device, four, six):
        run("ip", "-n", name, "addr", "add", four, "dev", device)
        run("ip", "-n", name, "addr", "add", six, "dev", device, "nodad")

    def nft(self, text):
        with inside(self.near):
            run("nft", "-f", "-", input=text, text=True)

    def track(self):
        """near tracks connections from now on."""
        chain = "type filter hook prerouting priority -190; ct state new counter;"
        self.nft(f"table inet track {{ chain in {{ {chain} }}\n}}\n")
        with inside(self.near):
            for name, value in SETTINGS.items():
                with open(f"/proc/sys/net/netfilter/{name}", "w", encoding="ascii") as file:
                    file.write(str(value))

    def connect(self, draw, count):
        """Connections of near, alternately: (family, protocol, net, port of near)."""
        servers = {}
        with inside(self.far):
            for family, kind in FAMILIES:
                server = servers[family, kind] = socket.socket(family, kind)
                server.settimeout(5)
                if family == socket.AF_INET6:
                    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                server.bind(("", TCP_PORT if kind == socket.SOCK_STREAM else UDP_PORT))
                if kind == socket.SOCK_STREAM:
                    server.listen(count)
                self.open.append(server)
        with inside(self.near):
            return [self.connect_one(servers, *FAMILIES[n % len(FAMILIES)], draw.choice(self.nets))
                    for n in range(count)]

    def connect_one(self, servers, family, kind, net):
        four = family == socket.AF_INET
        one = socket.socket(family, kind)
        one.settimeout(5)
        one.bind((f"10.0.{net}.1" if four else f"2001:db8:{net:x}::1", 0))
        one.connect((FAR4 if four else FAR6, TCP_PORT if kind == socket.SOCK_STREAM else UDP_PORT))
        if kind == socket.SOCK_DGRAM:
            one.send(b"x")
            servers[family, kind].sendto(b"y", servers[family, kind].recvfrom(16)[1])
            one.recv(16)
        self.open.append(one)
        return 4 if four else 6, 6 if kind == socket.SOCK_STREAM else 17, net, one.getsockname()[1]

    def answers(self, frames, last):
        """The prefix that nft reports for each frame, by its number; the frame `last` ends the wait."""
        found, ended = {}, False
        for at, frame in enumerate([*frames, last]):
            self.cable.send(frame)
            ended = at == len(frames)
            while ended or at % BATCH == BATCH - 1 and self.log_has():
                for prefix, packet in self.log.read():
                    if prefix == END:
                        return found
                    found[number_of(packet)] = prefix
        raise TimeoutError

    def log_has(self):
        return bool(select.select([self.log.socket], [], [], 0)[0])


FAMILIES = [(family, kind) for family in (socket.AF_INET, socket.AF_INET6)
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]


def number_of(packet):
    """The number of a frame is IPv4's identification, or IPv6's flow label."""
    if packet[0] >> 4 == 4:
        return int.from_bytes(packet[4:6], "big")
    return int.from_bytes(packet[1:4], "big") & 0xfffff
