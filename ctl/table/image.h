// SPDX-License-Identifier: GPL-2.0-only
// A compiled policy in memory, ready to be copied into maps; common/policy.h has the layout.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/policy.h"
#include "ctl/base/diag.h"
#include "ctl/base/err.h"

struct image_rule {
	char *identity;    // counters follow it
	struct diag_at at; // its place in the policy
	char *place;       // "edge.weir:12", for explain and lists; stays valid without the diag
	char *redirect;    // interface, or NULL
};

struct image_service {
	char *name;
	char *place;
	struct diag_at at;
};

struct image {
	struct policy_config config;
	uint32_t *fields;
	size_t n_fields;
	struct policy_node *nodes;
	size_t n_nodes;
	struct policy_line4 *lines; // of either kind: 64 bytes each
	size_t n_lines;
	uint64_t *rows; // n_rows * POLICY_ROW_WORDS(config.words); row 0 is all zero
	size_t n_rows;
	struct policy_rule *rules;
	struct image_rule *about; // one for each rule
	size_t n_rules;
	struct image_service *services; // their bits follow those of the rules
	size_t n_services;
	uint32_t n_meters;       // rules with a limit of their own
	uint32_t n_bucket_lines; // for limits per source or destination
	uint32_t n_logs;
};

void image_free(struct image *i);
void image_cleanup(struct image **i);
#define CLEANUP_IMAGE CLEANUP(image_cleanup)

// Bytes of all tables together.
size_t image_bytes(const struct image *i);

// A stable text of everything, for golden tests and `weir check --dump`: the same policy gives the same
// text whatever the seed, so lines are shown as sorted hosts and tries as sorted prefixes with their
// rows, rows by their rules ("r7: 0 3-5 64").
void image_dump(const struct image *i, FILE *f);

// The answer of the tables for one packet, as the datapath computes it: the reference for tests of the
// tables and of the datapath, and for `explain` to name rows. index: by enum policy_field; addresses in
// addr (network order, family 4 or 6). Fills words[config.words]; false when a look-up yields row 0.
struct image_packet {
	uint8_t family; // 4, 6, 0: not IP (only VLAN, IFACE and ETHERTYPE are looked up)
	uint8_t source[16], destination[16];
	// Within the field: port, fragment * 256 + proto, POLICY_L4_*, …
	uint32_t index[POLICY_FIELDS];
};
bool image_match(const struct image *i, const struct image_packet *p, uint64_t *ret_words);
