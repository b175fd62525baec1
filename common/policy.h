/* SPDX-License-Identifier: GPL-2.0-only */
/* The compiled policy: ctl/table writes it, xdp/classify reads it.
 *
 * Each field of a packet is looked up once and yields the number of a row of a bit matrix. A row
 * has a bit for each rule that this value of the field can satisfy. The AND of the rows is the set
 * of rules that match; the lowest bit is the first match.
 *
 * All tables are flat arrays that are mapped, filled, unmapped and frozen: `fields` (u32), `nodes`,
 * `lines`, `rows` (u64 words), `rules`. Their offsets, and which of them are used at all, are
 * read-only data (struct policy_config), so that the verifier removes the rest. */
#pragma once

#include <linux/types.h>

#include "common/words.h"

#define POLICY_WORDS_MAX \
	64 /* of 64 rules; then the summary word has as many bits as there are words */

/* `fields` is a map of lines of 16 cells, because an array map rounds each value up to 8 bytes; in memory
 * it is one flat array of u32. */
#define POLICY_CELLS 16

struct policy_cells {
	__u32 cell[POLICY_CELLS];
};

/* Number of a row. 0 is no row: a look-up that yields it has failed, the packet is dropped as `internal`.
 * Rows with equal words are one row, whatever field they are for. */
typedef __u32 policy_row;

/* All rules that can match at all: for what a packet does not have and no rule may miss (addresses of a
 * frame that is not IP). */
#define POLICY_ROW_ALL 1

/* A row is `words` words, rule r being bit r % 64 of word r / 64, followed, if there is more than one,
 * by a summary word: bit w says that word w is not zero. */
#define POLICY_ROW_WORDS(words) ((words) + ((words) > 1))

enum policy_field {
	FIELD_SOURCE, /* address: tries and lines, see struct policy_side */
	FIELD_DESTINATION,
	FIELD_SPORT, /* fields[base + port], [base + 65536]: the packet has no port */
	FIELD_DPORT,
	FIELD_PROTO, /* fields[base + fragment * 256 + proto]; fragment: 0 none, 1 first, 2 later: only
			     these satisfy the field `fragment` */
	FIELD_L4,    /* fields[base + POLICY_L4_*]: TCP flags or ICMP type and code */
	FIELD_VLAN,  /* fields[base + VID of the outermost tag]; 0: untagged or VID 0 */
	FIELD_IFACE, /* fields[base + number of the interface in the policy + 1]; 0: it names none */
	FIELD_ETHERTYPE, /* fields[base + ethertype after all tags] */
	POLICY_FIELDS,
};

#define POLICY_PORTS      65537
#define POLICY_NO_PORT    65536
#define POLICY_PROTOS     (3 * 256)
#define POLICY_VLANS      4096
#define POLICY_IFACES     65
#define POLICY_ETHERTYPES 65536

/* FIELD_L4 is used when some rule has flags or type; where it is not used, neighbour discovery matches no
 * rule. FIELD_ETHERTYPE is used when some rule has it; where not, a frame that is not IP matches no rule.
 * Rules without ethertype have no bit in the rows of ethertypes that are not IP; rules with ethertype
 * have their bit in every row of every other field, but for those of neighbour discovery.
 *
 * Index into FIELD_L4: TCP flags as in the header; nothing (another protocol, or a later
 * fragment); ICMP and ICMPv6 by type and code; and neighbour discovery (types 133-136, hop limit 255,
 * unfragmented), which satisfies only rules that have `type`. */
#define POLICY_L4_FLAGS     0
#define POLICY_L4_NONE      256
#define POLICY_L4_ICMP      257
#define POLICY_L4_ICMP6     (POLICY_L4_ICMP + 65536)
#define POLICY_L4_NEIGHBOUR (POLICY_L4_ICMP6 + 65536) /* + (type - 133) * 256 + code */
#define POLICY_L4_COUNT     (POLICY_L4_NEIGHBOUR + 4 * 256)

/* Address tries. IPv4: 18 bits directly, then strides of 6. IPv6: 16 bits directly, then strides of 6;
 * the last stride of each is short and filled up (18 + 3 * 6 = 36, 16 + 19 * 6 = 130). An entry of the
 * direct table is a row with POLICY_LEAF, or the index of a node.
 * Poptrie: Asai and Ohara, SIGCOMM 2015. */
