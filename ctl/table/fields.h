// SPDX-License-Identifier: GPL-2.0-only
// The small fields: ports, protocol and fragment, flags and ICMP types, VLAN, interface, ethertype.
#pragma once

#include "ctl/policy/fields.h"
#include "ctl/policy/resolved.h"
#include "ctl/table/rows.h"
#include "ctl/table/arrays.h"

struct fields_builder;

// A field of the bit matrix: an entry for each enum policy_field.
struct matrix_field {
	const char *name;
	enum ast_field rule[2]; // fields of a rule that it serves
	size_t n;
	bool frame; // frames that are not IP have it too
	// Fills the table of a field; addresses have tries and lines instead (sweep.h).
	bool (*build)(struct fields_builder *b, enum policy_field field, __u32 *to);
	// The table is made of parts. Without a name: the element for packets without the field.
	struct matrix_part {
		const char *name;
		uint32_t size;
		int hex; // digits of an index as it is printed; 0: decimal
	} parts[5];
};
extern const struct matrix_field matrix_fields[POLICY_FIELDS];

// Can a packet fail the rule because of this field? (Not because it is not IP, or neighbour discovery.)
bool fields_needs(const struct resolved_rule *rule, enum policy_field field);

// What can be decided without tables: config->use, for all fields.
void fields_use(const struct resolved *r, struct policy_config *config);

// Adds the tables of all used fields but addresses, and their config->base. False when there is no room
// for a row.
bool fields_build(const struct resolved *r, struct rows *rows, struct table_arrays *t,
		  struct policy_config *config);
