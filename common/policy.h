/* SPDX-License-Identifier: GPL-2.0-only */
/* The compiled policy: ctl/table writes it, the programs read it. Its tables are in
 * common/tables.h, the fields of a packet by which they are looked up in common/fields.h; here are
 * the rules and the read-only data. */
#pragma once

#include <linux/types.h>

#include "common/fields.h"
#include "common/words.h"

#define POLICY_WORDS_MAX 64 /* words of 64 rules; the summary word has a bit for each */

/* Number of a row (common/matrix.h). 0 is no row: the packet is dropped as `internal`. */
typedef __u32 policy_row;

/* All rules that can match at all: for what a packet does not have and no rule may miss (addresses
 * of a frame that is not IP). */
#define POLICY_ROW_ALL 1

/* Dynamic sets: hash maps of their own, looked up by a constant number. */
#define POLICY_SETS_MAX 8

struct policy_set_key {
	__u32 family;  /* 4 or 6 */
	__u32 addr[4]; /* network order, host bits of the set's mask cleared; IPv4 in [0] */
};

struct policy_set_value {
	__u64 until;   /* jiffies64, ~0: permanent */
	__u64 packets; /* that a rule has found it for, if the set counts */
};

/* Which interface of the policy an interface of the instance is: number in the policy + 1, by
 * number in the instance; 0: the policy does not name it. Written when an interface is attached. */
struct policy_ifclass {
	__u8 class[64];
};

/* Request to and result of a test program: a private copy of a policy that runs test packets for
 * expect and explain and changes nothing. */
struct policy_test {
	/* asked */
	__u32 iface;      /* number of the interface in the policy + 1 */
	__u8 over;        /* every rate is exceeded, every chance taken */
	__u8 established; /* the packet belongs to a known connection */
	__u8 live;        /* use the live rates, sets, connections and overlay instead */
	__u8 calm;        /* with live: no rate is exceeded and no chance taken */
	__u8 unroutable;  /* no route to the source leads by the interface */
	__u8 pad0[3];
	/* the device whose routes decide what is in transit; 0: the packet is to this host */
	__u32 ifindex;
	/* answered */
	__s32 rule;    /* that decided, or -1 */
	__u32 reason;  /* enum weir_reason */
	__u32 counted; /* rules that counted and did not decide */
	__u32 first_counted[5];
	__s32 service;   /* that the packet belongs to, or -1 */
	__u32 backend;   /* number of the one it goes to; 0: none */
	__u32 slot;      /* its number among the service's */
	__u32 pinned;    /* a living pin was found */
	__u32 passed;    /* the reason that let a service's packet pass */
	__u32 general;   /* the general program has seen the packet */
	__u64 slot_word; /* as common/service.h has it */
};
_Static_assert(sizeof(struct policy_test) == 80, "layout");

/* Conditions of a rule that are tested if its bit is set, in this order; the action follows. */
#define RULE_LENGTH      (1u << 0)
#define RULE_TTL         (1u << 1)
#define RULE_DSCP        (1u << 2)
#define RULE_PROBABILITY (1u << 3)
#define RULE_ESTABLISHED (1u << 4)
#define RULE_LIMIT       (1u << 5)
#define RULE_UNDER       (1u << 6) /* the limit holds for packets that do not exceed it */
#define RULE_BITS        (1u << 7) /* the limit counts bits of the frame */
#define RULE_FROM_SET    (1u << 8) /* from @dynamic */
#define RULE_TO_SET      (1u << 9)
#define RULE_LOG         (1u << 10)
#define RULE_ADD         (1u << 11)
#define RULE_ADD_DEST    (1u << 12)
#define RULE_FRAME       (1u << 13) /* with RULE_LENGTH: the frame's, not the IP packet's */
#define RULE_UNTRACKED   (1u << 14) /* not established */
#define RULE_CONNECTIONS (1u << 15) /* connections of the source, with RULE_UNDER */
#define RULE_MAC         (1u << 16)
#define RULE_FROM_PAIRS  (1u << 17)
#define RULE_TO_PAIRS    (1u << 18)
#define RULE_PAIRS       (RULE_FROM_PAIRS | RULE_TO_PAIRS)
#define RULE_UNROUTABLE  (1u << 19)
/* Connection tracking is asked. */
#define RULE_TRACKING (RULE_ESTABLISHED | RULE_UNTRACKED)
/* Flags that must be tested before the action; a policy without any takes the first bit
 * immediately. */
