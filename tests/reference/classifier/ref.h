// SPDX-License-Identifier: GPL-2.0-only
// The reference classifier: a plain linear reading of a policy, with which the datapath is
// compared.
#ifndef REF_H
#define REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Readings: details of the language, and how they are read here.
 *
 *  Policy
 *   1. Without a `default` the policy passes; without `malformed` it drops malformed frames.
 *   2. `malformed pass` is final: a malformed packet passes at once and meets no rule.
 *   3. `fragments drop|pass` and the field `fragment` mean later fragments only (offset > 0).
 *   4. A define is expanded as text: its exceptions act in the whole list that uses it, `not $x`
 *      makes each of its items an exception; a define with a leading `not` must be the only item.
 *   5. `@x` as an item counts, for an address it contains, with the length of the prefix that
 *      decided inside it, and as nothing for an address it does not contain.
 *   6. `any` is a prefix of length 0 in both families, so it can have exceptions.
 *   7. Outside of addresses an exception always wins: 1-100, not 20-30, 25 does not hold 25.
 *   8. A list without any positive prefix (empty sets) never matches, negated or not.
 *   9. An untagged or priority-tagged packet lacks the field `vlan`, so `vlan not 7` needs a tag.
 *  10. `proto` compares the number, whatever the family; ICMP types exist only for protocol 1 in
 *      IPv4 and protocol 58 in IPv6; `established` and `not established` only for TCP and UDP
 *      with readable ports.
 *  11. `type a, b` is a union, each name in the families that have it; `not` inverts it inside the
 *      families that have at least one of the names.
 *  12. A rule with `type not ...` is a rule with `type`, so it may match neighbour discovery.
 *  13. `ethertype` is what follows the tags, also when it is an 802.3 length; the exception for
 *      neighbour discovery holds for `ethertype` rules and for `always` rules too.
 *  14. Essentials matter only where the default is drop, else the packet passes by `default`.
 *      `essentials filter` still passes neighbour discovery: the default never matches it.
 *  15. DHCP answers: IPv4 UDP 67 to 68; IPv6 UDP 547 to 546 from fe80::/10. MLD: 130-132 and 143.
 *  16. A file without `wide` must have no prefix shorter than /8 or /16; `min` is checked once.
 *  17. `over`, `under` and `probability` look at the packet's flag only: 100% is no exception.
 *  28. A policy with `interface` applies to those interfaces; on others only `malformed` applies,
 *  and all other frames pass by default, including neighbour discovery and frames that are not IP.
 *
 *  Packet
 *  18. Tags are 0x8100 and 0x88a8; 0x9100 is some other ethertype. A fifth tag is malformed.
 *  19. Frames that are not IP are malformed only if the Ethernet header or a tag is cut short.
 *  20. The packet ends where the IP length says; bytes after it are padding. IPv4 total length 0 is
 *      malformed; IPv6 payload length 0 is an empty payload (no jumbograms). The field `length`
 *      is 40 + payload length in IPv6.
 *  21. Up to eight extension headers (hop-by-hop, routing, destination options, fragment); a ninth
 *      is malformed, and so are a hop-by-hop header that is not the first (RFC 8200, 4.1) and a
 *      second fragment header. Any other header ends the walk, and its number is the protocol: AH,
 *      ESP, 59, mobility ...
 *  22. An atomic fragment (offset 0, no more) is not a fragment: it has ports, `fragment` does not
 *      match; yet it is no neighbour discovery (RFC 6980). The walk ends at a later fragment.
 *  23. A later fragment's protocol is the number in its IP or fragment header; the walk ends there.
 *  24. Whole headers: TCP as its data offset says, UDP and ICMP and ICMPv6 8, SCTP 12 bytes; other
 *      protocols are not examined. The same for whole packets and first fragments.
 *  25. UDP length must be 8 or more (0 is malformed), and within the packet if it is no fragment.
 *  26. A fragment without payload, one that is not the last and no multiple of 8 bytes, and one
 *      that reaches beyond 65,535 are malformed. Checksums, reserved bits and TCP options are not
 *      judged.
 *  27. Neighbour discovery is types 133-136 with hop limit 255 and no fragment header; other
 *      extension headers before it and its code do not matter, but for a routing header with
 *      segments left: a packet with one is in transit, so it is neither neighbour discovery nor
 *      essential.
 *  28. The next header that a later fragment of IPv6 names is the sender's choice, since the
 *  receiver uses the one of the first fragment (RFC 8200, 4.5). So `fragments ... proto` matches it
 *      whatever it names; the field `proto` of rules compares the number in it.
 */

