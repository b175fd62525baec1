// SPDX-License-Identifier: GPL-2.0-only
// A compiled policy in memory, ready to be copied into maps; common/policy.h has the layout.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/connections.h"
#include "common/policy.h"
#include "ctl/base/diag.h"
#include "ctl/base/err.h"
#include "ctl/table/matrix.h"

struct image_rule {
	char *identity;    // counters follow it
	struct diag_at at; // its location in the policy
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
	struct tables tables;
	struct matrix_built matrix[TABLE_MATRICES];
	struct policy_rule *rules;
	struct image_rule *about; // one for each rule
	size_t n_rules;
	struct image_service *services;
	size_t n_services;
	// It has no services, but is loaded with answers of nat and fullnat: its short program is
	// the one for services. Set before the load.
	bool answers;
	// The state of a rate, which several policies share (ctl/datapath/rates.h). `meter` and
	// `log` of a rule are the number of its element.
	uint32_t n_meters;       // limits per rule
	uint32_t n_tables;       // limits per source or destination
	uint32_t n_bucket_lines; // of these tables together
	uint32_t n_logs;
	// Code that only policies with these words have (common/markers.h).
	bool port_limits; // a limit per source and port
	// Rules with `over N connections`, by their numbers in common/connections.h.
	struct connection_rule connection_rules[CONNECTION_RULES];
	uint32_t n_connection_rules;
	uint32_t *rules_of_port;     // bits, for each of 65536 ports; NULL: there is no such rule
	uint32_t connection_sources; // room for these
};

void image_free(struct image *i);
void image_cleanup(struct image **i);
#define CLEANUP_IMAGE CLEANUP(image_cleanup)

// Bytes of all tables together.
size_t image_bytes(const struct image *i);

// A stable text of everything, for golden tests and `weir check --dump`: the same policy gives the
// same text whatever the seed, so addresses are shown as sorted regions with their rows, rows by
// their rules ("r7: 0 3-5 64"). The image was compiled with keep_regions.
void image_dump(const struct image *i, FILE *f);

// The row of a value of a small field that the matrix uses; the value within the field: port,
// fragment * 256 + proto, POLICY_L4_*, …
policy_row image_field_row(const struct image *i, enum table_matrix matrix, enum policy_field field,
			   uint32_t value);

// The tables.n bytes of the tables, with the actions of the short program for each rule, which
// depend on the rules' counters and are therefore known late.
void image_write_tables(const struct image *i, uint8_t *to);
