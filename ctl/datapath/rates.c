// SPDX-License-Identifier: GPL-2.0-only
// Provides the state of each rate: from the active generation, or new.
#include "ctl/datapath/rates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/maps.h"

#define NO_PLACE UINT32_MAX

// The kinds of state, each with separate elements.
enum rate_kind { RATE_METER, RATE_TABLE, RATE_PACE, RATE_KINDS };

// A rule keeps its state if these are equal. Without padding, because bytes are compared.
struct rate_key {
	uint64_t cost_mult, tolerance;
	uint32_t counter; // by identity
	uint32_t cost_shift, lines;
	uint8_t per, mask4, mask6, bits;
};
_Static_assert(sizeof(struct rate_key) == 32, "padding");

struct rate_state {
	struct rate_key key;
	uint32_t rule;
	uint32_t place; // in the map of its kind
};

struct rate_states {
	struct rate_state *at;
	size_t n, cap;
};

static void states_free(struct rate_states *s)
{
	vec_free(s);
}

static bool has_state(const struct policy_rule *rule, enum rate_kind kind)
{
	if (kind == RATE_PACE)
		return rule->flags & RULE_LOG;
	return rule->flags & RULE_LIMIT && (rule->per == PER_RULE) == (kind == RATE_METER);
}

static uint32_t *place_of(struct policy_rule *rule, enum rate_kind kind)
{
	return kind == RATE_PACE ? &rule->log : &rule->meter;
}

static struct rate_key key_of(const struct policy_rule *rule, enum rate_kind kind)
{
	if (kind == RATE_PACE)
		return (struct rate_key){.counter = rule->counter, .tolerance = rule->log_interval};
	return (struct rate_key){
		.cost_mult = rule->cost_mult,
		.tolerance = rule->tolerance,
		.counter = rule->counter,
		.cost_shift = rule->cost_shift,
		.lines = rule->meter_lines,
		.per = rule->per,
		.mask4 = rule->mask4,
		.mask6 = rule->mask6,
		.bits = rule->flags & RULE_BITS ? 1 : 0,
	};
}

// Any order of keys works; with equal keys, the order of the rules.
static int compare(const void *a, const void *b)
{
	const struct rate_state *x = a, *y = b;
	int by_key = memcmp(&x->key, &y->key, sizeof(x->key));

	return by_key ? by_key : (x->rule > y->rule) - (x->rule < y->rule);
}

static struct rate_states states_of(struct policy_rule *rules, size_t n, enum rate_kind kind)
{
	struct rate_states states = {0};

	for (uint32_t r = 0; r < n; r++)
		if (has_state(&rules[r], kind))
			vec_push(&states,
				 ((struct rate_state){.key = key_of(&rules[r], kind),
						      .rule = r,
						      .place = *place_of(&rules[r], kind)}));
	if (states.n)
		qsort(states.at, states.n, sizeof(*states.at), compare);
	return states;
}

// Gives the states of a new policy their elements of an old policy, and new states NO_PLACE.
static void inherit(struct rate_states *fresh, const struct rate_states *old)
{
	size_t at = 0;

	vec_each (fresh, state) {
		int order = 1;

		while (at < old->n &&
		       (order = memcmp(&old->at[at].key, &state->key, sizeof(state->key))) < 0)
			at++;
		state->place = at < old->n && !order ? old->at[at++].place : NO_PLACE;
	}
}

// ---- words: of limits per rule, and of records --------------------------------------------------

static int read_rules(const struct instance *i, uint32_t generation, struct policy_rule **ret,
		      uint32_t *ret_n, struct err *err)
{
	CLEANUP_FREE char *folder = generation_folder(i->folder, generation);
	CLEANUP_FD int fd = -1;
	int code = bpffs_get(folder, part_name(PART_RULES), &fd, err);

	if (code == -ENOENT) // a killed command pinned only a part: no packet meets it
		return 0;
	if (code || (code = mapping_entries(fd, ret_n, err)))
		return code;
	*ret = mem_zalloc(*ret_n, sizeof(**ret));
	code = percpu_read(fd, 0, *ret_n, *ret);
	return code ? err_system(err, -code, "cannot read the rules of generation %u", generation)
		    : 0;
}

// The words that generations in bpffs use.
static int mark_used(const struct instance *i, enum rate_kind kind, uint8_t used[WEIR_RATES],
		     struct err *err)
{
	CLEANUP_NUMBERS struct generation_numbers numbers = {0};
	int code = generation_list(i, &numbers, err);

	if (code)
		return code;
	vec_each (&numbers, number) {
		CLEANUP_FREE struct policy_rule *rules = NULL;
		uint32_t n = 0;

		if ((code = read_rules(i, *number, &rules, &n, err)))
			return code;
		for (uint32_t r = 0; r < n; r++)
			if (has_state(&rules[r], kind) && *place_of(&rules[r], kind) < WEIR_RATES)
				used[*place_of(&rules[r], kind)] = 1;
	}
	return 0;
}