/* How a packet can be malformed; the word is what `malformed:WORD` shows. */
#define REF_MALFORMED_WORDS(X)                                                                     \
	X(ETH_SHORT, "eth-short", "shorter than an Ethernet header")                               \
	X(VLAN_SHORT, "vlan-short", "a VLAN tag is cut short")                                     \
	X(VLAN_DEEP, "vlan-deep", "more than four VLAN tags")                                      \
	X(IP4_SHORT, "ip4-short", "less than 20 bytes of IPv4")                                    \
	X(IP4_VERSION, "ip4-version", "IPv4 by ethertype, not by version")                         \
	X(IP4_IHL, "ip4-ihl", "IPv4 header length below 5 words")                                  \
	X(IP4_LENGTH, "ip4-length", "total length below the header or beyond the frame")           \
	X(IP6_SHORT, "ip6-short", "less than 40 bytes of IPv6")                                    \
	X(IP6_VERSION, "ip6-version", "IPv6 by ethertype, not by version")                         \
	X(IP6_LENGTH, "ip6-length", "payload length beyond the frame")                             \
	X(EXT_SHORT, "ext-short", "an extension header is cut short")                              \
	X(EXT_ORDER, "ext-order", "hop-by-hop not first, or a second fragment header")             \
	X(FRAGMENT, "fragment", "a fragment that is empty, uneven or too far")                     \
	X(EXT_DEEP, "ext-deep", "more than eight extension headers")                               \
	X(FIRST_FRAGMENT, "first-fragment", "a first fragment without the whole transport header") \
	X(TCP_SHORT, "tcp-short", "less than 20 bytes of TCP")                                     \
	X(TCP_OFFSET, "tcp-offset", "data offset below 5 words or beyond the packet")              \
	X(UDP_SHORT, "udp-short", "less than 8 bytes of UDP")                                      \
	X(UDP_LENGTH, "udp-length", "UDP length below 8 or beyond the packet")                     \
	X(ICMP_SHORT, "icmp-short", "less than 8 bytes of ICMP")                                   \
	X(ICMP6_SHORT, "icmp6-short", "less than 8 bytes of ICMPv6")                               \
	X(SCTP_SHORT, "sctp-short", "less than 12 bytes of SCTP")

enum ref_verdict { REF_PASS, REF_DROP, REF_REJECT, REF_REDIRECT };

enum ref_via { REF_BY_RULE, REF_BY_MALFORMED, REF_BY_FRAGMENTS, REF_BY_ESSENTIALS, REF_BY_DEFAULT };

/* One received frame; iface NULL means the policy's first interface. */
struct ref_packet {
	const uint8_t *bytes;
	size_t len;
	const char *iface;
	bool over;        /* every rate is exceeded and every chance taken */
	bool established; /* connection tracking knows it, if it is TCP or UDP */
	bool unroutable;  /* the route to its source leads elsewhere */
};

/* An `add` that ran: rule number, set, and the address with the set's mask applied. */
struct ref_add {
	unsigned int rule;
	const char *set;
	char prefix[56];
};

/* The answer; pointers are the policy's and hold until the next ref_match() on it. */
struct ref_result {
	enum ref_verdict verdict;
	enum ref_via via;
	const char *redirect;        /* the interface, for REF_REDIRECT */
	unsigned int rule;           /* number of the rule in the file, from 1; 0 = none */
	const char *rule_name;       /* NULL without a name */
	const char *word;            /* of REF_BY_MALFORMED and REF_BY_ESSENTIALS */
	const unsigned int *counted; /* numbers of the `count` rules it passed, in order */
	size_t counted_len;
	const struct ref_add *added;
	size_t added_len;
};

struct ref_policy;

/* Reads the policy at path. 0, or -1 with "unsupported: FILE:LINE: ..." or an I/O error in msg. */
int ref_policy_read(const char *path, struct ref_policy **ret_policy, char *msg, size_t msg_size);

/* The same for text in memory; `file` lists are looked for under dir. */
int ref_policy_parse(const char *text, size_t len, const char *dir, struct ref_policy **ret_policy,
		     char *msg, size_t msg_size);
void ref_policy_free(struct ref_policy *policy);

/* The name of the first interface, "" without one. */
const char *ref_policy_iface(const struct ref_policy *policy);

/* Puts an address into a dynamic set. 0, or -1 if there is no such set or address. */
int ref_dynamic_add(struct ref_policy *policy, const char *set, const char *address);

void ref_match(struct ref_policy *policy, const struct ref_packet *packet,
	       struct ref_result *ret_result);

/* Writes `VERDICT VIA` without a newline, with trace also ` count=1,4 add=@slow:192.0.2.1/32`. */
void ref_format(const struct ref_result *result, bool trace, char *buf, size_t size);

#endif