#define POLICY_DIRECT4_BITS 18
#define POLICY_DIRECT6_BITS 16
#define POLICY_STRIDE       6
#define POLICY_LEAF         (1u << 31)

/* Chunk c (the next 6 bits, the first bits of the address first): if children has bit c, the child is
 * nodes[child_base + number of bits of children below c]; else the row is fields[leaf_base + number of
 * bits of leaves at or below c - 1]. `leaves` has a bit where a run of equal leaves begins (chunks with
 * a child belong to the run before them, and the first leaf has its bit set). */
struct policy_node {
	__u64 children;
	__u64 leaves;
	__u32 child_base;
	__u32 leaf_base;
	__u32 pad[2];
};
_Static_assert(sizeof(struct policy_node) == 32, "layout");

/* Full-length addresses: a line of 64 bytes is picked by a keyed hash and compared whole, without
 * branches. Row 0 marks a free place; rows are 16 bit, so the rows of hosts get the lowest numbers, and
 * a host that finds no room or no small number goes into the trie. Keys in host order (IPv4) or as
 * two host-order words, high one first (IPv6). */
#define POLICY_LINE4 10
#define POLICY_LINE6 3

struct policy_line4 {
	__u32 key[POLICY_LINE4];
	__u16 row[POLICY_LINE4];
	__u32 pad;
};
_Static_assert(sizeof(struct policy_line4) == 64, "layout");

struct policy_line6 {
	__u64 key[POLICY_LINE6][2];
	__u16 row[POLICY_LINE6];
	__u16 pad[5];
};
_Static_assert(sizeof(struct policy_line6) == 64, "layout");

/* The line of an address: of `count` lines from `first` on. The same on both sides. */
static inline __attribute__((always_inline)) __u32 policy_line_of4(__u32 addr, __u64 seed,
								   __u32 count)
{
	__u64 h = (addr ^ (__u32)seed) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 32) * ((seed >> 32) | 1);
	return (__u32)(((h >> 32) * count) >> 32);
}

static inline __attribute__((always_inline)) __u32 policy_line_of6(__u64 hi, __u64 lo, __u64 seed,
								   __u32 count)
{
	__u64 h = (hi ^ seed) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 29 ^ lo) * ((seed >> 17) | 1);
	h = (h ^ h >> 32) * 0xbf58476d1ce4e5b9ull;
	return (__u32)(((h >> 32) * count) >> 32);
}

/* Source or destination. A family whose sets name no address has the constant row `none`; so has an
 * address that is in no line, if there is no trie. */
struct policy_side {
	__u8 trie4, lines4, trie6, lines6; /* used at all */
	policy_row none4, none6;
	__u32 direct4, direct6; /* offsets into fields */
	__u32 first4, count4;   /* lines */
	__u32 first6, count6;
};

/* Dynamic sets: hash maps of their own, looked up by a constant number. */
#define POLICY_SETS_MAX 8

struct policy_set_key {
	__u32 family;  /* 4 or 6 */
	__u32 addr[4]; /* network order, host bits of the set's mask cleared; IPv4 in [0] */
};

struct policy_set_value {
	__u64 until; /* jiffies64, ~0: permanent */
};

/* Which interface of the policy an interface of the instance is: number in the policy + 1, by number in
 * the instance; 0: the policy does not name it. Written when an interface is attached. */
struct policy_ifclass {
	__u8 class[64];
};

/* What a test program is asked and what it answers: the private copy of a policy that runs test packets for
 * expect and explain and changes nothing. */
struct policy_test {
	/* asked */
	__u32 iface;      /* number of the interface in the policy + 1 */
	__u8 over;        /* every rate is exceeded, every chance taken */
	__u8 established; /* the packet belongs to a known connection */
	__u8 live;        /* look at the live rates, sets, connections and overlay instead */
	__u8 calm;        /* with live: no rate is exceeded and no chance taken */
	__u32 ifindex; /* the device whose routes decide what is in transit; 0: the packet is to this host */
	/* answered */
	__s32 rule;    /* that decided, or -1 */
	__u32 reason;  /* enum weir_reason */
	__u32 counted; /* rules that counted and did not decide */
	__u32 first_counted[5];
	__s32 service; /* that the packet belongs to, or -1 */
	__u32 backend; /* number of the one it goes to; 0: none */
	__u32 slot;    /* its number among the service's */
	__u32 pinned;  /* a living pin was found */
	__u32 passed;  /* the reason that let a service's packet pass */
	__u32 general; /* the general program has seen the packet */
	__u32 pad;
	__u64 slot_word; /* as common/service.h has it */
};
_Static_assert(sizeof(struct policy_test) == 80, "layout");

