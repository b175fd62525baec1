/* SPDX-License-Identifier: GPL-2.0-only */
/* Every way a packet can leave Weir, once: the enum, the names users see, and the documentation.
 *
 * Lines are X(SYMBOL, "name", verdict, group, "what it means"); those that drop come last. The
 * verdict is one of enum weir_verdict, the group one of WEIR_GROUPS. A new line changes
 * WEIR_LAYOUT, as the pinned counters move. */
#pragma once

#include <linux/types.h>

#include "common/limits.h"
#include "common/words.h"

/* clang-format off */
#define WEIR_REASONS(X) \
	X(PASS_DEFAULT, "default", PASS, DEFAULT, "no rule matched and the default is pass") \
	X(PASS_NOT_IP, "not-ip", PASS, NOT_IP, "ARP, LLDP and other frames that are not IP") \
	X(PASS_ND, "neighbour", PASS, NEIGHBOUR, "IPv6 neighbour discovery, which entries never block") \
	X(PASS_ALLOW, "allow", PASS, OVERLAY, "an overlay allow entry") \
	X(PASS_BYPASS, "bypass", PASS, ROOT, "weir bypass is on") \
	X(PASS_NO_POLICY, "no-policy", PASS, ROOT, "no policy program is loaded: an alarm") \
	X(PASS_MALFORMED, "malformed-pass", PASS, MALFORMED, "malformed; the policy has 'malformed pass'") \
	X(PASS_RULE, "rule-pass", PASS, RULE, "a pass rule of the policy") \
	X(PASS_FRAGMENTS, "fragments-pass", PASS, FRAGMENTS, "a later fragment; the policy has 'fragments pass'") \
	X(PASS_ARP, "essential-arp", PASS, ESSENTIALS, "ARP under default drop") \
	X(PASS_ICMP_ERROR, "essential-icmp", PASS, ESSENTIALS, "an ICMP error under default drop") \
	X(PASS_MLD, "essential-mld", PASS, ESSENTIALS, "multicast listener discovery under default drop") \
	X(PASS_DHCP, "essential-dhcp", PASS, ESSENTIALS, "a DHCP answer under default drop") \
	X(PASS_REPLY, "reply", TX, RULE, "a reject rule: the answer was sent back") \
	X(PASS_REDIRECT, "redirect", REDIRECT, RULE, "a redirect rule of the policy") \
	X(PASS_SERVICE, "service", SENT, SERVICE, "sent to a backend of a service") \
	X(PASS_HERE, "service-here", PASS, SERVICE, "for a service, delivered to the backend on this host") \
	X(PASS_ECHO, "service-echo", TX, SERVICE, "an echo request to a service's address, answered") \
	X(PASS_TOO_BIG, "service-too-big", TX, SERVICE, "too big for the path to its backend: answered with ICMP") \
	X(PASS_PATH_MTU, "service-path-mtu", TX, SERVICE, "a router's 'too big' about a tunnel packet, forwarded to the client") \
	X(PASS_TTL, "service-ttl", TX, SERVICE, "TTL or hop limit exceeded on the path to a backend: answered with ICMP") \
	X(PASS_ANSWER, "service-answer", PASS, SERVICE, "an answer of a backend to a check via path, taken by the agent") \
	X(PASS_ANSWER_NAT, "service-answer-nat", SENT, SERVICE, "an answer of a backend of nat or fullnat, sent to its client") \
	X(PASS_NAT_RESET, "service-nat-reset", TX, SERVICE, "a packet to nat or fullnat of no known connection, answered with a TCP reset") \
	X(DROP_BLOCK_FROM, "block-from", DROP, OVERLAY, "an overlay block entry for the source") \
	X(DROP_BLOCK_TO, "block-to", DROP, OVERLAY, "an overlay block entry for the destination") \
	X(DROP_RULE, "rule-drop", DROP, RULE, "a drop rule of the policy") \
	X(DROP_REJECT, "rule-reject", DROP, RULE, "a reject rule without an answer: too many answers, or the packet is an ICMP error") \
	X(DROP_DEFAULT, "default-drop", DROP, DEFAULT, "no rule matched and the default is drop") \
	X(DROP_FRAGMENTS, "fragments-drop", DROP, FRAGMENTS, "a later fragment; the policy has 'fragments drop'") \
	X(DROP_REDIRECT, "redirect-failed", DROP, RULE, "a redirect rule whose interface does not exist") \
	X(DROP_MARTIAN, "service-martian", DROP, SERVICE, "for a service, from an impossible source: unspecified, loopback, multicast, broadcast, or a service address") \
	X(DROP_ECHO, "service-echo-silent", DROP, SERVICE, "an echo request to a service's address, not answered: too many requests, a wrong checksum, or from an address of this host or a broadcast address") \
	X(DROP_NO_BACKEND, "service-no-backend", DROP, SERVICE, "a service that has never had a backend") \
	X(DROP_NO_NEXT_HOP, "service-no-next-hop", DROP, SERVICE, "no next hop is known for the backend: weir service --refresh") \
	X(DROP_EGRESS, "service-egress", DROP, SERVICE, "the device to the backend cannot transmit redirected frames") \
	X(DROP_TTL, "service-ttl-silent", DROP, SERVICE, "TTL or hop limit exceeded on the path to a backend; no answer was allowed") \
	X(DROP_TOO_BIG, "service-too-big-silent", DROP, SERVICE, "too big for the path to its backend; no answer was allowed") \
	X(DROP_SERVICE_FRAGMENT, "service-fragment", DROP, SERVICE, "a later fragment to a service without hash source; of nat and fullnat: that came before its first one") \
	X(DROP_NAT_FULL, "nat-full", DROP, SERVICE, "a new connection for which nat or fullnat has no place") \
	X(DROP_NAT_BUSY, "nat-busy", DROP, SERVICE, "a new connection whose place other packets took at the same moment") \
	X(DROP_NAT_CLASH, "nat-clash", DROP, SERVICE, "a new connection of a client and port that each backend already serves at another address") \
	X(DROP_NAT_UNKNOWN, "nat-unknown", DROP, SERVICE, "a packet to nat or fullnat of no known connection, which opens none") \
	X(DROP_NAT_NO_PEER, "nat-no-peer", DROP, SERVICE, "an answer of a backend without a known way to the client") \
	X(DROP_FORWARD, "service-forward", DROP, SERVICE, "the packet could not be rewritten for its backend") \
	X(DROP_INTERNAL, "internal", DROP, INTERNAL, "a lookup that cannot fail has failed: please report it") \
	X(DROP_PROGRAM, "program-missing", DROP, INTERNAL, "the next program of the policy is missing in the kernel: please report it") \
	X(DROP_VLAN_SHORT, "vlan-truncated", DROP, MALFORMED, "the frame ends inside a VLAN tag") \
	X(DROP_VLAN_DEEP, "vlan-too-deep", DROP, MALFORMED, "more than four VLAN tags") \
	X(DROP_IP4_SHORT, "ip4-truncated", DROP, MALFORMED, "the frame ends inside the IPv4 header") \
	X(DROP_IP4_HEADER, "ip4-header", DROP, MALFORMED, "IPv4 version is not 4 or the header is shorter than 20 bytes") \
	X(DROP_IP4_LENGTH, "ip4-length", DROP, MALFORMED, "IPv4 total length is less than the header or more than the frame") \
	X(DROP_IP6_SHORT, "ip6-truncated", DROP, MALFORMED, "the frame ends inside the IPv6 header") \
	X(DROP_IP6_HEADER, "ip6-header", DROP, MALFORMED, "IPv6 version is not 6") \
	X(DROP_IP6_LENGTH, "ip6-length", DROP, MALFORMED, "IPv6 payload length is more than the frame, or a jumbogram") \
	X(DROP_EXT_SHORT, "ip6-ext-truncated", DROP, MALFORMED, "the packet ends inside an extension header") \
	X(DROP_EXT_MANY, "ip6-ext-too-many", DROP, MALFORMED, "more than eight extension headers") \
	X(DROP_EXT_ORDER, "ip6-ext-order", DROP, MALFORMED, "a hop-by-hop header that is not the first, or a second fragment header") \
	X(DROP_FRAG_SHORT, "fragment-header", DROP, MALFORMED, "a first fragment without the whole transport header (RFC 7112)") \
	X(DROP_FRAG_LENGTH, "fragment-length", DROP, MALFORMED, "a fragment that is not a multiple of 8 bytes, is empty, or extends past 65,535") \
	X(DROP_TCP_SHORT, "tcp-truncated", DROP, MALFORMED, "the packet ends inside the TCP header") \
	X(DROP_TCP_OFFSET, "tcp-offset", DROP, MALFORMED, "TCP data offset is below 5 or extends past the packet") \
	X(DROP_UDP_SHORT, "udp-truncated", DROP, MALFORMED, "the packet ends inside the UDP header") \
	X(DROP_UDP_LENGTH, "udp-length", DROP, MALFORMED, "UDP length is below 8 or extends past the packet") \
	X(DROP_ICMP_SHORT, "icmp-truncated", DROP, MALFORMED, "the packet ends inside the ICMP header") \
	X(DROP_ICMP6_SHORT, "icmp6-truncated", DROP, MALFORMED, "the packet ends inside the ICMPv6 header") \
	X(DROP_SCTP_SHORT, "sctp-truncated", DROP, MALFORMED, "the packet ends inside the SCTP header") \
	X(DROP_NONLINEAR, "header-split", DROP, MALFORMED, "headers extend past the packet's first buffer")