#define RULE_CONDITIONS                                                                            \
	(RULE_LENGTH | RULE_TTL | RULE_DSCP | RULE_PROBABILITY | RULE_ESTABLISHED | RULE_LIMIT |   \
	 RULE_FROM_SET | RULE_TO_SET | RULE_UNTRACKED | RULE_CONNECTIONS | RULE_MAC | RULE_PAIRS | \
	 RULE_UNROUTABLE)

/* Time of rates: jiffies64 << RATE_SHIFT. */
#define RATE_SHIFT 20

struct policy_rule {
	__u32 flags;                    /* RULE_* */
	__u32 counter;                  /* index of the rule counter; set at apply, by identity */
	__u8 action;                    /* enum policy_action */
	__u8 per;                       /* enum policy_per */
	__u8 mask4, mask6;              /* bits of the address for which a limit is kept */
	__u8 from_set, to_set, add_set; /* dynamic set numbers */
	__u8 pad0;
	__u32 redirect;    /* index in the map `devices` */
	__u32 probability; /* RULE_PROBABILITY: of 2^32 */
	__u32 length_first, length_last;
	__u8 ttl_first, ttl_last;
	__u16 log_snap;
	__u32 log;  /* index in the map `logpace` */
	__u64 dscp; /* a bit for each value */
	/* The limit, GCRA (ATM Forum TM 4.1, I.371): a packet costs (units * cost_mult) >>
	 * cost_shift of rate time, units being 1 or the frame's bits; it exceeds when the
	 * theoretical arrival time runs more than `tolerance` ahead. */
	__u64 cost_mult;
	__u64 tolerance;
	__u32 cost_shift;
	__u32 meter;        /* index in the map `meters` (PER_RULE), or of its table in `buckets` */
	__u32 meter_lines;  /* elements of that table, a power of two */
	__u32 log_interval; /* jiffies between two records, at least 1 */
	__u64 add_ticks;    /* jiffies an added address stays; 0: permanent */
	__u32 connections;  /* RULE_CONNECTIONS: so many, by `per` and masks */
	__u32 connection_rule;            /* number among the rules of common/connections.h */
	__u32 mac_first, mac_n;           /* RULE_MAC: edges, see common/edges.h */
	__u32 pairs_first[2], pairs_n[2]; /* the same of RULE_FROM_PAIRS and RULE_TO_PAIRS */
	__u64 pad1;
};
_Static_assert(sizeof(struct policy_rule) == 128, "layout");

/* A bucket of five addresses, each with a part of its hash (0: free) and its theoretical arrival
 * time. The time is complete: with fewer bits, an address that was idle for long enough would seem
 * to be ahead. */
#define POLICY_BUCKETS 5

struct policy_bucket_line {
	__u64 time[POLICY_BUCKETS];
	__u32 tag[POLICY_BUCKETS];
	__u32 pad;
};
_Static_assert(sizeof(struct policy_bucket_line) == 64, "layout");

/* Read-only data of a policy program. All zero is the empty policy. */
struct policy_config {
	__u32 rules;    /* rules 0 … always - 1 come before the overlay */
	__u32 services; /*  */
	__u32 modes;    /* bit: enum service_mode; some service has it */
	__u32 always;
	__u32 flags;     /* RULE_* that some rule has */
	__u8 conditions; /* some rule has conditions, only counts, logs or adds */
	__u8 essentials_filter;
	__u8 rejects, redirects; /* some rule does so */
	__u8 fragments;          /* a treatment is set */
	__u8 treatment6;         /* treatment of later fragments of IPv6, whatever their protocol */
	__u8 answers;            /* some service has checks through the path */
	__u8 named;              /* it names interfaces: nothing in it applies to others */
	/* bit: number of the interface in the policy + 1; bit 0: it names none */
	__u64 default_drop;
	__u8 set_mask4[POLICY_SETS_MAX], set_mask6[POLICY_SETS_MAX]; /* of dynamic sets */
	__u8 set_counts[POLICY_SETS_MAX]; /* 1: it counts the packets of each entry */
	__u8 treatment[256]; /* later fragments of IPv4, by protocol: enum policy_treatment */
};
