# SPDX-License-Identifier: GPL-2.0-only
"""The lab of scripts/lab.d/balancer.sh, and what its hosts can be asked."""

import contextlib
import os
import socket

from labnet import BUILD, LAB, Sniffer, numbers, run, socket_in

BIG = BUILD / "lab" / "big"
BIG_BYTES = 128 << 20


class Balancer:
    """A client, balancers and backends; Weir attaches to net0 of the balancers."""

    client4, client6 = "10.78.0.2", "fd78::2"
    vip4, vip6 = "10.78.80.1", "fd78:80::1"
    vips = (vip4, vip6)
    device = "net0"

    def __init__(self, name, backends=3, **options):
        """Options are those of 'lab up balancer': mode="ipip", link_mtu=1500, v6=True."""
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
        """Where the router sends the VIPs: hosts by name, or "reset"."""
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

    # What the client gets

    def curl(self, address, path, *options, scheme="http", check=True):
        host = f"[{address}]" if ":" in address else address
        argv = ["curl", "-skf", "--max-time", "10", *options, f"{scheme}://{host}{path}"]
        return self.on("client", argv, check=check).stdout

    def answers(self, address):
        """Is there a web server?"""
        return bool(self.curl(address, "/name", "--max-time", "1", check=False))

    def udp(self, address, port, data):
        """What comes back from there, and from nowhere else, within a second."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket_in(self.netns("client"), family, socket.SOCK_DGRAM) as sock:
            sock.settimeout(1)
            sock.connect((address, port))
            sock.send(data)
            return sock.recv(65535)

    def attach(self, host, device, path, section="xdp.frags"):
        """Puts an XDP program that is not Weir's on a device, natively."""
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