/* What a rule asks for once its bit is set, in this order; then comes the action. */
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
/* Flags that must be looked at before the action; a policy without any takes the first bit at once. */
#define RULE_CONDITIONS                                                                          \
	(RULE_LENGTH | RULE_TTL | RULE_DSCP | RULE_PROBABILITY | RULE_ESTABLISHED | RULE_LIMIT | \
	 RULE_FROM_SET | RULE_TO_SET)

/* Time of rates: jiffies64 << RATE_SHIFT. */
#define RATE_SHIFT 20

struct policy_rule {
	__u32 flags;                    /* RULE_* */
	__u32 counter;                  /* index of the rule counter; set at apply, by identity */
	__u8 action;                    /* enum policy_action */
	__u8 per;                       /* enum policy_per */
	__u8 mask4, mask6;              /* of the address a limit is kept for */
	__u8 from_set, to_set, add_set; /* dynamic set numbers */
	__u8 pad0;
	__u32 redirect;    /* index in the map `devices` */
	__u32 probability; /* RULE_PROBABILITY: of 2^32 */
	__u32 length_first, length_last;
	__u8 ttl_first, ttl_last;
	__u16 log_snap;
	__u32 log;  /* index in the map `logpace` */
	__u64 dscp; /* a bit for each value */
	/* The limit, GCRA (ATM Forum TM 4.1, I.371): a packet costs (units * cost_mult) >> cost_shift of
	 * rate time, units being 1 or the frame's bits; it exceeds when the theoretical arrival time runs
	 * more than `tolerance` ahead. */
	__u64 cost_mult;
	__u64 tolerance;
	__u32 cost_shift;
	__u32 meter;        /* index in the map `meters` (PER_RULE), or first line of buckets */
	__u32 meter_lines;  /* of buckets, a power of two */
	__u32 log_interval; /* jiffies between two records, at least 1 */
	__u64 add_ticks;    /* jiffies an added address stays; 0: permanent */
	__u64 pad1[5];
};
_Static_assert(sizeof(struct policy_rule) == 128, "layout");

/* A line of buckets: five addresses, each by a part of its hash (0: free) and its theoretical arrival time. The
 * time is whole: cut to fewer bits, a bucket that was idle for long enough would look as if it were ahead. */
#define POLICY_BUCKETS 5

struct policy_bucket_line {
	__u64 time[POLICY_BUCKETS];
	__u32 tag[POLICY_BUCKETS];
	__u32 pad;
};
_Static_assert(sizeof(struct policy_bucket_line) == 64, "layout");

/* Entries of tables that are one value of their map, so that finding one is an addition and not a look-up; 0: a
 * table with an entry of the map for each (POLICY_CELLS of `fields`), for kernels whose verifier asks for it. */
struct policy_flat {
	__u32 fields, nodes, lines, rows;
};

/* Read-only data of a policy program. All zero is the empty policy. */
struct policy_config {
	__u32 words;    /* 0: no rules */
	__u32 rules;    /* rules 0 … always - 1 come before the overlay */
	__u32 services; /* their bits follow those of the rules: members by address, protocol, port */
	__u32 modes;    /* bit: enum service_mode; some service has it */
	__u32 always;
	__u8 use[POLICY_FIELDS]; /* some rule looks at this field */
	__u8 conditions;         /* some rule has conditions, only counts, logs or adds */
	__u8 essentials_filter;
	__u8 rejects, redirects; /* some rule does so */
	__u8 fragments;          /* a treatment says something */
	__u8 treatment6;         /* of later fragments of IPv6, whatever protocol they name */
	__u8 named; /* it names interfaces: on others no rule, default or service of it holds */
	__u32 base[POLICY_FIELDS];  /* offsets into `fields` */
	struct policy_side side[2]; /* FIELD_SOURCE, FIELD_DESTINATION */
	struct policy_flat flat;
	__u64 line_seed;
	__u64 default_drop; /* bit: number of the interface in the policy + 1; bit 0: it names none */
	__u8 set_mask4[POLICY_SETS_MAX], set_mask6[POLICY_SETS_MAX]; /* of dynamic sets */
	__u8 treatment[256]; /* of later fragments of IPv4 by protocol: enum policy_treatment */
};
