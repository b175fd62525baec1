/* SPDX-License-Identifier: GPL-2.0-only */
/* Bounds of a policy, each with its reason.
 *
 * The message that refuses a policy names the bound that it exceeds. */
#pragma once

#define POLICY_RULES      4096 /* 64 words of 64 bits and one summary word */
#define POLICY_DYNAMIC    8    /* dynamic sets: each is a separate map with a constant index */
#define POLICY_INTERFACES 63   /* WEIR_IFACES without number 0: a bit each in a 64-bit word */
#define POLICY_SERVICES   1024 /* 16 words in the matrix of services */
#define POLICY_BACKENDS   1024 /* per service; pins number all backends in 14 bits */
#define POLICY_DEFINES    65536
#define POLICY_SETS       65536
#define POLICY_EXPECTS    4096 /* each runs through the kernel, some 30 us a packet */

/* Items of one list after $ is expanded: more addresses belong in a set, ports have spans. A list
 * that 4096 rules repeat must be cheap to check. */
#define POLICY_LIST_ITEMS  1024
#define POLICY_SHORT_ITEMS 256  /* items of any list except addresses */
#define POLICY_SET_ITEMS   4096 /* elements of a set of numbers: read again for each rule with it */

/* MAC addresses and ranges of all rules; equal lists count once. Each has two edges
 * (common/edges.h). */
#define POLICY_MACS  32768
#define POLICY_PAIRS 32768 /* all sets together; addresses are found in 16 steps */

/* Prefixes of all sets and lists together; each takes 32 bytes while it is resolved. */
#define POLICY_PREFIXES (4u << 20)

#define POLICY_NAMES 16384 /* host names of a policy, its list files included */
/* countries and autonomous systems: each record is compared with all */
#define POLICY_GEOS       4096
#define POLICY_FILE_NAMES 10000 /* host names of one list file */
#define POLICY_DEPTH      8     /* includes within includes */
/* policy and list files of a policy; a location has 16 bits for them */
#define POLICY_FILES      1024
#define POLICY_TEXT_BYTES (64u << 20)  /* bytes of one policy file: offsets have 32 bits */
#define POLICY_FILE_BYTES (256u << 20) /* of one list file */
#define POLICY_NAME       31           /* letters of a NAME: 32 with the final NUL */
/* How often a feed is fetched. */
#define FEED_EVERY_MS     3600000ull
#define FEED_EVERY_MIN_MS 1000ull
#define FEED_EVERY_MAX_MS (30ull * 24 * 3600 * 1000)
#define POLICY_STRING     255
#define POLICY_IFNAME     15 /* IFNAMSIZ - 1 */

/* Bounds of a rate: one packet an hour to 10 Tbit/s. */
#define POLICY_RATE_PACKETS 1000000000ull
#define POLICY_RATE_BITS    10000000000000ull
/* Connections of a source: the count has 20 bits. */
#define POLICY_CONNECTIONS 1000000
/* `max` of a table per source, or of a dynamic set: 1 GB of cache lines. */
#define POLICY_RATE_MAX     16777216
#define POLICY_RATE_DEFAULT 65536
/* Ten years: jiffies do not overflow. */
#define POLICY_TIME_MS (3660ull * 24 * 3600 * 1000)

#define POLICY_EXPECT_PAIRS 64 /* packets of one expect line */
/* Ports of a PACKET that names none. */
#define POLICY_EXPECT_SPORT 40000
#define POLICY_EXPECT_DPORT 40000
#define POLICY_EXPECT_MAC   0x020000000001ull

/* Services. */
#define POLICY_RING_MIN     4093
#define POLICY_RING_DEFAULT 16381
#define POLICY_RING_MAX     131071
#define POLICY_WEIGHT_MAX   65535
#define POLICY_PINS_MIN     1024
#define POLICY_PINS_DEFAULT \
	(1u << 20) /* at most, and POLICY_PINS_SHARED for all services without a number */
#define POLICY_PINS_SHARED (8u << 20) /* 64 MB */
#define POLICY_PINS_MAX    (64u << 20)
/* Connections of a service of mode nat. A block of 65,536 places takes 53,000, and blocks
 * have numbers of 8 bits. */
#define POLICY_NAT_MIN 1024
#define POLICY_NAT_MAX (255u * 53000)
#define POLICY_NAT_DEFAULT \
	262144 /* at most, and POLICY_NAT_SHARED for all services without a number */
#define POLICY_NAT_SHARED      (4u << 20) /* 80 blocks: 84 MB, or 168 MB with IPv6 */
#define POLICY_NAT_SOURCE_BITS 6          /* a prefix of sources has 64 addresses, a block each */
#define POLICY_NAT_VIPS        256        /* each port of each is an end */

/* Checks. A shorter `every` than this would be an attack on the backend. */
#define POLICY_EVERY_MIN_MS 100
#define POLICY_EVERY_MAX_MS (3600u * 1000)
#define POLICY_FALL_OF      64 /* checks that a backend's health remembers: a bit each */
#define POLICY_STATUSES     16 /* items of `expect` */
#define POLICY_ARGUMENTS    16 /* of a program */
