# SPDX-License-Identifier: GPL-2.0-only
"""What a sender gets from `reject`: resets and ICMP errors, both families."""

import contextlib
import errno
import socket
import time

import pytest
from scapy.layers.inet import ICMP, IP, TCP
from scapy.layers.l2 import Dot1Q, Ether

from labnet import Pair, shared_weir, socket_in
from policylab import SOURCE4, SOURCE6, packet, reasons, tcp, udp


@pytest.fixture(scope="module", name="weir")
def instance_on_near0(pair):
    with shared_weir(pair) as instance:
        yield instance


def curl_from_far(pair, url):
    start = time.monotonic()
    done = pair.far(["curl", "-s", "--max-time", "2", url], check=False)
    return done.returncode, time.monotonic() - start


def checksum_errors(pair):
    """The errors that the client's kernel found in answers."""
    names = "IcmpInCsumErrors", "TcpInCsumErrors", "Icmp6InCsumErrors", "IpInHdrErrors"
    found = pair.far(["nstat", "-asz", *names]).stdout.split()
    return [int(found[found.index(name) + 1]) for name in names]


@pytest.mark.parametrize("host", [Pair.near4, f"[{Pair.near6}]"])
def test_reject_refuses_a_connection_at_once(pair, apply, host):
    apply("reject proto tcp to port 8080")
    before = checksum_errors(pair)
    code, seconds = curl_from_far(pair, f"http://{host}:8080/")
    assert (code, seconds < 0.8) == (7, True)  # 7: connection refused
    assert checksum_errors(pair) == before


@pytest.mark.parametrize(
    "family, near", [(socket.AF_INET, Pair.near4), (socket.AF_INET6, Pair.near6)]
)
def test_reject_resets_an_established_connection(pair, apply, family, near):
    apply("default pass")
    before = checksum_errors(pair)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket_in(pair.near_netns, family, socket.SOCK_STREAM))
        server.bind((near, 8081))
        server.listen()
        client = stack.enter_context(socket_in(pair.far_netns, family, socket.SOCK_STREAM))
        client.settimeout(2)
        client.connect((near, 8081))
        stack.enter_context(server.accept()[0]).send(b"welcome")
        assert client.recv(100) == b"welcome"
        apply("reject proto tcp to port 8081")
        client.send(b"some data to be refused")
        with pytest.raises(ConnectionResetError):
            client.recv(100)
    assert checksum_errors(pair) == before


def test_resets_have_the_numbers_of_rfc_9293(pair, apply):
    apply("reject proto tcp to port 23")
    asks = [
        (TCP(sport=5001, dport=23, flags="S", seq=1000), ("RA", 0, 1001)),
        (TCP(sport=5002, dport=23, flags="SF", seq=2000) / b"abc", ("RA", 0, 2005)),
        (TCP(sport=5003, dport=23, flags="PA", seq=3000, ack=77) / b"abcd", ("R", 77, 0)),
        (TCP(sport=5004, dport=23, flags="S", seq=2**32 - 1,
             options=[("MSS", 1460), ("Timestamp", (1, 0))]), ("RA", 0, 0)),
    ]
    for source in SOURCE4, SOURCE6:
        with pair.sniff_far() as sniffer:
            assert not any(pair.passes(*(packet(ask, source) for ask, _ in asks)))
            got = {}
            for data in sniffer.received(lambda data: True):
                answer = Ether(data)
                if TCP in answer and answer[TCP].sport == 23:
                    got[answer[TCP].dport] = answer
        for ask, (flags, seq, ack) in asks:
            answer = got[ask.sport]
            head = answer[TCP]
            assert (str(head.flags), head.seq, head.ack) == (flags, seq, ack), ask.summary()
            assert (answer.dst, answer[1].dst) == (pair.far_mac, source)
            again = Ether(bytes(answer))
            del again[TCP].chksum
            assert Ether(bytes(again))[TCP].chksum == head.chksum


@pytest.mark.parametrize("tags", [(7,), (7, 8)])
@pytest.mark.parametrize("source", [SOURCE4, SOURCE6])
def test_answers_keep_the_tags(pair, apply, source, tags):
    apply("reject port 23")
    for ask in tcp(23, source, tags=tags), udp(23, source, tags=tags):
        with pair.sniff_far() as sniffer:
            assert pair.passes(ask) == [False]
            heard = [Ether(data) for data in sniffer.received(lambda data: True)]
        answers = [one for one in heard if Dot1Q in one and one.src == Pair.near_mac]
        assert len(answers) == 1, ask.summary()
        assert tuple(tag.vlan for tag in answers[0].iterpayloads() if tag.name == "802.1Q") == tags


def test_a_reset_is_not_answered(pair, apply, weir):
    apply("reject proto tcp to port 23")
    with pair.sniff_far() as sniffer:
        assert pair.passes(tcp(23, flags="R"), tcp(23, SOURCE6, flags="RA")) == [False, False]
        answers = sniffer.received(lambda data: TCP in Ether(data) and Ether(data)[TCP].sport == 23)
    assert answers == [] and reasons(weir)["rule-reject"] >= 2


@pytest.mark.parametrize(
    "family, near, error",
    [(socket.AF_INET, Pair.near4, errno.EHOSTUNREACH), (socket.AF_INET6, Pair.near6, errno.EACCES)],
)
def test_reject_answers_udp_with_unreachable(pair, apply, family, near, error):
    """Administratively prohibited, type 3 code 13 and type 1 code 1, as Linux reports them."""
    apply("reject proto udp to port 9")
    before = checksum_errors(pair)
    for size in 0, 1, 7, 8, 9, 43, 1000:
        with socket_in(pair.far_netns, family, socket.SOCK_DGRAM) as client:
            client.settimeout(1)
            client.connect((near, 9))
            client.send(bytes(size))
            with pytest.raises(OSError) as caught:
                client.recv(100)
        assert caught.value.errno == error, f"{size} bytes of payload"
    assert checksum_errors(pair) == before


def test_reject_is_limited(pair, apply, weir):
    apply("reject proto udp to port 9")
    before = reasons(weir)
    start = time.monotonic()
    pair.send_from_far(*[bytes(udp())] * 6000)
    seconds = time.monotonic() - start
    after = reasons(weir)
    answered, silent = (after[one] - before[one] for one in ("reply", "rule-reject"))
    assert answered + silent == 6000
    # A sender gets a burst of 50, then 50 per second, whatever HZ is.
    assert 50 <= answered < 50 * seconds + 100 and silent > 0, (answered, silent, seconds)


def test_a_flood_of_forged_senders_starves_no_other(pair, apply, weir):
    """5,000 senders, as in a flood with forged sources, exceed what all have together; a moment later one more is
    answered, beside one that sends too much."""
    apply("reject proto udp to port 9")
    before = reasons(weir)
    pair.send_from_far(*(bytes(udp(src=f"198.18.{n >> 8}.{n & 255}")) for n in range(5000)))
    flood = reasons(weir)["reply"] - before["reply"]
    time.sleep(0.5)
    pair.send_from_far(*[bytes(udp(src="198.18.0.1"))] * 2000)
    before = reasons(weir)
    with pair.sniff_far() as sniffer:
        assert pair.passes(udp()) == [False]
        answers = sniffer.received(lambda data: ICMP in Ether(data) and Ether(data)[IP].dst == SOURCE4)
    assert 500 <= flood < 5000
    assert reasons(weir)["reply"] == before["reply"] + 1 and len(answers) == 1
