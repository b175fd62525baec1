// SPDX-License-Identifier: GPL-2.0-only
// The small fields: ports, protocol and fragment, flags and ICMP types, VLAN, interface, ethertype.
#pragma once

#include "ctl/base/vec.h"
#include "ctl/policy/fields.h"
#include "ctl/policy/resolved.h"
#include "ctl/table/rows.h"

struct fields_builder;

// A field of the bit matrix: an entry for each enum policy_field.
struct matrix_field {
	const char *name;
	enum ast_field rule[2]; // fields of a rule that it serves
	size_t n;
	bool frame; // frames that are not IP have it too
	// Fills the table of a field; addresses have other tables instead (table4.h, table6.h).
	bool (*build)(struct fields_builder *b, enum policy_field field, __u32 *to);
	// The index of the common packets in a cell of M_BASE, by family and enum matrix_base; -1:
	// they have cells of their own. Of fields that have not APART_ALL (common/fields.h).
	int (*base)(int family, uint32_t cell);
	// The table is made of parts. Without a name: the element for packets without the field.
	struct matrix_part {
		const char *name;
		uint32_t size;
		int hex; // digits of an index as it is printed; 0: decimal
	} parts[5];
};
extern const struct matrix_field matrix_fields[POLICY_FIELDS];

// Can a packet fail the rule because of this field? (Not because it is not IP, or neighbour
// discovery.)
bool fields_needs(const struct resolved_rule *rule, enum policy_field field);

// The rows of all fields but addresses, by value.
struct field_rows {
	uint8_t use[POLICY_FIELDS];   // some rule tests this field
	uint32_t base[POLICY_FIELDS]; // where the rows of a field begin in cells
	VEC(policy_row) cells;
};

// The number of values of a field; 0: addresses.
size_t fields_size(enum policy_field field);

// matrix_fields[].base; -1 for a field without it.
int fields_base(enum policy_field field, int family, uint32_t cell);

// Decides ret->use for all fields, which needs no tables.
void fields_use(const struct resolved *r, struct field_rows *ret);

// Adds the rows of all used fields except addresses. False when there is no room for a row.
bool fields_build(const struct resolved *r, struct rows *rows, struct field_rows *f);
