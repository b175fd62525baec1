// SPDX-License-Identifier: GPL-2.0-only
// weir unblock, weir unallow: remove entries, and report what still applies.
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/sets.h"
#include "ctl/cmd/show.h"
#include "ctl/datapath/bpffs.h"

// What is to be taken away.
enum scope {
	SCOPE_TARGETS,   // what was named
	SCOPE_LIST,      // all of --sync NAME
	SCOPE_ORIGIN,    // all of --origin NAME
	SCOPE_EVERYBODY, // --all
};

struct unblock_request {
	struct targets targets;
	struct intent intent;
	enum scope scope;
	bool dry_run;
	bool fleeting; // also where it cannot be saved
};

static void request_free(struct unblock_request *r)
{
	targets_free(&r->targets);
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

// What still covers an address after the change: rather something of the same origin, else the widest.
struct leftover {
	const struct unblock_request *request;
	const struct store *store;
	const struct record *record;
	const struct owner *owner;
	bool same_origin;
};

static void see_record(void *ctx, const struct record *record)
{
	struct leftover *l = ctx;
	const struct owner *h = &l->store->records.owners.at[record->owner];
	bool same = !strcmp(h->origin, l->request->intent.origin);

	if (!(l->request->intent.kinds & 1u << record->kind) ||
	    (l->record && same <= l->same_origin))
		return;
	l->record = record;
	l->owner = h;
	l->same_origin = same;
}

static struct leftover leftover_of(const struct unblock_request *r, const struct store *b,
				   const struct prefix *p)
{
	struct leftover l = {.request = r, .store = b};

	records_covering(&b->records, p, see_record, &l);
	return l;
}

// The command that allows the target.
static void add_way(struct text *way, const struct leftover *l, const char *target)
{
	const struct owner *h = l->owner;
	bool allow = l->request->intent.allow;
	addr_text wide;

	text_addf(way, "weir %s", allow ? "unallow" : "unblock");
	if (h->origin[0])
		text_addf(way, " --origin %s", h->origin);
	if (h->list[0])
		text_addf(way, " --sync %s", h->list);
	text_addf(way, " %s removes it",
		  h->name[0] ? h->name : prefix_format(&l->record->prefix, wide));
	if (!allow)
		text_addf(way, "; weir allow %s allows it", target);
}

static bool is_own(const struct unblock_request *r, const struct owner *h, const char *name)
{
	return !strcmp(h->origin, r->intent.origin) &&
	       (r->scope == SCOPE_ORIGIN ||
		(!strcmp(h->list, r->intent.list) && (!name || !strcmp(h->name, name))));
}

// Every prefix that is held by us; name NULL: by whatever name.
static void collect_held(const struct unblock_request *r, const struct store *b, const char *name,
			 struct meant_list *ret)
{
	vec_each (&b->records.list, record)
		if (r->intent.kinds & 1u << record->kind &&
		    is_own(r, &b->records.owners.at[record->owner], name))
			vec_push(ret, ((struct meant){record->prefix, true}));
}

static bool owns_prefix(const struct unblock_request *r, const struct store *b,
			const struct prefix *p)
{
	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
		const struct record *record;
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

// The prefixes that are meant to be free afterwards; who held them is known only before.
static void collect(const struct unblock_request *r, const struct store *b, struct meant_list *ret)
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

// X stays blocked by something else: by what and by whom.
static void add_stays(struct text *t, const struct leftover *l, const char *target)
{
	const struct owner *h = l->owner;
	struct text who = {0};
	addr_text wide;

	show_owner(&who, h);
	text_addf(t, "%s stays %s: %s %s, by %s%s%s", target,
		  l->request->intent.allow ? "allowed" : "blocked", kind_text(l->record->kind),
		  prefix_format(&l->record->prefix, wide), h->by[0] ? h->by : "?",
		  who.len ? ", " : "", text_get(&who));
	text_free(&who);
}

static void set_stays(struct out *o, const struct leftover *l, const char *target)
{
	addr_text wide;

	out_row(o);
	out_cell(o, "address", NULL, target);
	out_cell(o, "kind", NULL, kind_key(l->record->kind));
	out_cell(o, "prefix", NULL, prefix_format(&l->record->prefix, wide));
	out_cell(o, "by", NULL, l->owner->by);
	out_cell(o, "origin", NULL, l->owner->origin);
	out_cell(o, "list", NULL, l->owner->list);
	out_cell(o, "name", NULL, l->owner->name);
	out_cell(o, "note", NULL, l->owner->note);
}

// Is it a failure that an address stays blocked? Who names an origin gives back what that holds, and others
// may hold on. Who names none wants the address free: a failure is that he had no claim to give
// back, or that another one of his own is left.
static bool disappoints(const struct unblock_request *r, const struct meant *meant,
			const struct leftover *l)
{
	return !r->intent.origin[0] && (!meant->owned || l->same_origin);
}

static int say_stays(const struct leftover *l, const struct prefix *p, size_t more, bool failure,
		     struct err *err)
{
	struct text stays = {0}, way = {0};
	addr_text target;
	int code = 0;

	add_stays(&stays, l, prefix_format(p, target));
	if (more)
		text_addf(&stays, "; so %s %zu more", more == 1 ? "does" : "do", more);
	add_way(&way, l, target);
	if (failure) {
		code = err_refused(err, "%s", text_get(&stays));
		err_hint(err, "%s", text_get(&way));
	} else {
		log_warning("%s (%s)", text_get(&stays), text_get(&way));
	}
	text_free(&stays);
	text_free(&way);
	return code;
}

// Names what stays blocked: one address on standard error, before others one that is a failure.
static int report_leftovers(struct context *ctx, const struct unblock_request *r,
			    const struct store *b, const struct meant_list *meant, struct err *err)
{
	struct leftover worst = {0};
	struct prefix where = {0};
	bool failure = false;
	size_t n = 0;

	out_table(ctx->out, "stays");
	vec_each (meant, m) {
		struct leftover l = leftover_of(r, b, &m->prefix);
		addr_text target;

		if (!l.record)
			continue;
		set_stays(ctx->out, &l, prefix_format(&m->prefix, target));
		if (!n++ || (disappoints(r, m, &l) && !failure)) {
			worst = l;
			where = m->prefix;
			failure = disappoints(r, m, &l);
		}
	}
	out_table_end(ctx->out);
	return n ? say_stays(&worst, &where, n - 1, failure, err) : 0;
}

static void unrecord(const struct unblock_request *r, struct store *b, size_t *ret_removed)
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

// What was removed, in the words of the command line.
static void add_what(struct text *t, const struct unblock_request *r, size_t removed)
{
	const struct item *item = r->targets.items.items.at;
	addr_text text;

	if (r->targets.items.items.n == 1)
		text_add(t, item->name ? item->name : prefix_format(&item->prefix, text));
	else
		text_addf(t, "%zu %s", removed, num_plural(removed, "entry", "entries"));
	if (r->intent.list[0])
		text_addf(t, " of list %s", r->intent.list);
	if (r->intent.origin[0])
		text_addf(t, " of origin %s", r->intent.origin);
}

static void report(struct context *ctx, const struct unblock_request *r, size_t removed)
{
	CLEANUP_TEXT struct text line = {0};

	out_set_u64(ctx->out, "changed", removed);
	out_set_u64(ctx->out, "removed", removed);
	out_set_bool(ctx->out, "dry_run", r->dry_run);
	out_set_string(ctx->out, "instance", ctx->instance);
	if (!removed && r->targets.items.items.n == 1)
		text_add(&line, "nothing to remove for ");
	else if (r->dry_run)
		text_add(&line, r->intent.allow ? "would unallow " : "would unblock ");
	else
		text_add(&line, r->intent.allow ? "unallowed " : "unblocked ");
	add_what(&line, r, removed);
	if (!ctx->quiet)
		out_line(ctx->out, "%s in instance %s", text_get(&line), ctx->instance);
}

static int change_store(struct context *ctx, const struct unblock_request *r, struct err *err)
{
	CLEANUP_STORE struct store *store = NULL;
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	CLEANUP_VEC struct meant_list meant = {0};
	size_t removed = 0;
	int code = bpffs_exist(ctx->instance) ? store_open(ctx->instance, ctx->line, &store, err)
					      : not_attached(ctx->instance, "undo", err);

	if (code)
		return code;
	collect(r, store, &meant);
	unrecord(r, store, &removed);
	if (!r->dry_run && removed && (code = store_commit(store, r->fleeting, &plan, err)))
		return code;
	if (store->unsaved.code)
		log_warning("not saved: %s; the next attach may restore the removed entries",
			    store->unsaved.text);
	report(ctx, r, removed);
	return report_leftovers(ctx, r, store, &meant, err);
}

// All entries of a list or an origin are selected by --all, or by --sync or --origin without a target.
static int read_scope(const struct args *args, struct unblock_request *r, struct err *err)
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

static int read_request(struct context *ctx, const struct args *args, bool allow,
			struct unblock_request *r, struct err *err)
{
	size_t bad;
	int code;

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
	if ((code = overlay_read_targets(ctx, args, false, false, &r->targets, &bad, err)))
		return code;
	return read_scope(args, r, err);
}

static int run(struct context *ctx, const struct args *args, bool allow, struct err *err)
{
	CLEANUP(request_free) struct unblock_request r = {0};
	int code = bpffs_ready(err);

	if (code)
		return code;
	if ((code = sets_check_options(args, err)))
		return code;
	if ((code = read_request(ctx, args, allow, &r, err)))
		return code;
	if (args_has(args, "set"))
		return sets_change(ctx, args_value(args, "set"), &r.targets, &r.intent, true, err);
	return change_store(ctx, &r, err);
}

static int run_unblock(struct context *ctx, const struct args *args, struct err *err)
{
	return run(ctx, args, false, err);
}

static int run_unallow(struct context *ctx, const struct args *args, struct err *err)
{
	return run(ctx, args, true, err);
}

// clang-format off
static const struct args_option options[] = {
	OPTION_FILE,
	OPTION_WIDE,
	{.name = "to", .help = "only entries that match the destination"},
	{.name = "both", .help = "entries of both directions (default)"},
	OPTION_ORIGIN,
	{.name = "set", .arg = "NAME", .help = "remove the addresses from the dynamic set NAME instead"},
	{.name = "sync", .arg = "NAME", .help = "entries of the list NAME; without WHAT the whole list"},
	{.name = "all", .help = "all entries; with --origin NAME all entries of NAME"},
	{.name = "volatile", .help = "continue even if the state folder cannot be written"},
	{.name = "dry-run", .help = "print what would be done, change nothing"},
	{0},
};
// clang-format on

static const struct args_foreign foreign[] = {
	{"iface", 'i',
	 "entries apply to all interfaces of the instance; weir detach IFACE detaches one"},
	{"for", 0, "entries are removed at once; weir block WHAT --for TIME lets a block expire"},
	{"force", 0, "unblock refuses nothing"},
	{0},
};

const struct command cmd_unblock = {
	.name = "unblock",
	.usage = "WHAT… | -f FILE | --origin NAME | --sync NAME | --all [OPTIONS]",
	.summary = "remove block entries",
	.text = "A name is removed with all its addresses. An address stays blocked while another name,\n"
		"list, origin or prefix blocks it; the command then names the cause. The exit status is\n"
		"3; it is 0 with --origin, and if only other origins still block the address.\n"
		"--origin NAME without WHAT removes all entries of NAME.",
	.options = options,
	.foreign = foreign,
	.run = run_unblock,
};

const struct command cmd_unallow = {
	.name = "unallow",
	.usage = "WHAT… | -f FILE | --origin NAME | --sync NAME | --all [OPTIONS]",
	.summary = "remove allow entries",
	.text = "Same syntax as weir unblock, for allow entries.",
	.options = options,
	.foreign = foreign,
	.run = run_unallow,
};