/* Groups of reasons: X(SYMBOL, "word that explain prints", via in expect lines, may a packet that
 * passed be for a service). */
#define WEIR_GROUPS(X) \
	X(DEFAULT, "default", VIA_DEFAULT, 1) \
	X(NOT_IP, "default", VIA_DEFAULT, 0) \
	X(ESSENTIALS, "essentials", VIA_ESSENTIALS, 1) \
	X(NEIGHBOUR, "essentials", VIA_ESSENTIALS, 0) \
	X(FRAGMENTS, "fragments", VIA_FRAGMENTS, 1) \
	X(MALFORMED, "malformed", VIA_MALFORMED, 0) \
	X(OVERLAY, "overlay", VIA_ANY, 1) \
	X(RULE, "rule", VIA_RULE, 1) \
	X(SERVICE, "service", VIA_ANY, 0) \
	X(ROOT, "root", VIA_ANY, 0) /* the root program: no policy was asked */ \
	X(INTERNAL, "internal", VIA_ANY, 0)

/* Events besides the verdicts, counted once each: X(SYMBOL, "name", "what it means"). */
#define WEIR_TALLIES(X) \
	X(FOREIGN, "foreign-frame", "a packet for a service or a reject rule, in a frame to another station: neither balanced nor answered") \
	X(LIMIT_PUSHED, "limit-pushed-out", "the table of a limit per source or destination was full: the address idle for longest was removed") \
	X(REPLY_LIMIT, "answers-limited", "an answer to an echo request or of a reject rule that was not sent: 5,000 a second of its kind went to other receivers") \
	X(GENERAL, "general-way", "the short program left the packet to the general program") \
	X(CAPTURED_LOST, "captured-lost", "a packet of a capture for which its ring had no room") \
	X(SAMPLES_LOST, "samples-lost", "a sampled packet for which the ring of samples had no room") \
	X(LOG_LOST, "log-lost", "a record of log that was overwritten before weir watch read it")
