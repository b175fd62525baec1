/* SPDX-License-Identifier: GPL-2.0-only */
/* Sizes and bounds of the datapath, each with its reason. */
#pragma once

/* Q-in-Q is two; deeper nesting than four is an evasion, not a network */
#define WEIR_VLAN_TAGS   4
#define WEIR_IP6_EXT_MAX 8  /* extension headers walked; RFC 8200 names six kinds, each once */
#define WEIR_IFACES      64 /* interfaces of one instance; number 0 stands for "not attached" */
#define WEIR_MEMBERS     16 /* members of all bonds, distinguished if there are several bonds */
#define WEIR_IFACE_BUCKETS_LOG2 \
	8 /* four times the interfaces: one multiplier in 4,000 separates 63 interfaces */
#define WEIR_IFACE_BUCKETS (1 << WEIR_IFACE_BUCKETS_LOG2) /* per table in knobs.iface_buckets */
/* entries of each table of the overlay: as many IPv6 hosts as its shards have room for */
#define WEIR_OVERLAY_MAX  (4 << 20)
#define WEIR_SNAP_MAX     256 /* bytes of a packet an event may carry */
#define WEIR_SNAP_DEFAULT 128 /* enough for two tags, IPv6 with an extension header, and TCP */
#define WEIR_EVENTS_BYTES (1 << 20) /* ring of events: 3,600 of full size */
#define WEIR_LOGS         1024      /* records of `log` that are kept; a power of two */
/* bytes of a packet that a sample has: ports and flags, also after the headers of a tunnel */
#define WEIR_SAMPLE_SNAP   128
#define WEIR_SAMPLES_BYTES (1 << 20) /* ring of samples: 6,200, three seconds of 2,000 */
/* ring of captured frames */
#define WEIR_CAPTURED_BYTES (8 << 20)
#define PROGS               2  /* programs: active and previous */
#define WEIR_NAME_MAX       32 /* instance name, with the final NUL */
#define WEIR_RULE_COUNTERS \
	16384 /* two generations of 4096 rules, and as many that are being reused */
#define WEIR_RATES     WEIR_RULE_COUNTERS /* limits per rule, and as many paces of records */
#define WEIR_REDIRECTS 64                 /* devices that redirect rules name */
/* MAC addresses of devices above interfaces: VLANs mostly share one, macvlans do not */
#define WEIR_STATIONS 4096
/* devices that routes can name, by interface */
#define WEIR_ROUTED 8192
/* answers of a kind a second to one receiver: more is a mirror for a flood in its name */
#define WEIR_REPLIES_S   50
#define WEIR_REPLY_BURST 50 /* so many at once */
#define WEIR_REPLY_BUDGETS \
	4096 /* buckets of a kind: 200,000 forged senders a second leave nothing for the others */
/* answers to echo requests and of reject in any second, to all receivers: the limit for a flood of
 * forged senders */
#define WEIR_REPLIES_ALL_S      5000
#define WEIR_REPLY_BURST_ALL    500 /* so many of these at once; the others evenly */
#define WEIR_REPLY_WORDS(kinds) ((kinds)*WEIR_REPLY_BUDGETS + (kinds))
/* addresses of this host and broadcast addresses of its subnets */
#define WEIR_OWN 4096
