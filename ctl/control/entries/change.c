// SPDX-License-Identifier: GPL-2.0-only
// Commands in an open store, from their records to the commit and the numbers for their reports.
#include "ctl/control/entries/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/base/progress.h"
#include "ctl/control/entries/store_parts.h"
#include "ctl/control/feed_lists.h"
#include "ctl/control/need_attached.h"
#include "ctl/control/recover.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/outgoing.h"

static void free_left(struct entry_change *c)
{
	vec_each (&c->left, l) {
		free(l->owner.origin);
		free(l->owner.list);
		free(l->owner.name);
		free(l->owner.note);
		free(l->owner.by);
	}
}

void change_free(struct entry_change *c)
{
	vec_each (&c->overruled, one)
		free(one->name);
	vec_free(&c->overruled);
	free_left(c);
	vec_free(&c->left);
	vec_free(&c->groups);
	targets_free(&c->targets);
}

void changed_free(struct entries_changed *c)
{
	instance_free(TAKE_PTR(c->instance));
}

// ---- recording an addition ----------------------------------------------------------------------

static size_t list_size(const struct store *b, const char *list)
{
	size_t n = 0;

	vec_each (&b->records.list, record)
		n += !strcmp(b->records.owners.at[record->owner].list, list);
	return n;
}

// A list that shrinks to less than half is more often a broken download than an intended change.
static int check_shrink(const struct entry_change *c, size_t before, struct err *err)
{
	size_t after = c->listed;

	if (c->force || !c->done.removed || after * 2 > before)
		return 0;
	err_refused(err, "list '%s' would shrink from %zu to %zu %s", c->intent.list, before, after,
		    num_plural(after, "entry", "entries"));
	err_hint(err, "--force accepts it");
	return -EPERM;
}

// The allow kinds that beat these block kinds: those of packets, or of calls.
static unsigned kinds_beating(unsigned kinds)
{
	return (kinds & kinds_of(false, true, true) ? kinds_of(true, true, true) : 0) |
	       (kinds & kinds_out(false) ? kinds_out(true) : 0);
}

static void find_overruled(struct entry_change *c, const struct store *b)
{
	unsigned beating = kinds_beating(c->intent.kinds);

	for (; c->overruled.n; c->overruled.n--)
		free(vec_last(&c->overruled)->name);
	if (c->intent.allow)
		return;
	vec_each (&c->targets.items.items, item)
		for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
			const struct reference *allow;
			size_t n = 0;

			if (item->name || !(beating >> kind & 1) ||
			    !(allow = records_find(&b->records, &item->prefix, kind, &n)))
				continue;
			vec_push(&c->overruled,
				 ((struct change_overruled){
					 item->prefix, overlay_is_out(kind),
					 mem_strdup(b->records.owners.at[allow->owner].name)}));
		}
}

static int record_addition(struct entry_change *c, struct store *b, struct err *err)
{
	bool list = c->intent.list[0];
	int code = targets_load(&c->targets, &c->intent, b, err);
	size_t before;

	if (code)
		return code;
	if (c->lease_s) {
		c->intent.now_s = b->clock.wall_ms / 1000;
		c->intent.until_s = c->intent.now_s + c->lease_s;
	}
	before = list ? list_size(b, c->intent.list) : 0;
	targets_record(&c->targets, &c->intent, b, &c->done);
	if (!list)
		return 0;
	c->listed = list_size(b, c->intent.list);
	return check_shrink(c, before, err);
}

// ---- recording a removal ------------------------------------------------------------------------

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

// Only what --out or --out-only adds.
static bool removes_calls(const struct entry_change *c)
{
	return c->intent.kinds & kinds_out(c->intent.allow) &&
	       c->intent.kinds != kinds_all(c->intent.allow);
}

// The same without WHAT: then an entry of packets is the half of an entry of calls.
static bool removes_halves(const struct entry_change *c)
{
	return c->scope != SCOPE_TARGETS && removes_calls(c);
}

// Does the owner of the record refer to its prefix by one of these kinds, too?
static bool has_other_half(const struct records *r, const struct reference *record, unsigned kinds)
{
	const struct owner *own = &r->owners.at[record->owner];

	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
		const struct reference *other;
		size_t n = 0;

		if (!(kinds & 1u << kind) || !(other = records_find(r, &record->prefix, kind, &n)))
			continue;
		for (size_t k = 0; k < n; k++)
			if (!records_compare_owners(&r->owners.at[other[k].owner], own))
				return true;
	}
	return false;
}

