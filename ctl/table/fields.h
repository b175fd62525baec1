// SPDX-License-Identifier: GPL-2.0-only
// The small fields: ports, protocol and fragment, flags and ICMP types, VLAN, interface, ethertype.
#pragma once

#include "ctl/policy/resolved.h"
#include "ctl/table/rows.h"
#include "ctl/table/tables.h"

// Can a packet fail the rule because of this field? (Not because it is not IP, or neighbour discovery.)
bool fields_needs(const struct resolved_rule *rule, enum policy_field field);

// What can be decided without tables: config->use, for all fields.
void fields_use(const struct resolved *r, struct policy_config *config);

// Adds the tables of all used fields but addresses, and their config->base. False when there is no room
// for a row.
bool fields_build(const struct resolved *r, struct rows *rows, struct table_arrays *t,
		  struct policy_config *config);
