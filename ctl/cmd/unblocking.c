// SPDX-License-Identifier: GPL-2.0-only
// Reads and records one command unblock or unallow, and finds what still applies to its targets.
#include "ctl/cmd/unblocking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/sets.h"
#include "ctl/cmd/show.h"

// All entries of a list or an origin are selected by --all, or by --sync or --origin without a
// target.
static int read_scope(const struct args *args, struct unblocking *r, struct err *err)
{
	bool all = args_has(args, "all"), named = r->targets.items.items.n;

	if (all && (named || r->intent.list[0] || args_has(args, "set")))
		return err_input(err,
				 "--all can be combined with --origin, --to and --dry-run only");
	if (named)
		r->scope = SCOPE_TARGETS;
	else if (r->intent.list[0])
		r->scope = SCOPE_LIST;
	else if (r->intent.origin[0])
		r->scope = SCOPE_ORIGIN;
	else if (all)
		r->scope = SCOPE_EVERYBODY;
	else
		return err_input(err,
				 "missing WHAT to %s: an address, a prefix, a host name, -f FILE, "
				 "--origin NAME, --sync NAME, or --all",
				 r->intent.allow ? "unallow" : "unblock");
	return 0;
}

// A host could have this name, but the user means --all.
static int refuse_all(const struct unblocking *r, struct err *err)
{
	const char *verb = r->intent.allow ? "unallow" : "unblock";

	vec_each (&r->targets.items.items, item) {
		if (!item->name || item->line || strcmp(item->name, "all"))
			continue;
		err_input(err, "'all' is not an address");
		return err_hint(err, "weir %s --all removes all entries", verb);
	}
	return 0;
}

int unblocking_read(const struct args *args, bool allow, struct unblocking *r, struct err *err)
{
	size_t bad;
	int code = sets_check_options(args, err);

	if (code)
		return code;
	r->dry_run = args_has(args, "dry-run");
	r->fleeting = args_has(args, "volatile");
	r->intent = (struct intent){
		.allow = allow, .now_s = (uint64_t)time(NULL), .note = "", .by = ""};
	code = overlay_kinds(args, allow, kinds_of(allow, true, true), &r->intent.kinds, err);
	if (code)
		return code;
	if ((code = overlay_text(args, "origin", &r->intent.origin, err)))
		return code;
	if ((code = overlay_text(args, "sync", &r->intent.list, err)))
		return code;
	if ((code = overlay_read_targets(args, false, false, &r->targets, &bad, err)))
		return code;
	code = refuse_all(r, err);
	return code ? code : read_scope(args, r, err);
}

// A prefix that was meant, and whether we had a claim on it.
struct meant {
	struct prefix prefix;
	bool owned;
};

struct meant_list {
	struct meant *at;
	size_t n, cap;
};

static bool is_own(const struct unblocking *r, const struct owner *h, const char *name)
{
	return !strcmp(h->origin, r->intent.origin) &&
	       (r->scope == SCOPE_ORIGIN ||
		(!strcmp(h->list, r->intent.list) && (!name || !strcmp(h->name, name))));
}

// Every prefix for which we have a reference; name NULL: by any name.
static void collect_held(const struct unblocking *r, const struct store *b, const char *name,
			 struct meant_list *ret)
{
	vec_each (&b->records.list, record)
		if (r->intent.kinds & 1u << record->kind &&
		    is_own(r, &b->records.owners.at[record->owner], name))
			vec_push(ret, ((struct meant){record->prefix, true}));
}

static bool owns_prefix(const struct unblocking *r, const struct store *b, const struct prefix *p)
{
	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
		const struct reference *record;
		size_t n = 0;

		if (!(r->intent.kinds & 1u << kind) ||
		    !(record = records_find(&b->records, p, kind, &n)))
			continue;
		for (size_t k = 0; k < n; k++)
			if (is_own(r, &b->records.owners.at[record[k].owner], ""))
				return true;
	}
	return false;
}

