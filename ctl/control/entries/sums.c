// SPDX-License-Identifier: GPL-2.0-only
// Finds the sum of an owner. Neighbours mostly have the same owner.
#include "ctl/control/entries/sums.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/kinds.h"

void owner_sums_free(struct owner_sums *s)
{
	vec_each (s, sum) {
		free(sum->origin);
		free(sum->list);
	}
	vec_free(s);
}

static int compare_sums(const struct owner_sum *sum, const char *origin, const char *list,
			const char *verb)
{
	int order = strcmp(sum->list, list);

	if (!order)
		order = strcmp(sum->origin, origin);
	return order ? order : strcmp(verb, sum->verb); // block before allow
}

static struct owner_sum *insert(struct owner_sums *s, size_t at, const char *origin,
				const char *list, const char *verb)
{
	vec_push(s, (struct owner_sum){0});
	memmove(s->at + at + 1, s->at + at, (s->n - 1 - at) * sizeof(*s->at));
	s->at[at] = (struct owner_sum){
		.origin = mem_strdup(origin), .list = mem_strdup(list), .verb = verb};
	return &s->at[at];
}

// The sum of this owner, which is made if it does not exist.
static struct owner_sum *find(struct owner_sums *s, const char *origin, const char *list,
			      const char *verb)
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
static void add(struct owner_sum *sum, const struct entry *entry, size_t number,
		const struct counter *moved)
{
	if (sum->last == number)
		return;
	sum->last = number;
	sum->entries++;
	sum->total.packets += entry->kernel.hits.packets;
	sum->total.bytes += entry->kernel.hits.bytes;
	if (!moved)
		return;
	sum->moved.packets += moved->packets;
	sum->moved.bytes += moved->bytes;
}

void owner_sums_add(struct owner_sums *origins, struct owner_sums *lists, const struct entry *entry,
		    size_t number, const struct counter *moved)
{
	const char *verb = kind_verb(entry->kernel.kind);

	vec_each (&entry->references, reference) {
		const struct owner *owner = reference->owner;

		add(find(origins, owner->origin, "", verb), entry, number, moved);
		if (owner->list[0])
			add(find(lists, owner->origin, owner->list, verb), entry, number, moved);
	}
}
