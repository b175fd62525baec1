// SPDX-License-Identifier: GPL-2.0-only
// Reads what weir list is to show, and tests entries.
#include "ctl/cmd/list_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/best.h"
#include "ctl/base/diag_nearest.h"
#include "ctl/base/num.h"
#include "ctl/cmd/overlay_options.h"

// Numbers that are smaller for an earlier entry.
static uint64_t by_packets(const struct entry *entry)
{
	return UINT64_MAX - entry->kernel.hits.packets;
}

static uint64_t by_bytes(const struct entry *entry)
{
	return UINT64_MAX - entry->kernel.hits.bytes;
}

static uint64_t by_age(const struct entry *entry)
{
	return UINT64_MAX - entry->since_s;
}

static uint64_t by_left(const struct entry *entry)
{
	return entry->until_s;
}

struct choice_order {
	const char *name;
	uint64_t (*rank)(const struct entry *entry);
	bool counts; // depends on the counters
};

static const struct choice_order orders[] = {
	{"packets", by_packets, true},
	{"bytes", by_bytes, true},
	{"age", by_age, false},
	{"left", by_left, false},
};

static int read_order(const struct args *args, struct list_choice *ret, struct err *err)
{
	const char *name = args_value(args, "sort"), *names[ARRAY_SIZE(orders)], *near;

	ret->order = args_has(args, "top") ? &orders[0] : NULL;
	if (!name)
		return 0;
	for (size_t o = 0; o < ARRAY_SIZE(orders); o++) {
		names[o] = orders[o].name;
		if (strcmp(name, orders[o].name))
			continue;
		ret->order = &orders[o];
		return 0;
	}
	near = diag_nearest(name, names, ARRAY_SIZE(names));
	err_input(err, "invalid --sort '%s': packets, bytes, age or left", name);
	return near ? err_hint(err, "did you mean '%s'?", near) : -EINVAL;
}

static int read_top(const struct args *args, struct list_choice *ret, struct err *err)
{
	const char *text = args_value(args, "top");
	uint64_t n = BEST_ALL;

	if (text && num_parse_u64(text, strlen(text), 1, SIZE_MAX - 1, &n)) {
		err_input(err, "--top '%s' is not a number of entries", text);
		return err_hint(err, "write 1 or more, for example --top 10");
	}
	ret->top = (size_t)n;
	return 0;
}

// A plain line does not name the verb: it is block unless the user names another one. Nor does it
// show that it is of outgoing connections: those are listed on their own.
static unsigned read_kinds(const struct args *args)
{
	bool allowed = args_has(args, "allowed"), blocked = args_has(args, "blocked");
	bool out = args_has(args, "out"), plain = args_has(args, "plain");
	unsigned allow = out     ? kinds_out(true)
			 : plain ? kinds_of(true, true, true)
				 : kinds_all(true);
	unsigned block = out     ? kinds_out(false)
			 : plain ? kinds_of(false, true, true)
				 : kinds_all(false);

	if (allowed == blocked)
		return plain && !allowed ? block : allow | block;
	return allowed ? allow : block;
}

static int read_owner(const struct args *args, const char *option, const char **ret,
		      struct err *err)
{
	return args_has(args, option) ? overlay_text(args, option, ret, err) : 0;
}

static int read_whats(const struct args *args, struct list_choice *ret, struct err *err)
{
	for (size_t w = 0; w < args->words.n;) {
		struct choice_what what = {.word = args->words.at[w], .first = ret->items.items.n};

		w += items_add_words(&ret->items, args->words.at + w, args->words.n - w);
		if (ret->items.error_count)
			return err_input(err, "%s", ret->items.errors.at[0].text);
		what.end = ret->items.items.n;
		if (ret->items.items.at[what.first].name)
			what.word = ret->items.items.at[what.first].name;
		vec_push(&ret->whats, what);
	}
	vec_each (&ret->items.items, item)
		vec_push(&ret->names, item->name ? target_name(item->name) : NULL);
	return 0;
}

int choice_read(const struct args *args, struct list_choice *ret, struct err *err)
{
	int code = read_order(args, ret, err);

	if (code)
		return code;
	if ((code = read_top(args, ret, err)))
		return code;
	if ((code = read_owner(args, "origin", &ret->origin, err)))
		return code;
	if ((code = read_owner(args, "list", &ret->list, err)))
		return code;
	ret->kinds = read_kinds(args);
	return read_whats(args, ret, err);
}

void choice_free(struct list_choice *c)
{
	vec_each (&c->names, name)
		free(*name);
	vec_free(&c->names);
	vec_free(&c->whats);
	items_free(&c->items);
}

static bool is_owner(const struct list_choice *c, const struct owner *owner)
{
	return (!c->origin || !strcmp(owner->origin, c->origin)) &&
	       (!c->list || !strcmp(owner->list, c->list));
}

// Whether one of its owners is meant; name NULL: whatever the host name is.
static bool has_owner(const struct list_choice *c, const struct entry *entry, const char *name)
{
	vec_each (&entry->references, reference)
		if (is_owner(c, reference->owner) &&
		    (!name || !strcmp(reference->owner->name, name)))
			return true;
	return false;
}

// A prefix names the entries in it and around it: all that decide about its packets.
static bool is_named(const struct list_choice *c, const struct choice_what *what,
		     const struct entry *entry)
{
	for (size_t i = what->first; i < what->end; i++)
		if (c->names.at[i]
			    ? has_owner(c, entry, c->names.at[i])
			    : prefix_overlaps(&c->items.items.at[i].prefix, &entry->kernel.prefix))
			return true;
	return false;
}

bool choice_wants(const void *choice, const struct prefix *p, uint8_t kind)
{
	const struct list_choice *c = choice;

	if (!(c->kinds & 1u << kind))
		return false;
	for (size_t i = 0; i < c->items.items.n; i++)
		if (c->names.at[i] || prefix_overlaps(&c->items.items.at[i].prefix, p))
			return true;
	return !c->items.items.n;
}

bool choice_takes(struct list_choice *c, const struct entry *entry)
{
	bool named = !c->whats.n;

	if ((c->origin || c->list) && !has_owner(c, entry, NULL))
		return false;
	vec_each (&c->whats, what) {
		if (!is_named(c, what, entry))
			continue;
		what->found = true;
		named = true;
	}
	return named;
}

bool choice_counts(const struct list_choice *c)
{
	return c->order->counts;
}

uint64_t choice_rank(const struct list_choice *c, const struct entry *entry)
{
	return c->order->rank(entry);
}

int choice_missed(const struct list_choice *c, const char *instance, struct err *err)
{
	const char *first = NULL;
	size_t n = 0;

	vec_each (&c->whats, what) {
		if (what->found)
			continue;
		first = first ? first : what->word;
		n++;
	}
	if (!n)
		return 0;
	err_input(err, "no entry for '%s' in instance %s", first, instance);
	if (n > 1)
		err_hint(err, "and %zu more without an entry", n - 1);
	return -ENOENT;
}
