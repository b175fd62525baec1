// SPDX-License-Identifier: GPL-2.0-only
// Which rules fail while connection tracking is off.
#include "ctl/control/tracking.h"

#include "ctl/control/families.h"
#include "ctl/net/conntrack.h"

_Static_assert(FAMILIES_4 == CONNTRACK_4 && FAMILIES_6 == CONNTRACK_6, "the same bits");

uint32_t tracking_of_rule(const struct resolved *r, size_t number)
{
	const struct resolved_rule *rule = &r->rules[number];
	uint32_t both = families_of_rule(r, rule);

	if (!rule->established.given)
		return 0;
	return rule->established.negated ? both : both << TRACKING_PLAIN;
}

uint32_t tracking_of(const struct resolved *r)
{
	uint32_t needs = 0;

	for (size_t n = 0; n < r->n_rules; n++)
		needs |= tracking_of_rule(r, n);
	return needs;
}

bool tracking_fails(uint32_t needs, uint32_t off)
{
	uint32_t plain = needs >> TRACKING_PLAIN;

	return needs & off || (plain && !(plain & ~off));
}

bool tracking_fails_now(uint32_t needs)
{
	return needs && tracking_fails(needs, conntrack_off());
}