static bool is_meant(const struct entry_change *c, const struct records *r,
		     const struct reference *record, const char *name)
{
	unsigned calls = kinds_out(c->intent.allow);

	if (!(c->intent.kinds >> record->kind & 1) ||
	    (c->scope != SCOPE_EVERYBODY && !is_own(c, &r->owners.at[record->owner], name)))
		return false;
	return !removes_halves(c) || calls >> record->kind & 1 || has_other_half(r, record, calls);
}

// Every prefix for which we have a reference; name NULL: by any name.
static void collect_held(const struct entry_change *c, const struct store *b, const char *name,
			 struct meant_list *ret)
{
	vec_each (&b->records.list, record)
		if (is_meant(c, &b->records, record, name))
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
static void collect_meant(const struct entry_change *c, const struct store *b,
			  struct meant_list *ret)
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

static size_t unrecord_halves(const struct entry_change *c, struct records *r)
{
	CLEANUP_FREE bool *marked = mem_zalloc(r->list.n, sizeof(bool));

	for (size_t i = 0; i < r->list.n; i++)
		marked[i] = is_meant(c, r, &r->list.at[i], NULL);
	return records_drop(r, marked);
}

static size_t unrecord(const struct entry_change *c, struct store *b)
{
	struct owner who = {.origin = (char *)c->intent.origin, .list = (char *)c->intent.list};
	size_t removed = 0;

	if (removes_halves(c))
		return unrecord_halves(c, &b->records);
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

static int load_removal(const struct entry_change *c, struct store *b, struct err *err)
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

static int record_removal(struct entry_change *c, struct store *b, struct err *err)
{
	CLEANUP_VEC struct meant_list meant = {0};
	int code = load_removal(c, b, err);

	if (code)
		return code;
	collect_meant(c, b, &meant);
	if ((code = load_covering(&meant, b, err)))
		return code;
	c->done.removed = unrecord(c, b);
	if ((code = store_regroup(b, err)))
		return code;
	vec_each (&meant, m)
		keep_cover(c, b, m);
	return 0;
}

// ---- recording all ------------------------------------------------------------------------------

// False: a command has failed.
static bool record_all(const struct entry_changes *c, struct store *b)
{
	bool later = false, good = true;

	for (size_t n = 0; n < c->n; n++) {
		struct entry_change *one = c->at[n];
		struct err err = {0};

		if (one->failed)
			continue;
		if (later)
			store_next(b);
		later = true;
		if (!(one->removes ? record_removal(one, b, &err) : record_addition(one, b, &err)))
			continue;
		c->failed(c->ctx, n, &err);
		good = false;
	}
	return good;
}

// Compares a list before the lock is taken: if little has changed, comparing costs much more than
// changing. NULL: the lock is needed, or an error occurred, which is found again under the lock.
static struct store *draft_list(const struct entry_changes *c)
{
	CLEANUP_STORE struct store *draft = NULL;
	struct err err = {0};

	if (c->n != 1 || c->at[0]->removes || !c->at[0]->intent.list[0] || c->dry_run ||
	    !bpffs_exist(c->instance) || store_draft(c->instance, &draft, &err) ||
	    record_addition(c->at[0], draft, &err))
		return NULL;
	find_overruled(c->at[0], draft);
	store_reduce(draft);
	return TAKE_PTR(draft);
}

// ---- committing ---------------------------------------------------------------------------------

static bool blocks_out(const struct entry_change *c)
{
	return !c->failed && !c->removes && c->intent.kinds & kinds_out(false);
}

// Before the commit, so that a machine without cgroup 2 refuses the command: programs without an
// entry refuse nothing, and the next commit detaches them.
static int attach_outgoing(const struct entry_changes *c, const struct store *b, struct err *err)
{
	bool any = false, whole = true;
	int code;

	for (size_t n = 0; n < c->n; n++)
		any |= blocks_out(c->at[n]);
	if (!any)
		return 0;
	if ((code = outgoing_attach(b->instance, &whole, err)))
		return code;
	for (size_t n = 0; n < c->n; n++)
		c->at[n]->whole = whole;
	return 0;
}

// The first command that adds something: the instance must be attached then.
static const struct entry_change *first_addition(const struct entry_changes *c)
{
	for (size_t n = 0; n < c->n; n++)
		if (!c->at[n]->failed && !c->at[n]->removes)
			return c->at[n];
	return NULL;
}

static int open_store(const struct entry_changes *c, struct store **ret, struct err *err)
{
	const struct entry_change *adds = first_addition(c);
	int code;

	if (!bpffs_exist(c->instance))
		return not_attached(c->instance, adds ? adds->verb : "undo", err);
	if ((code = store_open(c->instance, c->command, ret, err)) || !adds)
		return code;
	// Interfaces of an expired trial pass everything, so entries would have no effect there.
	if (!c->dry_run && (code = recover_trial((*ret)->instance, err)))
		return code;
	return need_attached((*ret)->instance, adds->verb, err);
}

// A list that is removed as a whole follows no feed any more. No feed blocks calls.
static void forget_feeds(const struct entry_changes *c)
{
	for (size_t n = 0; n < c->n; n++) {
		const struct entry_change *one = c->at[n];
		bool all = one->scope == SCOPE_EVERYBODY;

		if (!one->failed && one->removes && one->scope != SCOPE_TARGETS &&
		    !removes_calls(one))
			feed_lists_forget(c->instance, one->intent.allow,
					  all ? NULL : one->intent.origin,
					  one->scope == SCOPE_LIST ? one->intent.list : NULL);
	}
}

static int commit(const struct entry_changes *c, struct store *b, struct err *err)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	bool any = false, fleeting = true;
	int code;

	for (size_t n = 0; n < c->n; n++) {
		const struct entry_change *one = c->at[n];

		if (one->failed || (one->removes && !one->done.removed))
			continue;
		any = true;
		fleeting &= one->intent.fleeting;
		if (one->intent.group)
			b->guard = c->guard;
	}
	if (any && (code = attach_outgoing(c, b, err)))
		return code;
	if (any && (code = store_commit(b, fleeting, &plan, err)))
		return code;
	forget_feeds(c);
	if (c->committed)
		c->committed(c->ctx);
	return 0;
}

// ---- the result ---------------------------------------------------------------------------------

// Returns when the entry of the only target expires, since another reference may keep it longer.
// With both directions it is the earlier of the two times.
static uint64_t stays_until(const struct entry_change *c, const struct store *b)
{
	const struct item *item = c->targets.items.items.at;
	uint64_t all = UINT64_MAX;

	if (c->targets.items.items.n != 1 || item->name)
		return c->intent.until_s;
	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
		uint64_t latest = c->intent.until_s;
		const struct reference *record;
		size_t n = 0;

		if (!(c->intent.kinds & 1u << kind))
			continue;
		record = records_find(&b->records, &item->prefix, kind, &n);
		for (size_t k = 0; record && k < n; k++)
			latest = record[k].until_s > latest ? record[k].until_s : latest;
		all = latest < all ? latest : all;
	}
	return all;
}

