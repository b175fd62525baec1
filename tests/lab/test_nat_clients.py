# SPDX-License-Identifier: GPL-2.0-only
"""Clients on the link of the balancer, each with a MAC address of its own, more than there are peers of nat and fullnat:
every answer arrives at its client, by the peer or by the routing table."""

import contextlib
import socket
import struct

import pytest
from balancerlab import BUILD, running_balancer, running_node
from labnet import ETH_P_ALL, SO_RCVBUFFORCE, run, socket_in

CLIENTS = 5000
AT_ONCE = 64  # clients: the queue of a veth holds 256 frames
PATIENCE_S = 2  # an answer that has not arrived after this silence is lost
OWN_MAC, HOST_MAC = "02:78:01:00:09:01", "02:78:01:00:09:02"  # of front0, and of the device of the clients
NETS = {4: ("10.90.0.1/16", "10.90.0.0"), 6: ("fd90::1/64", "fd90::")}  # of the balancer; first address
FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
REQUEST = b"GET /name HTTP/1.1\r\nHost: x\r\n\r\n"


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def sum_of(data):
    """The sum of the words, 0 if it includes a correct checksum."""
    data += bytes(len(data) % 2)
    return sum(struct.unpack(f"!{len(data) // 2}H", data)) % 0xFFFF


class Client:
    """A station with one connection to the VIP."""

    def __init__(self, number, family):
        net = packed(NETS[family][1])
        self.mac = struct.pack("!HI", 0x0290, number)
        self.address = net[:-4] + struct.pack("!I", int.from_bytes(net[-4:], "big") + 256 + number)
        self.port = 1024 + number * 7 % 60000
        self.seq, self.ack = number, 0
        self.got = b""  # the answer

    def name(self):
        return socket.inet_ntop(socket.AF_INET if len(self.address) == 4 else socket.AF_INET6, self.address)


