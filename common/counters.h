/* SPDX-License-Identifier: GPL-2.0-only */
/* Every way a packet can leave Weir, once: the enum, the names users see, and the documentation.
 * Lines are X(SYMBOL, "name", verdict, "what it means"). New ones go before the end of their group;
 * that changes WEIR_LAYOUT. */
#pragma once

#include <linux/types.h>

#include "common/limits.h"

/* clang-format off */
#define WEIR_REASONS(X) \
	X(PASS_DEFAULT,	     "default",		PASS, "nothing spoke against it") \
	X(PASS_NOT_IP,	     "not-ip",		PASS, "ARP, LLDP and other frames that are not IP") \
	X(PASS_ND,	     "neighbour",	PASS, "IPv6 neighbour discovery, which blocks never cut") \
	X(PASS_ALLOW,	     "allow",		PASS, "an overlay allow entry") \
	X(PASS_BYPASS,	     "bypass",		PASS, "weir bypass is on") \
	X(PASS_NO_POLICY,    "no-policy",	PASS, "the program slot was empty: an alarm") \
	X(PASS_MALFORMED,    "malformed-pass",	PASS, "malformed, but the policy says malformed pass") \
	X(PASS_RULE, "rule-pass", PASS, "a pass rule of the policy") \
	X(PASS_FRAGMENTS, "fragments-pass", PASS, "the policy says fragments pass") \
	X(PASS_ARP, "essential-arp", PASS, "ARP under default drop") \
	X(PASS_ICMP_ERROR, "essential-icmp", PASS, "an ICMP error under default drop") \
	X(PASS_MLD, "essential-mld", PASS, "multicast listener discovery under default drop") \
	X(PASS_DHCP, "essential-dhcp", PASS, "a DHCP answer under default drop") \
	X(PASS_REPLY, "reply", PASS, "an answer of reject rules that left the way the packet came") \
	X(PASS_REDIRECT, "redirect", PASS, "a redirect rule of the policy") \
	X(PASS_SERVICE, "service", PASS, "sent to a backend of a service") \
	X(PASS_HERE, "service-here", PASS, "of a service, to the backend that is this host") \
	X(PASS_ECHO, "service-echo", PASS, "an echo request to a service's address, answered") \
	X(PASS_TOO_BIG, "service-too-big", PASS, "too big for the way to its backend: answered with ICMP") \
	X(PASS_PATH_MTU, "service-path-mtu", PASS, "a router's 'too big' about a tunnel packet, passed on to the client") \
	X(PASS_TTL, "service-ttl", PASS, "TTL or hop limit used up on the way to a backend: answered with ICMP") \
	X(DROP_BLOCK_FROM,   "block-from",	DROP, "an overlay block entry for the source") \
	X(DROP_BLOCK_TO,     "block-to",	DROP, "an overlay block entry for the destination") \
	X(DROP_RULE, "rule-drop", DROP, "a drop rule of the policy") \
	X(DROP_REJECT, "rule-reject", DROP, "a reject rule of the policy whose answer was not sent: too many, or to an error") \
	X(DROP_DEFAULT, "default-drop", DROP, "the policy says default drop and no rule spoke for it") \
	X(DROP_FRAGMENTS, "fragments-drop", DROP, "the policy says fragments drop") \
	X(DROP_REDIRECT, "redirect-failed", DROP, "a redirect rule whose interface is not there") \
	X(DROP_MARTIAN, "service-martian", DROP, "to a service, from a source that nobody can have: unspecified, loopback, multicast, broadcast, the address of a service") \
	X(DROP_ECHO, "service-echo-silent", DROP, "an echo request to a service's address, and no answer was allowed: too many") \
	X(DROP_NO_BACKEND, "service-no-backend", DROP, "a service that never had a backend") \
	X(DROP_NO_NEXT_HOP, "service-no-next-hop", DROP, "no next hop is known for the backend: weir service --refresh") \
	X(DROP_EGRESS, "service-egress", DROP, "the device to the backend cannot transmit what XDP redirects") \
	X(DROP_TTL, "service-ttl-silent", DROP, "TTL or hop limit used up on the way to a backend, and no answer was allowed") \
	X(DROP_TOO_BIG, "service-too-big-silent", DROP, "too big for the way to its backend, and no answer was allowed") \
	X(DROP_SERVICE_FRAGMENT, "service-fragment", DROP, "a later fragment to a service without hash source") \
	X(DROP_FORWARD, "service-forward", DROP, "the packet could not be rewritten for its backend") \
	X(DROP_INTERNAL,     "internal",	DROP, "a look-up failed that cannot fail: report it") \
	X(DROP_VLAN_SHORT,   "vlan-truncated",	DROP, "the frame ends inside a VLAN tag") \
	X(DROP_VLAN_DEEP,    "vlan-too-deep",	DROP, "more than four VLAN tags") \
	X(DROP_IP4_SHORT,    "ip4-truncated",	DROP, "the frame ends inside the IPv4 header") \
	X(DROP_IP4_HEADER,   "ip4-header",	DROP, "IPv4 version is not 4 or the header is shorter than 20 bytes") \
	X(DROP_IP4_LENGTH,   "ip4-length",	DROP, "IPv4 total length is less than the header or more than the frame") \
	X(DROP_IP6_SHORT,    "ip6-truncated",	DROP, "the frame ends inside the IPv6 header") \
	X(DROP_IP6_HEADER,   "ip6-header",	DROP, "IPv6 version is not 6") \
	X(DROP_IP6_LENGTH,   "ip6-length",	DROP, "IPv6 payload length is more than the frame, or a jumbogram") \
	X(DROP_EXT_SHORT,    "ip6-ext-truncated", DROP, "the packet ends inside an extension header") \
	X(DROP_EXT_MANY,     "ip6-ext-too-many", DROP, "more than eight extension headers") \
	X(DROP_EXT_ORDER,    "ip6-ext-order",	DROP, "a hop-by-hop header that is not the first, or a second fragment header") \
	X(DROP_FRAG_SHORT,   "fragment-header",	DROP, "a first fragment without the whole transport header (RFC 7112)") \
	X(DROP_FRAG_LENGTH,  "fragment-length",	DROP, "a fragment that is not a multiple of 8 bytes, is empty, or reaches beyond 65,535") \
	X(DROP_TCP_SHORT,    "tcp-truncated",	DROP, "the packet ends inside the TCP header") \
	X(DROP_TCP_OFFSET,   "tcp-offset",	DROP, "TCP data offset is below 5 or beyond the packet") \
	X(DROP_UDP_SHORT,    "udp-truncated",	DROP, "the packet ends inside the UDP header") \
	X(DROP_UDP_LENGTH,   "udp-length",	DROP, "UDP length is below 8 or beyond the packet") \
	X(DROP_ICMP_SHORT,   "icmp-truncated",	DROP, "the packet ends inside the ICMP header") \
	X(DROP_ICMP6_SHORT,  "icmp6-truncated",	DROP, "the packet ends inside the ICMPv6 header") \
	X(DROP_SCTP_SHORT,   "sctp-truncated",	DROP, "the packet ends inside the SCTP header") \
	X(DROP_NONLINEAR,    "header-split",	DROP, "headers reach beyond the packet's first buffer")

