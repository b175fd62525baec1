// SPDX-License-Identifier: GPL-2.0-only
// Loads a policy into the kernel, program and tables, beside the active generation.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/datapath/generation.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/program_load.h"
#include "ctl/table/image.h"

struct lb_load;

// A dynamic set that the policy names. Its map belongs to every generation that names it.
struct generation_set {
	const char *name;
	uint32_t max;
};

struct generation_options {
	bool malformed_pass;
	// A set of a name and size that generation `previous` has too is that set; one of another
	// size gets a copy of its addresses. Rates continue as ctl/datapath/rates.h has it. 0: all
	// sets and rates are new.
	uint32_t previous;
	const struct generation_set *sets;
	size_t n_sets; // at most POLICY_SETS_MAX, in the order of the set numbers
	// Ifindexes for redirect rules, by the index in the image's `redirect`; 0: no such device.
	const uint32_t *redirects;
	size_t n_redirects;
	const struct lb_load *load; // state of its services; NULL: neither services nor answers
	bool reorders;              // as on a machine that reorders reads: for tests
	bool general_only; // without the short program: for tests that compare the two ways
};

struct program_cost {          // all 0: the policy has no such program
	uint32_t object;       // instructions with every feature, as compiled
	uint32_t instructions; // without those that the verifier has removed, with inlined helpers
	uint32_t verified;     // instructions that the verifier has walked
	uint32_t jited_bytes;
};

struct generation_cost {
	// Why the kernel refuses the short program of this policy, so that the general one takes
	// every packet; "": it does not.
	program_refused refused;
	program_refused test_refused; // the same of its test program
	struct program_cost program[GENERATION_PROGRAMS];
	size_t map_bytes;
	uint64_t load_us;
};

// Loads program and tables around the shared maps of the instance (i NULL: around private ones, to
// prove and measure a policy without an instance). Nothing is pinned, and no packet meets it. cost
// may be NULL. 0 or -errno with err set (the last words of the verifier as hint).
int generation_load(const struct instance *i, const struct image *image,
		    const struct generation_options *options, struct generation **ret,
		    struct generation_cost *cost, struct err *err);
// The empty policy of a new instance; the shared maps are made with it, and their descriptors are
// set in i.
int generation_load_first(struct instance *i, struct generation **ret, struct err *err);
