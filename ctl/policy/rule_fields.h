// SPDX-License-Identifier: GPL-2.0-only
// The fields and conditions of a rule: a line for each, from which all else follows.
//
// X(symbol, member, form, …), in the order in which they are printed. AST_symbol is the number of the field. `member`
// is its place in struct resolved_rule, where it has the type of its form; the form decides how it is compared
// (ctl/policy/shadow.c) and printed (ctl/policy/rule_text.c). The rest is what struct field has more.
#pragma once

#define RULE_FIELDS(X)                                                                        \
	X(FROM, from, ADDRESS, .keyword = "from", .domain = &domain_address)                  \
	X(SPORT, sport, RANGES, .domain = &domain_port)                                       \
	X(TO, to, ADDRESS, .keyword = "to", .domain = &domain_address)                        \
	X(DPORT, dport, RANGES, .domain = &domain_port)                                       \
	X(PROTO, proto, BITS, .keyword = "proto", .domain = &domain_proto)                    \
	X(TYPE, icmp, TYPES, .keyword = "type", .domain = &domain_type)                       \
	X(FLAGS, flags, FLAGS, .keyword = "flags")                                            \
	/* 0: untagged or VID 0 */                                                            \
	X(VLAN, vlan, RANGES, .keyword = "vlan", .domain = &domain_vlan, .frame = true)       \
	/* bit i: resolved.interfaces[i] */                                                   \
	X(ON, on, BITS, .keyword = "on", .domain = &domain_on, .frame = true)                 \
	/* 0 .. 65535: "any" */                                                               \
	X(ETHERTYPE, ethertype, FRAMES, .keyword = "ethertype", .domain = &domain_ethertype,  \
	  .frame = true)                                                                      \
	/* only later fragments */                                                            \
	X(FRAGMENT, fragment, WORD, .keyword = "fragment")                                    \
	X(LENGTH, length, SPAN, .keyword = "length", .condition = true, .frame = true,        \
	  .what = "a length", .max = 65575) /* 40 + 65,535 */                                 \
	X(TTL, ttl, SPAN, .keyword = "ttl", .condition = true, .what = "a TTL", .max = 255)   \
	X(DSCP, dscp, BITS, .keyword = "dscp", .condition = true, .domain = &domain_dscp)     \
	X(ESTABLISHED, established, WORD, .keyword = "established", .condition = true)        \
	X(PROBABILITY, probability, PROBABILITY, .keyword = "probability", .condition = true, \
	  .frame = true)                                                                      \
	X(LIMIT, limit, LIMIT, .keyword = "over", .condition = true, .frame = true)

// The forms, X(form, type of the member). Each type begins with a byte that is zero where the rule leaves the field out.
#define RULE_FORMS(X)                                                                     \
	X(ADDRESS, struct resolved_address)                                               \
	X(RANGES, struct resolved_ranges)                                                 \
	X(FRAMES, struct resolved_ranges) /* a rule without it matches only IP packets */ \
	X(BITS, struct resolved_bits)                                                     \
	X(TYPES, struct resolved_types) /* without it no neighbour discovery matches */   \
	X(FLAGS, struct resolved_flags)                                                   \
	X(SPAN, struct resolved_span)                                                     \
	X(WORD, bool)                                                                     \
	X(PROBABILITY, struct resolved_probability)                                       \
	X(LIMIT, struct resolved_limit)

#define RULE_FORM(form, type) FORM_##form,

enum rule_form { RULE_FORMS(RULE_FORM) FORMS };
