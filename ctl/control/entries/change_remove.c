// SPDX-License-Identifier: GPL-2.0-only
// Removes references, with what still applies to the prefixes that should be free.
#include "ctl/control/entries/change_remove.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/control/entries/store_parts.h"

// A prefix that was meant, and whether we had a claim on it.
struct meant {
	struct prefix prefix;
	bool owned;
};

struct meant_list {
	struct meant *at;
	size_t n, cap;
};

static bool is_own(const struct entry_change *c, const struct owner *h, const char *name)
{
	return !strcmp(h->origin, c->intent.origin) &&
	       (c->scope == SCOPE_ORIGIN ||
		(!strcmp(h->list, c->intent.list) && (!name || !strcmp(h->name, name))));
}

// Every prefix for which we have a reference; name NULL: by any name.
static void collect_held(const struct entry_change *c, const struct store *b, const char *name,
			 struct meant_list *ret)
{
	vec_each (&b->records.list, record)
		if (c->intent.kinds & 1u << record->kind &&
		    is_own(c, &b->records.owners.at[record->owner], name))
			vec_push(ret, ((struct meant){record->prefix, true}));
}

static bool owns_prefix(const struct entry_change *c, const struct store *b, const struct prefix *p)
{
	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
		const struct reference *record;
		size_t n = 0;

		if (!(c->intent.kinds & 1u << kind) ||
		    !(record = records_find(&b->records, p, kind, &n)))
			continue;
		for (size_t k = 0; k < n; k++)
			if (is_own(c, &b->records.owners.at[record[k].owner], ""))
				return true;
	}
	return false;
}

// The prefixes that should be free afterwards; their owners are known only before.
static void collect(const struct entry_change *c, const struct store *b, struct meant_list *ret)
{
	if (c->scope == SCOPE_ORIGIN || c->scope == SCOPE_LIST)
		collect_held(c, b, NULL, ret);
	vec_each (&c->targets.items.items, item) {
		CLEANUP_FREE char *name = item->name ? target_name(item->name) : NULL;

		if (name)
			collect_held(c, b, name, ret);
		else
			vec_push(ret,
				 ((struct meant){item->prefix, owns_prefix(c, b, &item->prefix)}));
	}
}

// Finds the entry that still covers an address after the change: preferably of the same origin,
// else the widest.
struct cover {
	const struct entry_change *change;
	const struct store *store;
	const struct reference *record;
	const struct owner *owner;
	bool same_origin;
};

static void see_record(void *ctx, const struct reference *record)
{
	struct cover *v = ctx;
	const struct owner *h = &v->store->records.owners.at[record->owner];
	bool same = !strcmp(h->origin, v->change->intent.origin);

	if (!(v->change->intent.kinds & 1u << record->kind) ||
	    (v->record && same <= v->same_origin))
		return;
	v->record = record;
	v->owner = h;
	v->same_origin = same;
}

// Is it a failure that an address stays blocked? A command with an origin removes the references of
// that origin, and others may remain. A command without one should free the address: it fails if it
// removed no reference, or if the user has another one.
static bool disappoints(const struct entry_change *c, const struct meant *meant,
			const struct cover *v)
{
	return !c->intent.origin[0] && (!meant->owned || v->same_origin);
}

static struct owner copy_owner(const struct owner *h)
{
	return (struct owner){
		.origin = mem_strdup(h->origin),
		.list = mem_strdup(h->list),
		.name = mem_strdup(h->name),
		.note = mem_strdup(h->note),
		.by = mem_strdup(h->by),
	};
}

void change_free_left(struct entry_change *c)
{
	vec_each (&c->left, l) {
		free(l->owner.origin);
		free(l->owner.list);
		free(l->owner.name);
		free(l->owner.note);
		free(l->owner.by);
	}
}

static void keep_cover(struct entry_change *c, const struct store *b, const struct meant *meant)
{
	struct cover v = {.change = c, .store = b};

	records_covering(&b->records, &meant->prefix, see_record, &v);
	if (!v.record)
		return;
	vec_push(&c->left, ((struct change_left){
				   .meant = meant->prefix,
				   .by = *v.record,
				   .owner = copy_owner(v.owner),
				   .failure = disappoints(c, meant, &v),
			   }));
}

static size_t unrecord(const struct entry_change *c, struct store *b)
{
	struct owner who = {.origin = (char *)c->intent.origin, .list = (char *)c->intent.list};
	size_t removed = 0;

	switch (c->scope) {
	case SCOPE_TARGETS:
		targets_unrecord(&c->targets, &c->intent, b, &removed);
		break;
	case SCOPE_LIST:
		records_remove(&b->records, &who, c->intent.kinds, NULL, 0, &removed);
		break;
	case SCOPE_ORIGIN:
		records_remove_origin(&b->records, c->intent.origin, c->intent.kinds, &removed);
		break;
	case SCOPE_EVERYBODY:
		records_remove_origin(&b->records, NULL, c->intent.kinds, &removed);
		break;
	}
	return removed;
}

static int load(const struct entry_change *c, struct store *b, struct err *err)
{
	if (c->scope == SCOPE_TARGETS || c->scope == SCOPE_LIST)
		return targets_load(&c->targets, &c->intent, b, err);
	return store_load_all(b, err);
}

// Entries that may still apply to an address afterwards.
static int load_covering(const struct meant_list *meant, struct store *b, struct err *err)
{
	CLEANUP_VEC VEC(struct prefix) prefixes = {0};

	vec_each (meant, m)
		vec_push(&prefixes, m->prefix);
	return store_load_covering(b, prefixes.at, prefixes.n, err);
}

int change_remove(struct entry_change *c, struct store *b, struct err *err)
{
	CLEANUP_VEC struct meant_list meant = {0};
	int code = load(c, b, err);

	if (code)
		return code;
	collect(c, b, &meant);
	if ((code = load_covering(&meant, b, err)))
		return code;
	c->done.removed = unrecord(c, b);
	if ((code = store_regroup(b, err)))
		return code;
	vec_each (&meant, m)
		keep_cover(c, b, m);
	return 0;
}