// Returns the group of the origin that the host is in now; NULL: none.
static const struct reference *group_of(const struct entry_change *c, const struct store *b,
					const struct item *item)
{
	for (uint8_t kind = 0; !item->name && kind < OVERLAY_KINDS; kind++) {
		size_t n = 0;
		const struct reference *record = records_find(&b->records, &item->prefix, kind, &n);

		for (size_t k = 0; k < n; k++) {
			const char *origin = b->records.owners.at[record[k].owner].origin;
			const struct reference *group =
				records_group_of(&b->records, &b->records.list, &record[k]);

			if (group && !strcmp(origin, c->intent.origin))
				return group;
		}
	}
	return NULL;
}

// Collects the groups in the order of the records, without duplicates.
static void find_groups(struct entry_change *c, const struct store *b)
{
	const struct reference *first = NULL;

	vec_each (&c->targets.items.items, item) {
		const struct reference *group = group_of(c, b, item);

		if (!group)
			continue;
		vec_push(&c->groups, group->prefix);
		first = first && first < group ? first : group;
	}
	prefixes_sort(&c->groups);
	c->hosts = first ? records_group_size(&b->records, &b->records.list, first) : 0;
}

// Without the lock: it takes a while for a long list.
static void note_result(struct entry_change *c, bool adopted, const struct store *b)
{
	if (c->removes)
		return;
	if (!adopted)
		find_overruled(c, b);
	c->until_s = stays_until(c, b);
	if (c->intent.group)
		find_groups(c, b);
}

int entries_change(const struct entry_changes *c, struct entries_changed *ret, struct err *err)
{
	CLEANUP_PROGRESS unsigned operation = progress_begin("changing entries");
	CLEANUP_STORE struct store *draft = draft_list(c), *store = NULL;
	bool adopted, good;
	int code = open_store(c, &store, err);

	if (store)
		ret->damaged = store->damaged;
	if (code)
		return code;
	adopted = draft && store_adopt(store, draft);
	good = adopted || record_all(c, store);
	if ((code = store_gather(store, err)))
		return code;
	if (good && !c->dry_run && (code = commit(c, store, err)))
		return code;
	store_unlock(store);
	for (size_t n = 0; n < c->n; n++)
		note_result(c->at[n], adopted, store);
	ret->unsaved = store->unsaved;
	ret->instance = TAKE_PTR(store->instance);
	return 0;
}
