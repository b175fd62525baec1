// SPDX-License-Identifier: GPL-2.0-only
// Sums up packets and bytes of entries by their owners.
#include "ctl/cmd/stats_owners.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/cmd/show.h"
#include "ctl/control/entries.h"

// The entries of one origin and one list, of one verb.
struct sum {
	char *origin, *list;
	const char *verb; // "block"
	uint64_t entries, packets, bytes;
	size_t last; // number of the entry that was added last
};

struct sums {
	struct sum *at; // sorted by compare_sums
	size_t n, cap;
	size_t hint; // the sum that was found last
};

static void sums_free(struct sums *s)
{
	vec_each (s, sum) {
		free(sum->origin);
		free(sum->list);
	}
	vec_free(s);
}

static int compare_sums(const struct sum *sum, const char *origin, const char *list,
			const char *verb)
{
	int order = strcmp(sum->list, list);

	if (!order)
		order = strcmp(sum->origin, origin);
	return order ? order : strcmp(verb, sum->verb); // block before allow
}

static struct sum *insert(struct sums *s, size_t at, const char *origin, const char *list,
			  const char *verb)
{
	vec_push(s, (struct sum){0});
	memmove(s->at + at + 1, s->at + at, (s->n - 1 - at) * sizeof(*s->at));
	s->at[at] =
		(struct sum){.origin = mem_strdup(origin), .list = mem_strdup(list), .verb = verb};
	return &s->at[at];
}

// The sum of this owner, which is made if it does not exist. Neighbours mostly have the same owner.
static struct sum *find(struct sums *s, const char *origin, const char *list, const char *verb)
{
	size_t low = 0, high = s->n;

	if (s->hint < s->n && !compare_sums(&s->at[s->hint], origin, list, verb))
		return &s->at[s->hint];
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_sums(&s->at[middle], origin, list, verb) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	s->hint = low;
	if (low < s->n && !compare_sums(&s->at[low], origin, list, verb))
		return &s->at[low];
	return insert(s, low, origin, list, verb);
}

// Adds the entry, unless another reference of the same owner has.
static void add(struct sum *sum, const struct entry *entry, size_t number)
{
	if (sum->last == number)
		return;
	sum->last = number;
	sum->entries++;
	sum->packets += entry->packets;
	sum->bytes += entry->bytes;
}

static void add_entry(struct sums *origins, struct sums *lists, const struct entry *entry,
		      size_t number)
{
	const char *verb = kind_verb(entry->kind);

	vec_each (&entry->references, reference) {
		const struct owner *owner = reference->owner;

		add(find(origins, owner->origin, "", verb), entry, number);
		if (owner->list[0])
			add(find(lists, owner->origin, owner->list, verb), entry, number);
	}
}

static void show_sum(struct out *o, const struct sum *sum)
{
	out_row(o);
	if (sum->list[0])
		out_cell(o, "list", "LIST", sum->list);
	out_set_string(o, "origin", sum->origin);
	out_cell(o, NULL, "ORIGIN", sum->origin[0] ? sum->origin : "(none)");
	out_cell(o, "verb", "VERB", sum->verb);
	out_tint(o, strcmp(sum->verb, "block") ? OUT_GREEN : OUT_RED);
	out_cell_u64(o, "entries", "ENTRIES", sum->entries);
	out_cell_u64(o, "packets", "PACKETS", sum->packets);
	out_cell_u64(o, "bytes", "BYTES", sum->bytes);
}

static void show_sums(struct out *o, const char *key, const struct sums *sums)
{
	out_table(o, key);
	vec_each (sums, sum)
		show_sum(o, sum);
	out_table_end(o);
}

int stats_owners_show(struct context *ctx, struct err *err)
{
	CLEANUP(sums_free) struct sums origins = {0}, lists = {0};
	CLEANUP_STORE struct store *store = NULL;
	CLEANUP_ENTRIES struct entries entries = {0};
	const struct entry *entry;
	size_t number = 0;
	int code = store_read(ctx->instance, &store, err);

	if (code)
		return code;
	show_damage(&store->damaged);
	entries = entries_of(store);
	while ((entry = entries_next(&entries))) {
		if ((code = entries_count(&entries, err)))
			return code;
		add_entry(&origins, &lists, entry, ++number);
	}
	show_sums(ctx->out, "origins", &origins);
	show_sums(ctx->out, "lists", &lists);
	return 0;
}