// A free word may have what an earlier policy left there.
static int take_word(int map, uint8_t used[WEIR_RATES], uint32_t *next, uint32_t *ret)
{
	const uint64_t full = 0;

	while (*next < WEIR_RATES && used[*next])
		++*next;
	if (*next >= WEIR_RATES)
		return -ENOSPC;
	if (map >= 0 && bpf_map_update_elem(map, next, &full, BPF_ANY))
		return -errno;
	*ret = (*next)++;
	return 0;
}

static int provide_words(const struct instance *i, enum rate_kind kind, struct rate_states *states,
			 struct err *err)
{
	CLEANUP_FREE uint8_t *used = mem_zalloc(WEIR_RATES, 1);
	int map = !i ? -1 : kind == RATE_PACE ? i->logpace : i->meters;
	uint32_t next = 0;
	int code = i && states->n ? mark_used(i, kind, used, err) : 0;

	if (code)
		return code;
	vec_each (states, state) {
		code = state->place != NO_PLACE ? 0 : take_word(map, used, &next, &state->place);
		if (code)
			return err_system(err, -code, "cannot keep the rates of rules");
	}
	return 0;
}

// ---- tables: of limits per address --------------------------------------------------------------

static int new_table(const struct image_rule *about, uint32_t lines, int *ret_fd, struct err *err)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_INNER_MAP);

	*ret_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_rate", sizeof(uint32_t),
				 sizeof(struct policy_bucket_line), lines, &opts);
	return *ret_fd < 0
		       ? err_system(
				 err, -*ret_fd,
				 "cannot create the table for the rate of %s, with room for %u %s",
				 about->place, lines * POLICY_BUCKETS,
				 num_plural(lines * POLICY_BUCKETS, "address", "addresses"))
		       : 0;
}

// The table of generation `previous` in this element.
static int old_table(const struct instance *i, uint32_t previous, uint32_t place, int *ret_fd,
		     struct err *err)
{
	CLEANUP_FREE char *generation = generation_folder(i->folder, previous);
	CLEANUP_FREE char *folder = mem_printf("%s/" RATES_FOLDER, generation);
	CLEANUP_FREE char *name = mem_printf("%u", place);
	int code = bpffs_get(folder, name, ret_fd, err);

	return code == -ENOENT
		       ? err_stated(err, ENOENT, "table %s of rates is no longer in bpffs", name)
		       : code;
}

static int provide_table(const struct instance *i, uint32_t previous, const struct image *image,
			 struct rate_state *state, struct generation *g, struct err *err)
{
	const struct policy_rule *rule = &image->rules[state->rule];
	CLEANUP_FREE char *name = mem_printf("%u", rule->meter);
	int fd = -1;
	int code = state->place == NO_PLACE
			   ? new_table(&image->about[state->rule], rule->meter_lines, &fd, err)
			   : old_table(i, previous, state->place, &fd, err);

	if (code)
		return code;
	parts_keep(&g->rates, name, fd);
	state->place = rule->meter;
	return bpf_map_update_elem(g->fd[PART_BUCKETS], &rule->meter, &fd, BPF_ANY)
		       ? err_system(err, errno, "cannot use a table of rates")
		       : 0;
}

static int provide_tables(const struct instance *i, uint32_t previous, const struct image *image,
			  struct rate_states *states, struct generation *g, struct err *err)
{
	int code = 0;

	vec_each (states, state)
		if ((code = provide_table(i, previous, image, state, g, err)))
			return code;
	return 0;
}

// ---- all ----------------------------------------------------------------------------------------

// The states of one kind; old: of the previous generation.
static int provide_kind(const struct instance *i, uint32_t previous, enum rate_kind kind,
			const struct image *image, struct policy_rule *rules,
			struct rate_states *old, struct generation *g, struct err *err)
{
	CLEANUP(states_free) struct rate_states fresh = states_of(rules, image->n_rules, kind);
	int code;

	inherit(&fresh, old);
	code = kind == RATE_TABLE ? provide_tables(i, previous, image, &fresh, g, err)
				  : provide_words(i, kind, &fresh, err);
	vec_each (&fresh, state)
		*place_of(&rules[state->rule], kind) = state->place;
	return code;
}

int rates_provide(const struct instance *i, uint32_t previous, const struct image *image,
		  struct policy_rule *rules, struct generation *g, struct err *err)
{
	CLEANUP_FREE struct policy_rule *before = NULL;
	uint32_t n_before = 0;
	int code = i && previous ? read_rules(i, previous, &before, &n_before, err) : 0;

	if (code)
		return code;
	for (enum rate_kind kind = 0; kind < RATE_KINDS; kind++) {
		CLEANUP(states_free) struct rate_states old = states_of(before, n_before, kind);

		if ((code = provide_kind(i, previous, kind, image, rules, &old, g, err)))
			return code;
	}
	return 0;
}
