// SPDX-License-Identifier: GPL-2.0-only
// Caches the rules and the entries of an instance until they change.
#include "ctl/cmd/culprits.h"

#include <stdlib.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/control/active.h"
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
	vec_free(&c->entries);
}

static uint64_t seconds(void)
{
	return time_s(CLOCK_MONOTONIC) + 1; // never 0
}

static void read_rules(struct culprits *c)
{
	CLEANUP_CANDIDATE struct candidate *policy = NULL;

	forget_rules(c);
	if (active_rules(c->instance, false, &policy, NULL))
		return;
	for (size_t r = 0; r < policy->image->n_rules; r++) {
		const char *identity = policy->image->about[r].identity;
		uint32_t id;

		if (!identities_index(c->instance, identity, &id))
			vec_push(&c->rules, ((struct culprit_rule){id, mem_strdup(identity)}));
	}
}

static void renew_rules(struct culprits *c)
{
	uint64_t now_s = seconds();
	struct commit_state state;

	if (c->asked_s == now_s)
		return;
	c->asked_s = now_s;
	if (commit_read(c->instance, &state, NULL))
		return;
	if (state.in_force == c->generation)
		return;
	c->generation = state.in_force;
	read_rules(c);
}

static struct culprit_rule *find_rule(struct culprits *c, uint32_t id)
{
	vec_each (&c->rules, rule)
		if (rule->id == id)
			return rule;
	return NULL;
}

const char *culprits_rule(struct culprits *c, uint32_t id)
{
	renew_rules(c);
	if (!find_rule(c, id)) // an unknown rule is cached too
		vec_push(&c->rules, ((struct culprit_rule){id, mem_printf("rule %u", id)}));
	return find_rule(c, id)->name;
}

static int compare(const struct overlay_entry *entry, const struct prefix *p, uint8_t kind)
{
	int order = prefix_compare(&entry->prefix, p);

	return order ? order : (int)entry->kind - (int)kind;
}

static const struct overlay_entry *find_entry(const struct culprits *c, const struct prefix *p,
					      uint8_t kind)
{
	size_t low = 0, high = c->entries.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare(&c->entries.at[middle], p, kind);

		if (!order)
			return &c->entries.at[middle];
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
	vec_free(&c->entries);
	c->read = !overlay_read(c->instance, &c->entries, NULL);
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
		const struct overlay_entry *entry = find_entry(c, &p, kind);

		if (entry && entry->until > now.jiffies)
			return &entry->prefix;
	}
	return NULL;
}