class Link:
    """The clients' end of their link. All frames are sent and received here."""

    def __init__(self, netns, vip, clients):
        self.vip, self.own = packed(vip), bytes.fromhex(OWN_MAC.replace(":", ""))
        self.clients = {(each.address, each.port): each for each in clients}
        self.socket = socket_in(netns, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        self.socket.bind(("net0", ETH_P_ALL))
        self.sent = self.received = 0

    def close(self):
        self.socket.close()

    def send(self, client, flags, data=b"", seq=None):
        seq = client.seq if seq is None else seq
        tcp = struct.pack("!HHIIBBHHH", client.port, 80, seq, client.ack, 0x50, flags, 65535, 0, 0) + data
        pseudo = client.address + self.vip + struct.pack("!II", len(tcp), 6)
        tcp = tcp[:16] + struct.pack("!H", 0xFFFF - sum_of(pseudo + tcp)) + tcp[18:]
        if len(self.vip) == 4:
            ip = struct.pack("!BBHIBBH", 0x45, 0, 20 + len(tcp), 0x4000, 64, 6, 0) + client.address + self.vip
            ip = ip[:10] + struct.pack("!H", 0xFFFF - sum_of(ip)) + ip[12:]
        else:
            ip = struct.pack("!IHBB", 0x60000000, len(tcp), 6, 64) + client.address + self.vip
        ethertype = b"\x08\x00" if len(self.vip) == 4 else b"\x86\xdd"
        self.socket.send(self.own + client.mac + ethertype + ip + tcp)
        self.sent += 1

    def read(self, frame):
        """(client, sequence number, flags, data) of an answer; None: it is another packet."""
        ip, six = frame[14:], frame[12:14] == b"\x86\xdd"
        if frame[12:14] != (b"\x86\xdd" if len(self.vip) == 16 else b"\x08\x00") or ip[6 if six else 9] != 6:
            return None
        length, start = (40 + int.from_bytes(ip[4:6], "big"), 40) if six else (int.from_bytes(ip[2:4], "big"), 20)
        addresses, tcp = ip[8:40] if six else ip[12:20], ip[start:length]
        half = len(addresses) // 2
        sport, dport, seq, _, offset, flags = struct.unpack("!HHIIBB", tcp[:14])
        client = self.clients[addresses[half:], dport]
        assert frame[:6] == client.mac and frame[6:12] == self.own, f"{client.name()}: {frame.hex()}"
        assert (addresses[:half], sport) == (self.vip, 80), frame.hex()
        assert not sum_of(addresses + struct.pack("!II", len(tcp), 6) + tcp), f"checksum: {frame.hex()}"
        return client, seq, flags, tcp[(offset >> 4) * 4:]

    def next_answer(self, seconds):
        """As read(), or None after a silence of so many seconds."""
        self.socket.settimeout(seconds)
        with contextlib.suppress(TimeoutError):
            while True:
                frame, address = self.socket.recvfrom(65536)
                answer = None if address[2] == socket.PACKET_OUTGOING else self.read(frame)
                if answer:
                    self.received += 1
                    return answer
        return None

    def ask_all(self):
        """Each client connects and asks for the name of its backend, some at once. None may remain without an answer."""
        waiting, busy = iter(self.clients.values()), set()
        while True:
            while len(busy) < AT_ONCE and (client := next(waiting, None)):
                self.send(client, SYN)
                client.seq += 1
                busy.add(client)
            if not busy:
                return
            answer = self.next_answer(PATIENCE_S)
            assert answer, f"{len(busy)} clients are without an answer: {[each.name() for each in busy][:5]}"
            self.follow(*answer)
            if answer[0].got:
                busy.discard(answer[0])

    def follow(self, client, seq, flags, data):
        if flags & SYN:
            client.ack = seq + 1 & 0xFFFFFFFF
            self.send(client, ACK)
            self.send(client, ACK | PSH, REQUEST)
            client.seq += len(REQUEST)
        elif data and seq == client.ack:
            client.got += data
            client.ack = seq + len(data) & 0xFFFFFFFF
            self.send(client, ACK)

    def probe_all(self):
        """Each client sends what keepalive does, which its server acknowledges once. Returns the clients that hear it."""
        clients, heard = list(self.clients.values()), set()
        for first in range(0, len(clients), AT_ONCE):
            for client in clients[first:first + AT_ONCE]:
                self.send(client, ACK, seq=client.seq - 1)
            heard |= self.hear(0.02)
        return heard | self.hear(PATIENCE_S)

    def hear(self, seconds):
        heard = set()
        while answer := self.next_answer(seconds):
            heard.add(answer[0])
        return heard


@contextlib.contextmanager
def host_of_clients(lab):
    """A network namespace with the other end of front0, a device of the balancer."""
    netns, balancer = lab.netns("clients"), lab.netns("balancer1")
    run(["ip", "netns", "add", netns])
    try:
        lab.on("clients", ["sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"])
        run(["ip", "link", "add", "front0", "netns", balancer, "address", OWN_MAC, "type", "veth",
             "peer", "net0", "netns", netns, "address", HOST_MAC])
        for host, device in ("balancer1", "front0"), ("clients", "net0"):
            lab.on(host, ["ethtool", "-K", device, "tx", "off", "txvlan", "off", "rxvlan", "off"])
            run(["ip", "-n", lab.netns(host), "link", "set", device, "up"])
        lab.attach("clients", "net0", BUILD / "lab" / "pass.bpf.o")
        for address, _ in NETS.values():
            run(["ip", "-n", balancer, "address", "add", address, "dev", "front0", *(["nodad"] if ":" in address else [])])
        yield
    finally:
        run(["ip", "netns", "del", netns])


def forward(lab, on):
    """As for packets that the balancer sends itself."""
    value = int(on)
    lab.on("balancer1", ["sysctl", "-qw", f"net.ipv4.conf.lo.forwarding={value}", f"net.ipv6.conf.lo.forwarding={value}"])


def add_neighbours(lab, clients):
    """More than the kernel learns."""
    lines = [f"neigh replace {each.name()} lladdr {each.mac.hex(':')} dev front0 nud permanent\n" for each in clients]
    run(["ip", "-n", lab.netns("balancer1"), "-batch", "-"], input="".join(lines))


@pytest.fixture(name="lab", scope="module", params=["nat", "fullnat"])
def lab_with_a_link(request):
    with running_balancer(backends=3, mode=request.param) as lab:
        lab.mode = request.param
        with host_of_clients(lab):
            lab.on("balancer1", ["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"])
            yield lab


@pytest.fixture(name="node")
def node_of_lab(lab):
    with running_node(lab) as node:
        yield node


def policy(lab, family):
    vip, prefix = (lab.vip4, "10.78.2.") if family == 4 else (lab.vip6, "fd78:2::")
    source = "10.78.3.201" if family == 4 else "fd78:3::201"
    mode = f"mode fullnat; source {source}" if lab.mode == "fullnat" else "mode nat; connections 50000"
    backends = "; ".join(f"backend {prefix}{n}" for n in (1, 2, 3))
    return f"interface net0, front0\nservice web {{\n\tvip {vip}; port 80; {mode}\n\t{backends}\n}}\n"


def drops(node):
    return {one["reason"]: one["packets"] for one in node.service()["drops"] if one["packets"]}


@pytest.mark.parametrize("family", [4, 6])
def test_more_clients_than_peers(lab, node, tmp_path, family):
    path = tmp_path / "web.weir"
    path.write_text(policy(lab, family))
    node("apply", path)
    clients = [Client(number, family) for number in range(CLIENTS)]
    add_neighbours(lab, clients)
    with contextlib.closing(Link(lab.netns("clients"), lab.vip4 if family == 4 else lab.vip6, clients)) as link:
        link.ask_all()
        names = {each.got.split(b"\r\n\r\n")[1].decode().strip() for each in clients}
        assert names == set(lab.backends)
        shown = node.json("service")
        peers = shown["nat_peers"]
        print(f"\n{lab.mode} IPv{family}: {CLIENTS} clients, {peers} peers")
        assert shown["nat_connections"] == CLIENTS > shown["nat_peers_max"] >= peers > CLIENTS // 2
        assert not drops(node)
        # Without the routing table, only clients with a peer get their answers.
        forward(lab, False)
        heard = link.probe_all()
        forward(lab, True)
        without = {"nat-no-peer": CLIENTS - peers}
        assert len(heard) == peers and drops(node) == without
        assert len(link.probe_all()) == CLIENTS
        assert drops(node) == without
        web = node.service()
        assert (web["packets"], web["back_packets"]) == (link.sent, link.received)
