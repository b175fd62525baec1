// SPDX-License-Identifier: GPL-2.0-only
// Caches rules until the policy changes, and entries until the epoch of the overlay changes.
#include "ctl/cmd/culprits.h"

#include <stdlib.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/cmd/rules.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/identities.h"

static void forget_rules(struct culprits *c)
{
	vec_each (&c->rules, rule)
		free(rule->name);
	vec_free(&c->rules);
}

void culprits_free(struct culprits *c)
{
	forget_rules(c);
	vec_free(&c->rows);
}

static uint64_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec + 1; // never 0
}

static void read_rules(struct culprits *c)
{
	CLEANUP_CANDIDATE struct candidate *policy = NULL;

	forget_rules(c);
	if (rules_load(c->instance, &policy, NULL))
		return;
	for (size_t r = 0; r < policy->image->n_rules; r++) {
		const char *identity = policy->image->about[r].identity;
		uint32_t row;

		if (!identities_index(c->instance, identity, &row))
			vec_push(&c->rules, ((struct culprit_rule){row, mem_strdup(identity)}));
	}
}

static void renew_rules(struct culprits *c)
{
	uint64_t now_s = seconds();
	struct commit_state state;
	uint32_t in_force;

	if (c->asked_s == now_s)
		return;
	c->asked_s = now_s;
	if (commit_read(c->instance, &state, NULL))
		return;
	in_force = state.in_force;
	if (in_force == c->generation)
		return;
	c->generation = in_force;
	read_rules(c);
}

static struct culprit_rule *find_rule(struct culprits *c, uint32_t row)
{
	vec_each (&c->rules, rule)
		if (rule->row == row)
			return rule;
	return NULL;
}

const char *culprits_rule(struct culprits *c, uint32_t row)
{
	renew_rules(c);
	if (!find_rule(c, row)) // also those of which nothing is known are not asked about again
		vec_push(&c->rules, ((struct culprit_rule){row, mem_printf("rule %u", row)}));
	return find_rule(c, row)->name;
}

static int compare(const struct overlay_entry *row, const struct prefix *p, uint8_t kind)
{
	int order = prefix_compare(&row->prefix, p);

	return order ? order : (int)row->kind - (int)kind;
}

static const struct overlay_entry *find_entry(const struct culprits *c, const struct prefix *p,
					      uint8_t kind)
{
	size_t low = 0, high = c->rows.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare(&c->rows.at[middle], p, kind);

		if (!order)
			return &c->rows.at[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static bool renew_entries(struct culprits *c)
{
	uint64_t epoch = c->instance->knobs->epoch;

	if (c->read && c->epoch == epoch)
		return true;
	vec_free(&c->rows);
	c->read = !overlay_read(c->instance, &c->rows, NULL);
	c->epoch = epoch;
	return c->read;
}

const struct prefix *culprits_entry(struct culprits *c, const struct addr *a, uint8_t kind)
{
	struct clock now;

	if (!renew_entries(c) || instance_clock(c->instance, &now, NULL))
		return NULL;
	for (unsigned len = addr_bits(a) + 1u; len--;) {
		struct prefix p = prefix_of(a, (uint8_t)len);
		const struct overlay_entry *row = find_entry(c, &p, kind);

		if (row && row->until > now.jiffies)
			return &row->prefix;
	}
	return NULL;
}
