// SPDX-License-Identifier: GPL-2.0-only
// Finds the families of a rule by its addresses.
#include "ctl/control/families.h"

// A dynamic set can have addresses of both families.
static uint32_t families(const struct resolved *r, const struct resolved_address *address)
{
	const struct resolved_addresses *set;

	if (address->kind != RESOLVED_SET)
		return FAMILIES_BOTH;
	set = &r->addresses[address->index];
	return (set->n4 ? FAMILIES_4 : 0) | (set->n6 ? FAMILIES_6 : 0);
}

uint32_t families_of_rule(const struct resolved *r, const struct resolved_rule *rule)
{
	return families(r, &rule->from) & families(r, &rule->to);
}
