/* SPDX-License-Identifier: GPL-2.0-only */
/* Settings and counters of the decapsulating program on a backend.
 *
 * Its maps are not pinned: the interface holds the program, and the program holds its maps. */
#pragma once

#include <linux/types.h>

/* Raise it when anything here changes: a tool of another version then takes the program off, but
 * does not read its maps. */
#define DECAP_VERSION 2

#define DECAP_PROGRAM "weir_decap" /* as the kernel shows it */

#define DECAP_PORT      6080 /* of GUE (IANA) */
#define DECAP_ADDRESSES 4096 /* own addresses that tunnels may end at */
#define DECAP_PREFIXES  1024 /* that tunnels may come from; that are local as a whole */

#define DECAP_FORWARD   (1u << 0) /* inner packets may be for others than this host */
#define DECAP_HERE_NETS (1u << 1) /* there are prefixes that are local as a whole */

struct decap_settings {
	__u32 version; /* DECAP_VERSION */
	__u16 port;    /* port of GUE, host order; 0: nothing is set yet */
	__u16 flags;   /* DECAP_FORWARD … */
};
_Static_assert(sizeof(struct decap_settings) == 8, "another version finds its own by this size");

/* Key of the map of own addresses. */
struct decap_address {
	__u32 addr[4]; /* network order; IPv4 in [0], the rest zero */
	__u32 family;  /* 4 or 6 */
};
_Static_assert(sizeof(struct decap_address) == 20, "layout");

enum decap_kind {
	DECAP_FROM, /* whose tunnels are taken */
	DECAP_HERE, /* local as a whole, beside the addresses */
};

/* Key of the trie of prefixes: kind and family are always matched whole. */
struct decap_prefix {
	__u32 length; /* DECAP_PREFIX_HEAD + bits of the address */
	__u8 kind;    /* enum decap_kind */
	__u8 family;
	__u16 pad;
	__u32 addr[4];
};
_Static_assert(sizeof(struct decap_prefix) == 24, "layout");
#define DECAP_PREFIX_HEAD 32

/* X(SYMBOL, "name", what happens, "what it means"). Packets that are not tunnels are not
 * counted. */
/* clang-format off */
#define DECAP_REASONS(X) \
	X(STRIP_4IN4, "4in4", STRIP, "IPv4 in IPv4") \
	X(STRIP_6IN4, "6in4", STRIP, "IPv6 in IPv4") \
	X(STRIP_4IN6, "4in6", STRIP, "IPv4 in IPv6") \
	X(STRIP_6IN6, "6in6", STRIP, "IPv6 in IPv6") \
	X(STRIP_GUE, "gue", STRIP, "GUE, whatever is in it") \
	X(PASS_NOT_HERE, "not-here", PASS, "the tunnel does not end at an address of this host") \
	X(PASS_FOREIGN, "foreign", PASS, "the tunnel comes from an address that --from does not name") \
	X(PASS_FRAGMENT, "fragment", PASS, "the outer packet is a fragment") \
	X(PASS_ROUTED, "routed", PASS, "the outer packet has a routing header with segments left") \
	X(PASS_GUE_OTHER, "gue-other", PASS, "to the port of GUE, but control, extended, another version, or nothing in it") \
	X(DROP_VERSION, "inner-version", DROP, "what is inside is not of the IP version that the outer header says") \
	X(DROP_SHORT, "inner-truncated", DROP, "the outer packet ends inside the inner IP header") \
	X(DROP_HEADER, "inner-header", DROP, "the inner IPv4 header is shorter than 20 bytes") \
	X(DROP_LENGTH, "inner-length", DROP, "the inner packet is shorter than its header, longer than the outer one holds, or a jumbogram") \
	X(DROP_ELSEWHERE, "inner-elsewhere", DROP, "the inner packet is not for an address of this host, and --forward is not set") \
	X(DROP_SPLIT, "header-split", DROP, "the inner header reaches beyond the packet's first buffer") \
	X(DROP_ECN, "ecn", DROP, "congestion experienced outside, no ECN inside (RFC 6040)") \
	X(DROP_INTERNAL, "internal", DROP, "what cannot fail has failed: report it")
/* clang-format on */

enum decap_reason {
#define X(symbol, name, effect, text) DECAP_##symbol,
	DECAP_REASONS(X)
#undef X
		DECAP_REASON_COUNT,
};

#define DECAP_DROP_FIRST DECAP_DROP_VERSION

/* A value of the per-CPU array. */
struct decap_counter {
	__u64 packets;
	__u64 bytes; /* bytes of the outer IP packet */
};
