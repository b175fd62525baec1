// SPDX-License-Identifier: GPL-2.0-only
// A policy as the parser leaves it and the matcher reads it.
#ifndef REF_POLICY_H
#define REF_POLICY_H

#include "lists.h"
#include "mem.h"
#include "ref.h"

enum action { ACTION_PASS, ACTION_DROP, ACTION_REJECT, ACTION_REDIRECT, ACTION_COUNT };

enum fragments { FRAGMENTS_FILTER, FRAGMENTS_DROP, FRAGMENTS_PASS };

/* Protocols with ports, as indexes of arrays and as bits. */
enum { PORTS_TCP, PORTS_UDP, PORTS_SCTP, PORTS_COUNT };

struct set {
	const char *name;
	unsigned int line;
	bool dynamic;
	bool ports; /* a set of ports, whose elements begin at token `at` */
	bool macs;  /* the same of MAC addresses */
	bool pairs; /* the same of pairs of address and port */
	size_t at;
	unsigned int mask_len[2]; /* dynamic: of IPv4 and IPv6 entries */
	struct addresses addresses;
	VEC(struct prefix) entries; /* dynamic */
};

struct pair {
	struct addr addr;
	uint64_t lo, hi; /* ports */
};

/* from or to: a dynamic set, a set of pairs, else a list. */
struct direction {
	bool given;
	bool of_pairs, no_pair; /* no_pair: after not */
	VEC(struct pair) pairs;
	struct set *dynamic;
	struct addresses *list;
};

/* Ports by protocol, because a service name may mean another number in each. */
struct ports {
	bool given;
	struct numbers numbers[PORTS_COUNT];
};

struct field {
	bool given;
	struct numbers numbers;
};

struct types {
	bool given;
	bool known[2]; /* whether a name is known to ICMP, ICMPv6 */
	struct numbers numbers[2];
};

struct span {
	bool given;
	uint32_t lo;
	uint32_t hi;
};

struct iface_item {
	const char *name;
	bool negative;
};

struct ifaces {
	bool given;
	bool negated;
	VEC(struct iface_item) items;
};

struct add {
	bool destination;
	struct set *set;
};

struct rule {
	unsigned int number; /* in the file, from 1 */
	unsigned int line;
	const char *name;
	bool always;
	enum action action;
	const char *redirect;

	struct direction from;
	struct direction to;
	struct ports sport;
	struct ports dport;
	struct field proto;
	struct types type;
	struct field code;
	struct field vlan;
	struct field ethertype;
	struct field dscp;
	struct field mac;
	bool flags_given;
	uint8_t flags_set;
	uint8_t flags_mask;
	struct ifaces on;
	bool fragment;

	bool over;
	bool under;
	bool probability;
	bool established;
	bool untracked; /* not established */
	bool unroutable;
	struct span length;
	struct span ttl;
	VEC(struct add) adds;
};

struct default_on {
	const char *iface;
	bool drop;
};

struct ref_policy {
	struct pool pool;
	VEC(const char *) ifaces;
	VEC(struct set *) sets;
	VEC(struct rule *) rules; /* as in the file */
	bool default_drop;
	VEC(struct default_on) defaults;
	bool malformed_pass;
	bool essentials_filter;
	enum fragments fragments;
	struct field fragments_proto;

	uint64_t packet; /* number of the current packet */
	VEC(unsigned int) counted;
	VEC(struct ref_add) added;
};

struct set *policy_set(const struct ref_policy *policy, const char *name);

#endif
