// SPDX-License-Identifier: GPL-2.0-only
// The fields and conditions of a rule: a line for each, from which all else follows.
//
// X(symbol, member, form, domain, …), in the order in which they are printed. AST_symbol is the
// number of the field. `member` is its member of struct resolved_rule, with the type of its form;
// the form decides how it is compared (ctl/policy/shadow.c) and printed (ctl/policy/rule_text.c).
// domain_DOMAIN (ctl/policy/domain.c) reads and prints its words. The rest is what struct field has
// more.
#pragma once

#define RULE_FIELDS(X)                                                                            \
	X(FROM, from, ADDRESS, address, .keyword = "from")                                        \
	X(SPORT, sport, RANGES, port)                                                             \
	X(TO, to, ADDRESS, address, .keyword = "to")                                              \
	X(DPORT, dport, RANGES, port)                                                             \
	X(PROTO, proto, BITS, proto, .keyword = "proto")                                          \
	X(TYPE, icmp, TYPES, type, .keyword = "type")                                             \
	X(FLAGS, flags, FLAGS, flag, .keyword = "flags")                                          \
	/* 0: untagged or VID 0 */                                                                \
	X(VLAN, vlan, RANGES, vlan, .keyword = "vlan", .frame = true)                             \
	/* bit i: resolved.interfaces[i] */                                                       \
	X(ON, on, BITS, on, .keyword = "on", .frame = true)                                       \
	/* 0 .. 65535: "any" */                                                                   \
	X(ETHERTYPE, ethertype, FRAMES, ethertype, .keyword = "ethertype", .frame = true)         \
	/* only later fragments */                                                                \
	X(FRAGMENT, fragment, WORD, none, .keyword = "fragment")                                  \
	/* `from` and `to` a set of pairs: addresses and ports then have the union */             \
	X(FROM_PAIRS, from_pairs, PAIRS, none, .condition = true)                                 \
	X(TO_PAIRS, to_pairs, PAIRS, none, .condition = true)                                     \
	/* of the source */                                                                       \
	X(MAC, mac, MACS, mac, .keyword = "mac", .condition = true, .frame = true, .name = true)  \
	X(LENGTH, length, SPAN, none, .keyword = "length", .condition = true, .frame = true,      \
	  .what = "a length", .max = 65575) /* 40 + 65,535 */                                     \
	X(TTL, ttl, SPAN, none, .keyword = "ttl", .condition = true, .what = "a TTL", .max = 255) \
	X(DSCP, dscp, BITS, dscp, .keyword = "dscp", .condition = true)                           \
	X(ESTABLISHED, established, EITHER, none, .keyword = "established", .condition = true)    \
	/* no route to the source leads by the interface */                                       \
	X(UNROUTABLE, unroutable, WORD, none, .keyword = "unroutable", .condition = true,         \
	  .name = true)                                                                           \
	X(PROBABILITY, probability, PROBABILITY, none, .keyword = "probability",                  \
	  .condition = true, .frame = true)                                                       \
	X(LIMIT, limit, LIMIT, none, .keyword = "over", .condition = true, .frame = true)

// The forms, X(form, type of the member). Each type begins with a byte that is zero where the rule
// leaves the field out.
#define RULE_FORMS(X)                                                                     \
	X(ADDRESS, struct resolved_address)                                               \
	X(RANGES, struct resolved_ranges)                                                 \
	X(FRAMES, struct resolved_ranges) /* a rule without it matches only IP packets */ \
	X(BITS, struct resolved_bits)                                                     \
	X(TYPES, struct resolved_types) /* without it no neighbour discovery matches */   \
	X(FLAGS, struct resolved_flags)                                                   \
	X(PAIRS, struct resolved_pairs)                                                   \
	X(MACS, struct resolved_macs)                                                     \
	X(SPAN, struct resolved_span)                                                     \
	X(WORD, bool)                                                                     \
	X(EITHER, struct resolved_word) /* the word, or the word after "not" */           \
	X(PROBABILITY, struct resolved_probability)                                       \
	X(LIMIT, struct resolved_limit)

#define RULE_FORM(form, type) FORM_##form,

enum rule_form { RULE_FORMS(RULE_FORM) FORMS };
