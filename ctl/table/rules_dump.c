// SPDX-License-Identifier: GPL-2.0-only
#include "ctl/table/rules_dump.h"

#include "ctl/policy/words.h"

static void dump_limit(const struct policy_rule *r, FILE *f)
{
	fprintf(f, " %s %s cost %llu>>%u tolerance %llu per %s",
		r->flags & RULE_UNDER ? "under" : "over", r->flags & RULE_BITS ? "bits" : "packets",
		(unsigned long long)r->cost_mult, r->cost_shift, (unsigned long long)r->tolerance,
		choice_word(&choice_pers, r->per));
	if (r->per == PER_RULE)
		fprintf(f, " meter %u", r->meter);
	else
		fprintf(f, " mask %u/%u table %u lines %u", r->mask4, r->mask6, r->meter,
			r->meter_lines);
}

void rules_dump_conditions(const struct policy_rule *r, FILE *f)
{
	if (r->flags & RULE_FROM_SET)
		fprintf(f, " from-set %u", r->from_set);
	if (r->flags & RULE_TO_SET)
		fprintf(f, " to-set %u", r->to_set);
	for (int i = 0; i < 2; i++)
		if (r->flags & (i ? RULE_TO_PAIRS : RULE_FROM_PAIRS))
			fprintf(f, " %s-pairs edges %u-%u", i ? "to" : "from", r->pairs_first[i],
				r->pairs_first[i] + r->pairs_n[i] - 1);
	if (r->flags & RULE_MAC)
		fprintf(f, " mac edges %u-%u", r->mac_first, r->mac_first + r->mac_n - 1);
	if (r->flags & RULE_LENGTH)
		fprintf(f, " %slength %u-%u", r->flags & RULE_FRAME ? "frame-" : "",
			r->length_first, r->length_last);
	if (r->flags & RULE_TTL)
		fprintf(f, " ttl %u-%u", r->ttl_first, r->ttl_last);
	if (r->flags & RULE_DSCP)
		fprintf(f, " dscp 0x%llx", (unsigned long long)r->dscp);
	if (r->flags & RULE_ESTABLISHED)
		fputs(" established", f);
	if (r->flags & RULE_UNTRACKED)
		fputs(" not established", f);
	if (r->flags & RULE_UNROUTABLE)
		fputs(" unroutable", f);
	if (r->flags & RULE_PROBABILITY)
		fprintf(f, " probability %u", r->probability);
	if (r->flags & RULE_CONNECTIONS)
		fprintf(f, " %s %u connections per %s mask %u/%u number %u",
			r->flags & RULE_UNDER ? "under" : "over", r->connections,
			choice_word(&choice_pers, r->per), r->mask4, r->mask6, r->connection_rule);
	if (r->flags & RULE_LIMIT)
		dump_limit(r, f);
}
