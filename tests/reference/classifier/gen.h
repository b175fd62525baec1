// SPDX-License-Identifier: GPL-2.0-only
// What the files of the generator share: the policy it made up, as text and as values to aim at.
#ifndef REF_GEN_H
#define REF_GEN_H

#include "addr.h"
#include "build.h"
#include "mem.h"
#include "rng.h"

/*
 * Valid policies only, and by default none that two careful readers may take in two ways: exceptions
 * between sets are full-length hosts or follow short prefixes, exceptions among ports lie inside one
 * range, no set is empty, a list holds no item twice, rates are too high to be exceeded by accident.
 */

/* What a policy may use; `--without` names these. HARD_JOINS is off until `--with` names it. */
#define GEN_FEATURES(X)               \
	X(ADD, "add")                 \
	X(ALWAYS, "always")           \
	X(DEFAULT_ON, "default-on")   \
	X(DEFINE, "define")           \
	X(DYNAMIC, "dynamic")         \
	X(ESSENTIALS, "essentials")   \
	X(ESTABLISHED, "established") \
	X(ETHERTYPE, "ethertype")     \
	X(FILE, "file")               \
	X(FRAGMENTS, "fragments")     \
	X(LAYOUT, "layout")           \
	X(LOG, "log")                 \
	X(MALFORMED, "malformed")     \
	X(NAMED_PORTS, "named-ports") \
	X(OVER, "over")               \
	X(PROBABILITY, "probability") \
	X(REDIRECT, "redirect")       \
	X(REJECT, "reject")           \
	X(TYPE, "type")               \
	X(VLAN, "vlan")               \
	X(HARD_JOINS, "hard-joins")

enum gen_feature {
#define X(id, name) GEN_##id,
	GEN_FEATURES(X)
#undef X
};

struct gen_item {
	struct addr lo;
	struct addr hi;
	bool negative;
	int set; /* >= 0: a set instead of lo and hi */
};

/* A list of addresses: families it may match as bits, 1 for IPv4 and 2 for IPv6. */
struct gen_addrs {
	bool given;
	bool negated;
	bool dynamic;
	unsigned int families;
	double weight; /* rough share of the addresses it takes, to put broad rules last */
	VEC(struct gen_item) items;
	const char *text;
};

struct gen_set {
	const char *name;
	bool dynamic;
	bool hosts; /* few items, all of them long: may follow a `not` */
	struct gen_addrs addrs;
	const char *file; /* path of the list file next to the policy */
	const char *file_text;
};

struct gen_range {
	uint32_t lo;
	uint32_t hi;
	bool negative;
};

struct gen_numbers {
	bool given;
	bool negated;
	VEC(struct gen_range) ranges;
	const char *text;
};

enum gen_define_kind { GEN_DEFINE_ADDRS, GEN_DEFINE_PORTS, GEN_DEFINE_PROTOS, GEN_DEFINE_VLANS };

struct gen_define {
	const char *name;
	enum gen_define_kind kind;
	bool alone; /* negated or with exceptions */
	struct gen_addrs addrs;
	struct gen_numbers numbers;
};

struct gen_rule {
	const char *text;
	unsigned int families;
	struct gen_addrs from;
	struct gen_addrs to;
	struct gen_numbers sport;
	struct gen_numbers dport;
	struct gen_numbers proto;
	struct gen_numbers types[2]; /* ICMP, ICMPv6 */
	struct gen_numbers code;
	struct gen_numbers vlan;
	struct gen_numbers dscp;
	struct gen_numbers ethertype;
	struct gen_numbers ttl;
	struct gen_numbers length;
	struct gen_numbers on; /* places in ifaces */
	bool flags_given;
	uint8_t flags_set;
	uint8_t flags_mask;
	bool fragment;
	bool over;
	bool under;
	bool probability;
	bool established;
	int place; /* the lowest comes first: rules with many bits fixed, roughly */
};

struct gen_options {
	uint64_t seed;
	unsigned int rules;
	unsigned int set_size;
	unsigned int packets;
	unsigned int min_frame;
	const char *policy;
	const char *frames;
	const char *ifaces;     /* comma list, or NULL */
	const char *icmp_names; /* comma list, or NULL */
	bool with[sizeof((const char[]){
#define X(id, name) 0,
		GEN_FEATURES(X)
#undef X
	})];
};

#define GEN_SITES 12

struct gen {
	struct gen_options options;
	struct rng rng;
	struct pool pool;
	struct prefix sites[GEN_SITES]; /* where addresses come from */
	VEC(const char *) ifaces;
	VEC(const char *) icmp_names;
	VEC(struct gen_set) sets;
	VEC(struct gen_define) defines;
	VEC(struct gen_rule) rules;
};

/* One frame to be, with what the input line says about it. */
struct gen_packet {
	const char *iface;
	bool over;
	bool established;
	struct build_frame frame;
};

static inline bool gen_may(struct gen *gen, enum gen_feature feature, unsigned int percent)
{
	return gen->options.with[feature] && rng_chance(&gen->rng, percent);
}

/* gen_text.c: text that grows. */
struct gen_text {
	struct pool *pool;
	VEC(char) bytes;
};

void text_put(struct gen_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *text_done(struct gen_text *text);

/* gen_addr.c */
void gen_sites(struct gen *gen);
struct addr gen_site_addr(struct gen *gen, unsigned int family);
void gen_sets(struct gen *gen);
void gen_addr_defines(struct gen *gen);
void gen_addrs(struct gen *gen, unsigned int families, struct gen_addrs *ret_addrs);

/* gen_field.c */
void gen_number_defines(struct gen *gen);
void gen_ports(struct gen *gen, unsigned int protos, struct gen_numbers *ret_ports);
void gen_port_protos(struct gen *gen, struct gen_numbers *ret_protos, unsigned int *ret_bits);
void gen_protos(struct gen *gen, struct gen_numbers *ret_protos);
void gen_types(struct gen *gen, struct gen_rule *rule, const char **ret_text);
void gen_flags(struct gen *gen, struct gen_rule *rule, const char **ret_text);
void gen_vlans(struct gen *gen, struct gen_numbers *ret_vlans);
void gen_dscps(struct gen *gen, struct gen_numbers *ret_dscps);
void gen_ethertypes(struct gen *gen, struct gen_numbers *ret_types);
void gen_on(struct gen *gen, struct gen_numbers *ret_on);
void gen_span(struct gen *gen, const uint32_t *values, unsigned int count, uint32_t max,
	      struct gen_numbers *ret_span);

/* gen_rule.c, gen_policy.c */
void gen_rules(struct gen *gen);
const char *gen_policy(struct gen *gen);

/* gen_packet.c: a packet aimed at a rule, one of the special ones, or a broken one. */
void gen_aimed(struct gen *gen, const struct gen_rule *rule, bool nudged,
	       struct gen_packet *ret_packet);
void gen_special(struct gen *gen, struct gen_packet *ret_packet);
void gen_broken(struct gen *gen, const struct gen_rule *rule, struct gen_packet *ret_packet);

/* gen_aim.c */
void aim_at(struct gen *gen, const struct gen_rule *rule, struct build_spec *spec,
	    struct gen_packet *packet);

#endif
