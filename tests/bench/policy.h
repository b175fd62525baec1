// SPDX-License-Identifier: GPL-2.0-only
// Policies as text, and the same rules for the linear scan.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/bench/draw.bpf.h"
#include "tests/bench/sets.h"

// No rule except the last one matches the packets of draw.h.
enum rules_shape {
	RULES_FIELDS, // eight fields in turn: addresses, ports, protocol, flags, VLAN, interface
	RULES_FROM,   // each from another network, with ports and protocols: a list of offenders
	// in each 64 rules, every field of the packet matches somewhere, but no rule matches
	RULES_WORST,
};

struct rules {
	enum rules_shape shape;
	uint8_t family;
	size_t n;
	const char *first; // a rule before the others, not counted in n; NULL: none
	bool last_matches;
	const char *set_files
		[2]; // rules `drop from` for the sets in these files come first; NULL: no set
	struct bench_rule *linear; // n rules, IPv4; NULL: not needed
	const char *iface;         // NULL: lo
	bool expect;               // add an expect line: the packets of draw.h are dropped
};

// Writes the policy. Ends the bench on failure.
void policy_rules(const struct rules *r, const char *path);
void policy_text(const char *text, const char *path);
// Adds to a policy.
void policy_append(const char *text, const char *path);