/* clang-format on */

enum weir_reason {
#define X(symbol, name, verdict, group, text) REASON_##symbol,
	WEIR_REASONS(X)
#undef X
		WEIR_REASON_COUNT,
};

enum weir_group {
#define X(symbol, word, via, serves) GROUP_##symbol,
	WEIR_GROUPS(X)
#undef X
		WEIR_GROUP_COUNT,
};

/* The verdicts of reasons. SENT is XDP_TX or XDP_REDIRECT, by the device to the backend. */
enum weir_verdict {
	VERDICT_PASS,
	VERDICT_DROP,
	VERDICT_TX,
	VERDICT_REDIRECT,
	VERDICT_SENT,
};

/* Reasons from here on drop the packet: those before are counted. */
#define REASON_IS_BEFORE_DROPS(symbol, name, verdict, group, text) \
	+(VERDICT_##verdict != VERDICT_DROP)
enum { REASON_PASS_COUNT = 0 WEIR_REASONS(REASON_IS_BEFORE_DROPS) };
#define REASON_DROP_FIRST ((int)REASON_PASS_COUNT)

/* May a packet that passed because of the group be for a service? */
enum {
#define X(symbol, word, via, serves) GROUP_SERVES_##symbol = serves,
	WEIR_GROUPS(X)
#undef X
};
enum weir_tally {
#define X(symbol, name, text) TALLY_##symbol,
	WEIR_TALLIES(X)
#undef X
		WEIR_TALLY_COUNT,
};

/* An element of the per-CPU counters array: interface number * WEIR_REASON_COUNT + reason; after
 * them the tallies of all interfaces, which count no bytes. */
struct counter {
	__u64 packets;
	__u64 bytes; /* IP length; frame length where there is no IP header */
};
#define WEIR_TALLY_FIRST (WEIR_IFACES * WEIR_REASON_COUNT)
#define WEIR_COUNTERS    (WEIR_TALLY_FIRST + WEIR_TALLY_COUNT)
