# SPDX-License-Identifier: GPL-2.0-only
"""The lab of balancers, without Weir: what tests of services rely on."""

import contextlib
import json
import os
import signal
import subprocess
import time

import pytest
from balancerlab import BIG, BIG_BYTES, Balancer, digest, running_balancer
from labnet import LAB, PATIENCE, WEIR, run, traces
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6, in6_getnsma, in6_getnsmac
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw
from scapy.pton_ntop import inet_ntop, inet_pton

GUE_PORT = 6080
MODES = ("dr", "ipip", "gue")
BROADCAST = "ff:ff:ff:ff:ff:ff"
BALANCER_MAC = "02:78:01:00:00:01"


@pytest.fixture(scope="module", name="labs")
def labs_by_mode():
    """labs("ipip"): one lab for each mode, for all tests that restore its state."""
    with contextlib.ExitStack() as stack:
        made = {}

        def get(mode):
            if mode not in made:
                made[mode] = stack.enter_context(running_balancer(mode=mode, backends=2))
            return made[mode]

        yield get


@pytest.fixture(name="new")
def factory():
    """new(nodes=2) creates a lab for one test."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(running_balancer(**options))


@pytest.mark.parametrize("mode", MODES)
def test_each_backend_answers_from_the_vips(labs, mode):
    lab = labs(mode)
    for backend in lab.backends:
        lab.route(backend)
        for vip in lab.vips:
            for scheme in "http", "https":
                assert lab.curl(vip, "/name", scheme=scheme) == f"{backend}\n"
            assert lab.udp(vip, 7, b"echo") == b"echo"
            assert lab.udp(vip, 443, b"who") == f"{backend} who".encode()
    lab.route("reset")
    assert not any(lab.answers(vip) for vip in lab.vips)  # a balancer without Weir


def test_large_transfers_are_exact(labs, tmp_path):
    lab = labs("dr")
    lab.route("backend2")
    data = BIG.read_bytes()
    assert len(data) == BIG_BYTES
    part = tmp_path / "part"
    part.write_bytes(data[5_000_000:15_000_000])
    for vip in lab.vips:
        lab.curl(vip, "/big", "-o", tmp_path / "got")
        assert digest((tmp_path / "got").read_bytes()) == digest(data)
        upload = lab.curl(vip, "/upload", "-T", part).split()
        assert upload == ["backend2", "10000000", digest(part.read_bytes())]
    lab.route("reset")


def test_rate_of_a_download(labs):
    lab = labs("dr")
    lab.route("backend1")
    start = time.monotonic()
    lab.curl(lab.vip4, "/big?rate=1m", "-o", "/dev/null", "-r", "0-2999999")
    assert time.monotonic() - start > 1.5
    lab.route("reset")


def test_iperf3(labs):
    lab = labs("dr")
    lab.route("backend1")
    for vip in lab.vips:
        for options in ["-n", "10M"], ["-u", "-n", "1M", "-b", "20M"]:
            argv = ["iperf3", "-J", "-c", vip, *options]
            end = json.loads(lab.on("client", argv).stdout)["end"]
            assert end.get("sum_received", end.get("sum"))["bytes"] > 900_000
    lab.route("reset")


@pytest.mark.parametrize("nics", [1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_all_networks_reach_each_other(new, mode, nics):
    lab = new(mode=mode, nics=nics, backends=2, nodes=2)
    front = 2 if mode == "dr" and nics == 1 else 1
    for net, host in (front, 201), (front, 202), (2, 1), (2, 2):
        for address in f"10.78.{net}.{host}", f"fd78:{net}::{host}":
            assert ping(lab, "client", address)
            assert ping(lab, "balancer1", address)
            assert ping(lab, "backend2", address)
    route = lab.on("balancer1", ["ip", "route", "get", "10.78.2.1"]).stdout
    assert (" dev back0 " in route) == (nics == 2)


def ping(lab, host, address, *options):
    argv = ["ping", "-n", "-q", "-c1", "-W1", *options, address]
    return lab.on(host, argv, check=False).returncode == 0


# Instead of a balancer: packets to a VIP go to the MAC address of one backend, back out of net0 or, with OUT,
# out of the device with that index.
STAND_IN = """
struct xdp_md { unsigned data, data_end; };
static long (*redirect)(unsigned index, unsigned long long flags) = (void *)23;
char _license[] __attribute__((section("license"), used)) = "GPL";
__attribute__((section("xdp.frags"), used)) int stand_in(struct xdp_md *ctx)
{
	unsigned char *p = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	int v4, v6;
	if (p + 54 > end)
		return 2;
	v4 = p[12] == 0x08 && p[30] == 10 && p[31] == 78 && p[32] == 80 && p[33] == 1;
	v6 = p[12] == 0x86 && p[38] == 0xfd && p[39] == 0x78 && p[41] == 0x80 && p[53] == 1;
	if (!v4 && !v6)
		return 2;
	for (int i = 0; i < 6; i++)
		p[6 + i] = p[i];
	p[0] = 2; p[1] = 0x78; p[2] = 2; p[3] = p[4] = 0; p[5] = BACKEND;
	return OUT ? redirect(OUT, 0) : 3;
}
"""


@pytest.mark.parametrize("nics", [1, 2])
def test_what_a_balancer_sends_by_xdp_arrives(new, tmp_path, nics):
    lab = new(nics=nics, backends=2)
    out = device_index(lab, "balancer1", "back0") if nics == 2 else 0
    clang = ["clang", "-O2", "-target", "bpf", f"-DOUT={out}", "-DBACKEND=2"]
    run([*clang, "-x", "c", "-", "-c", "-o", tmp_path / "in.o"], input=STAND_IN)
    lab.attach("balancer1", "net0", tmp_path / "in.o")
    up = tmp_path / "up"
    up.write_bytes(BIG.read_bytes()[:3_000_000])
    for vip in lab.vips:
        assert lab.curl(vip, "/name") == "backend2\n"
        assert lab.curl(vip, "/upload", "-T", up).split()[2] == digest(up.read_bytes())
        lab.curl(vip, "/big", "-o", tmp_path / "got")
        assert digest((tmp_path / "got").read_bytes()) == digest(BIG.read_bytes())


def device_index(lab, host, device):
    link = run(["ip", "-n", lab.netns(host), "-j", "link", "show", "dev", device])
    return json.loads(link.stdout)[0]["ifindex"]


def asks_for(address):
    """Resolves the MAC address of a host from balancer1."""
    if ":" not in address:
        return Ether(src=BALANCER_MAC, dst=BROADCAST) / ARP(
            hwsrc=BALANCER_MAC, psrc="10.78.2.201", pdst=address
        )
    group = in6_getnsma(inet_pton(10, address))
    return (
        Ether(src=BALANCER_MAC, dst=in6_getnsmac(group))
        / IPv6(src="fd78:2::201", dst=inet_ntop(10, group), hlim=255)
        / ICMPv6ND_NS(tgt=address)
        / ICMPv6NDOptSrcLLAddr(lladdr=BALANCER_MAC)
    )


def test_backends_do_not_tell_of_the_vips(labs):
    lab = labs("dr")
    for own, vip in ("10.78.2.1", lab.vip4), ("fd78:2::1", lab.vip6):
        for address, answers in (own, 1), (vip, 0):
            with lab.sniff("balancer1") as sniffer:
                lab.send("balancer1", asks_for(address))
                got = sniffer.received(lambda data: is_reply(data, address), wait=0.3)
            assert len(got) == answers, address


def is_reply(data, address):
    frame = Ether(data)
    if ARP in frame:
        return frame[ARP].op == 2 and frame[ARP].psrc == address
    advertises = data[12:14] == b"\x86\xdd" and data[54:55] == b"\x88"
    return advertises and data[62:78] == inet_pton(10, address)


@pytest.mark.parametrize("mode, overhead", [("dr", 0), ("ipip", 40), ("gue", 80)])
def test_room_for_the_outer_headers(labs, mode, overhead):
    lab = labs(mode)
    size = 1500 + overhead - 28
    assert ping(lab, "balancer1", "10.78.2.1", f"-s{size}", "-Mdo")
    assert not ping(lab, "balancer1", "10.78.2.1", f"-s{size + 1}", "-Mdo")


def test_links_without_that_room(new):
    lab = new(mode="ipip", link_mtu=1500, backends=1)
    assert ping(lab, "balancer1", "10.78.2.1", "-s1472", "-Mdo")
    assert not ping(lab, "balancer1", "10.78.2.1", "-s1473", "-Mdo")


def test_jumbo_frames(new):
    lab = new(mtu=9000, backends=1)
    lab.route("backend1")
    for vip in lab.vips:
        assert ping(lab, "client", vip, "-s8952", "-Mdo")
        assert lab.curl(vip, "/name") == "backend1\n"


def request_of_client(family, port):
    tcp = TCP(sport=port, dport=80, flags="S", seq=1000)
    if family == 4:
        return IP(src=Balancer.client4, dst=Balancer.vip4) / tcp
    return IPv6(src=Balancer.client6, dst=Balancer.vip6) / tcp


def tunnelled(mode, outer, inner):
    """A request as a balancer sends it to backend2."""
    ether = Ether(src=BALANCER_MAC, dst="02:78:01:00:01:01")
    if outer == 4:
        header = IP(src="10.78.1.201", dst="10.78.2.2")
    else:
        header = IPv6(src="fd78:1::201", dst="fd78:2::2")
    if mode == "ipip":
        return ether / header / inner
    return ether / header / UDP(sport=50000, dport=GUE_PORT) / Raw(bytes(inner))


@pytest.mark.parametrize("inner", [4, 6])
@pytest.mark.parametrize("outer", [4, 6])
@pytest.mark.parametrize("mode", ["ipip", "gue"])
def test_backends_take_the_outer_header_off(labs, mode, outer, inner):
    lab = labs(mode)
    port = 40000 + 10 * outer + inner
    request = request_of_client(inner, port)
    with lab.sniff("client") as sniffer:
        lab.send("balancer1", tunnelled(mode, outer, request))
        answers = [Ether(data) for data in sniffer.received(lambda data: is_syn_ack(data, port))]
    assert answers, "no SYN-ACK"
    ip = IP if inner == 4 else IPv6
    assert (answers[0][ip].src, answers[0][ip].dst) == (request[ip].dst, request[ip].src)
    assert answers[0][TCP].ack == 1001


def is_syn_ack(data, port):
    frame = Ether(data)
    return TCP in frame and frame[TCP].dport == port and frame[TCP].flags == "SA"


def test_flows_are_spread_over_the_balancers(new):
    lab = new(nodes=2, backends=1)
    for family in 4, 6:
        with lab.sniff("balancer1") as one, lab.sniff("balancer2") as two:
            for port in range(1000, 1064):
                for _ in range(2):  # the following packets take the same path
                    lab.send("client", first_hop() / request_of_client(family, port))
            seen = [ports(sniffer) for sniffer in (one, two)]
        assert min(len(set(each)) for each in seen) >= 16
        assert sorted(seen[0] + seen[1]) == sorted(2 * list(range(1000, 1064)))
        assert not set(seen[0]) & set(seen[1])
    lab.route("balancer2")
    with lab.sniff("balancer1") as one, lab.sniff("balancer2") as two:
        for port in range(1000, 1064):
            lab.send("client", first_hop() / request_of_client(4, port))
        assert [len(ports(sniffer)) for sniffer in (one, two)] == [0, 64]


def first_hop():
    return Ether(src="02:78:00:00:00:02", dst="02:78:00:00:00:01")


def ports(sniffer):
    frames = [Ether(data) for data in sniffer.received(lambda data: True)]
    return [frame[TCP].sport for frame in frames if TCP in frame]


@pytest.mark.parametrize("mode", MODES)
def test_status(labs, mode):
    lab = labs(mode)
    done = lab.lab("status", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NO DECAPSULATION" not in done.stdout
    for word in [*lab.vips, "10.78.2.2/", "fd78:2::2/", "tx off, gro on", "lab_pass",
                 f"/run/weir-lab/{lab.name}/policy.weir"]:
        assert word in done.stdout
    assert done.stdout.count("nginx pid") == 2


def test_status_misses_a_server(new):
    lab = new(backends=2)
    with open(f"/run/weir-lab/{lab.name}/nginx-backend2.pid", encoding="ascii") as file:
        os.kill(int(file.read()), signal.SIGKILL)
    done = lab.lab("status", check=False)
    assert done.returncode == 1
    assert "nginx NOT RUNNING" in done.stdout


def test_status_misses_the_decapsulation(new):
    lab = new(mode="ipip", backends=2)
    lab.on("backend2", [WEIR, "decap", "net0", "--off"])
    done = lab.lab("status", check=False)
    assert done.returncode == 1
    assert "backend2   NO DECAPSULATION: " in done.stdout
    assert "backend1   NO DECAPSULATION" not in done.stdout


@pytest.mark.parametrize(
    "options, mode, backend",
    [({}, "dr", "10.78.2.3"), ({"mode": "gue", "v6": True}, "gue", "fd78:2::3")],
)
def test_policy(new, options, mode, backend):
    lab = new(**options)
    policy = lab.lab("policy").stdout
    with open(f"/run/weir-lab/{lab.name}/policy.weir", encoding="ascii") as file:
        assert file.read() == policy
    assert policy.count(f"\tmode     {mode}\n") == 2
    assert policy.count("\tbackend  ") == 6
    assert policy.count(f"\tbackend  {backend}\n") == 2


def test_two_labs_side_by_side(labs, new):
    first, second = labs("dr"), new(backends=1)
    first.route("backend2")
    second.route("backend1")
    for vip in Balancer.vips:
        assert first.curl(vip, "/name") == "backend2\n"
        assert second.curl(vip, "/name") == "backend1\n"
    second.down()
    assert first.curl(Balancer.vip6, "/name") == "backend2\n"
    first.route("reset")


def test_another_kind_of_the_same_name_is_left_alone(labs):
    lab = labs("dr")
    for command in "down", "status", "dns":
        done = run([LAB, command, "pair", "--name", lab.name], check=False)
        assert done.returncode == 2
        assert "is of kind 'balancer'" in done.stderr
    assert lab.lab("status").returncode == 0


def test_up_replaces_a_larger_lab(new):
    lab = new(backends=3, nodes=2)
    lab.lab("up", "--backends", "1")
    left = {os.path.basename(path) for path in traces(lab.name) if "netns" in path}
    assert left == {lab.netns(host) for host in ("client", "router", "balancer1", "backend1")}


def test_down_leaves_nothing(new):
    lab = new(mode="ipip", nics=2)
    assert len(traces(lab.name)) >= 10
    lab.down()
    assert traces(lab.name) == []


# up with one backend takes about 500 ms.
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("delay_ms", range(20, 500, 60))
def test_up_stopped_leaves_nothing(stop, delay_ms):
    lab = Balancer(f"t{os.getpid()}-bint")
    argv = [LAB, "up", "balancer", "--backends", "1", "--name", lab.name]
    with subprocess.Popen(argv, start_new_session=True) as up:
        time.sleep(delay_ms / 1000)
        os.killpg(up.pid, stop)
        status = up.wait(timeout=10 * PATIENCE)
    if stop == signal.SIGKILL or status == 0:
        lab.down()
    assert traces(lab.name) == []