/* What happened beside the verdicts, once an event: X(SYMBOL, "name", "what it means"). */
#define WEIR_TALLIES(X) \
	X(FOREIGN, "foreign-frame", "a packet for a service or a reject rule, in a frame to another station: neither balanced nor answered") \
	X(LIMIT_PUSHED, "limit-pushed-out", "the table of a limit per source or destination was full: the idlest address lost its time")
/* clang-format on */

enum weir_reason {
#define X(symbol, name, verdict, text) REASON_##symbol,
	WEIR_REASONS(X)
#undef X
		WEIR_REASON_COUNT,
};

/* Reasons from here on drop the packet. */
#define REASON_DROP_FIRST REASON_DROP_BLOCK_FROM

/* First and last reason that means "malformed". */
#define REASON_MALFORMED_FIRST REASON_DROP_VLAN_SHORT
#define REASON_MALFORMED_LAST  REASON_DROP_NONLINEAR

enum weir_tally {
#define X(symbol, name, text) TALLY_##symbol,
	WEIR_TALLIES(X)
#undef X
		WEIR_TALLY_COUNT,
};

/* An element of the per-CPU counters array: interface number * WEIR_REASON_COUNT + reason; after them the
 * tallies of all interfaces, which count no bytes. */
struct counter {
	__u64 packets;
	__u64 bytes; /* IP length; frame length where there is no IP header */
};
#define WEIR_TALLY_ROWS   (WEIR_IFACES * WEIR_REASON_COUNT)
#define WEIR_COUNTER_ROWS (WEIR_TALLY_ROWS + WEIR_TALLY_COUNT)