// The prefixes that should be free afterwards; their owners are known only before.
static void collect(const struct unblocking *r, const struct store *b, struct meant_list *ret)
{
	if (r->scope == SCOPE_ORIGIN || r->scope == SCOPE_LIST)
		collect_held(r, b, NULL, ret);
	vec_each (&r->targets.items.items, item) {
		CLEANUP_FREE char *name = item->name ? target_name(item->name) : NULL;

		if (name)
			collect_held(r, b, name, ret);
		else
			vec_push(ret,
				 ((struct meant){item->prefix, owns_prefix(r, b, &item->prefix)}));
	}
}

// Finds the entry that still covers an address after the change: preferably of the same origin,
// else the widest.
struct cover {
	const struct unblocking *request;
	const struct store *store;
	const struct reference *record;
	const struct owner *owner;
	bool same_origin;
};

static void see_record(void *ctx, const struct reference *record)
{
	struct cover *c = ctx;
	const struct owner *h = &c->store->records.owners.at[record->owner];
	bool same = !strcmp(h->origin, c->request->intent.origin);

	if (!(c->request->intent.kinds & 1u << record->kind) ||
	    (c->record && same <= c->same_origin))
		return;
	c->record = record;
	c->owner = h;
	c->same_origin = same;
}

// Is it a failure that an address stays blocked? A command with an origin removes the references of
// that origin, and others may remain. A command without one should free the address: it fails if it
// removed no reference, or if the user has another one.
static bool disappoints(const struct unblocking *r, const struct meant *meant,
			const struct cover *c)
{
	return !r->intent.origin[0] && (!meant->owned || c->same_origin);
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

static void free_owner(struct owner *h)
{
	free(h->origin);
	free(h->list);
	free(h->name);
	free(h->note);
	free(h->by);
}

static void keep_cover(struct unblocking *r, const struct store *b, const struct meant *meant)
{
	struct cover c = {.request = r, .store = b};

	records_covering(&b->records, &meant->prefix, see_record, &c);
	if (!c.record)
		return;
	vec_push(&r->left, ((struct unblocking_left){
				   .meant = meant->prefix,
				   .by = *c.record,
				   .owner = copy_owner(c.owner),
				   .failure = disappoints(r, meant, &c),
			   }));
}

static void unrecord(const struct unblocking *r, struct store *b, size_t *ret_removed)
{
	struct owner who = {.origin = (char *)r->intent.origin, .list = (char *)r->intent.list};

	switch (r->scope) {
	case SCOPE_TARGETS:
		targets_unrecord(&r->targets, &r->intent, b, ret_removed);
		break;
	case SCOPE_LIST:
		records_remove(&b->records, &who, r->intent.kinds, NULL, 0, ret_removed);
		break;
	case SCOPE_ORIGIN:
		records_remove_origin(&b->records, r->intent.origin, r->intent.kinds, ret_removed);
		break;
	case SCOPE_EVERYBODY:
		records_remove_origin(&b->records, NULL, r->intent.kinds, ret_removed);
		break;
	}
}

static int load(const struct unblocking *r, struct store *store, struct err *err)
{
	if (r->scope == SCOPE_TARGETS || r->scope == SCOPE_LIST)
		return targets_load(&r->targets, &r->intent, store, err);
	return store_load_all(store, err);
}

// Entries that may still apply to an address afterwards.
static int load_covering(const struct meant_list *meant, struct store *store, struct err *err)
{
	CLEANUP_VEC VEC(struct prefix) prefixes = {0};

	vec_each (meant, m)
		vec_push(&prefixes, m->prefix);
	return store_load_covering(store, prefixes.at, prefixes.n, err);
}

int unblocking_record(struct unblocking *r, struct store *store, struct err *err)
{
	CLEANUP_VEC struct meant_list meant = {0};
	int code = load(r, store, err);

	if (code)
		return code;
	collect(r, store, &meant);
	if ((code = load_covering(&meant, store, err)))
		return code;
	unrecord(r, store, &r->removed);
	if ((code = store_regroup(store, err)))
		return code;
	vec_each (&meant, m)
		keep_cover(r, store, m);
	return 0;
}

// The removed items, in the words of the command line.
static void add_what(struct text *t, const struct unblocking *r)
{
	const struct item *item = r->targets.items.items.at;
	addr_text text;

	if (r->targets.items.items.n == 1)
		text_add(t, item->name ? item->name : prefix_format(&item->prefix, text));
	else
		text_addf(t, "%zu %s", r->removed, num_plural(r->removed, "entry", "entries"));
	if (r->intent.list[0])
		text_addf(t, " of list %s", r->intent.list);
	if (r->intent.origin[0])
		text_addf(t, " of origin %s", r->intent.origin);
}

void unblocking_describe(struct text *line, const struct unblocking *r, struct out *o)
{
	out_set_u64(o, "changed", r->removed);
	out_set_u64(o, "removed", r->removed);
	out_set_bool(o, "dry_run", r->dry_run);
	if (!r->removed && r->targets.items.items.n == 1)
		text_add(line, "nothing to remove for ");
	else if (r->dry_run)
		text_add(line, r->intent.allow ? "would unallow " : "would unblock ");
	else
		text_add(line, r->intent.allow ? "unallowed " : "unblocked ");
	add_what(line, r);
}

// The command that allows the target.
static void add_way(struct text *way, const struct unblocking *r, const struct unblocking_left *l,
		    const char *target)
{
	bool allow = r->intent.allow;
	addr_text wide;

	text_addf(way, "weir %s", allow ? "unallow" : "unblock");
	if (l->owner.origin[0])
		text_addf(way, " --origin %s", l->owner.origin);
	if (l->owner.list[0])
		text_addf(way, " --sync %s", l->owner.list);
	text_addf(way, " %s removes it",
		  l->owner.name[0] ? l->owner.name : prefix_format(&l->by.prefix, wide));
	if (!allow)
		text_addf(way, "; weir allow %s allows it", target);
}

// X stays blocked by something else: by what and by whom.
static void add_stays(struct text *t, const struct unblocking *r, const struct unblocking_left *l,
		      const char *target)
{
	CLEANUP_TEXT struct text who = {0};
	addr_text wide;

	show_owner(&who, &l->owner);
	text_addf(t, "%s stays %s: %s %s, by %s%s%s", target,
		  r->intent.allow ? "allowed" : "blocked", kind_text(l->by.kind),
		  prefix_format(&l->by.prefix, wide), l->owner.by[0] ? l->owner.by : "?",
		  who.len ? ", " : "", text_get(&who));
}

static int say_stays(const struct unblocking *r, const struct unblocking_left *l, struct err *err)
{
	CLEANUP_TEXT struct text stays = {0}, way = {0};
	size_t more = r->left.n - 1;
	addr_text target;

	add_stays(&stays, r, l, prefix_format(&l->meant, target));
	if (more)
		text_addf(&stays, "; so %s %zu more", more == 1 ? "does" : "do", more);
	add_way(&way, r, l, target);
	if (!l->failure) {
		log_warning("%s (%s)", text_get(&stays), text_get(&way));
		return 0;
	}
	err_refused(err, "%s", text_get(&stays));
	err_hint(err, "%s", text_get(&way));
	return -EPERM;
}

static void set_stays(struct out *o, const struct unblocking_left *l)
{
	addr_text text;

	out_row(o);
	out_cell(o, "address", NULL, prefix_format(&l->meant, text));
	out_cell(o, "kind", NULL, kind_key(l->by.kind));
	out_cell(o, "prefix", NULL, prefix_format(&l->by.prefix, text));
	out_cell(o, "by", NULL, l->owner.by);
	out_cell(o, "origin", NULL, l->owner.origin);
	out_cell(o, "list", NULL, l->owner.list);
	out_cell(o, "name", NULL, l->owner.name);
	out_cell(o, "note", NULL, l->owner.note);
}

int unblocking_report_left(const struct unblocking *r, struct out *o, struct err *err)
{
	const struct unblocking_left *worst = NULL;

	out_table(o, "stays");
	vec_each (&r->left, l) {
		set_stays(o, l);
		if (!worst || (l->failure && !worst->failure))
			worst = l;
	}
	out_table_end(o);
	return worst ? say_stays(r, worst, err) : 0;
}

void unblocking_free(struct unblocking *r)
{
	vec_each (&r->left, l)
		free_owner(&l->owner);
	vec_free(&r->left);
	targets_free(&r->targets);
}
