#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the cases that tests/datapath/run sends through the datapath; the format is described in run.c.

Where a case names the reason it wants, that is the tester's word and the model has to agree; the rest,
truncations and random frames, is the model's word alone."""
import ipaddress
import logging
import random
import struct
import sys

logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption  # noqa: E402
from scapy.layers.inet6 import (AH, ESP, ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6ND_NA,  # noqa: E402
                                ICMPv6ND_NS, ICMPv6ND_Redirect, ICMPv6ND_RA, ICMPv6ND_RS, IPv6,
                                IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop,
                                IPv6ExtHdrRouting)
from scapy.layers.l2 import ARP, GRE, LLC, Dot3, Ether  # noqa: E402
from scapy.layers.sctp import SCTP, SCTPChunkInit  # noqa: E402
from scapy.packet import Raw  # noqa: E402

import model  # noqa: E402
