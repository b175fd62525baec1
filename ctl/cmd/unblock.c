// SPDX-License-Identifier: GPL-2.0-only
// weir unblock, weir unallow: take entries away, and say what still holds.
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ctl/base/log.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/sets.h"
#include "ctl/cmd/show.h"
#include "ctl/datapath/pins.h"

struct request {
	struct targets targets;
	struct intent intent;
	bool all, dry_run;
};

static void request_free(struct request *r)
{
	targets_free(&r->targets);
}

struct prefixes {
	struct prefix *at;
	size_t n, cap;
};

// What still covers an address after the change.
struct leftover {
	const struct book *book;
	const struct record *record; // the first one found
	unsigned kinds;
};

static void see_record(void *ctx, const struct record *record)
{
	struct leftover *l = ctx;

	if (!l->record && l->kinds & 1u << record->kind)
		l->record = record;
}

static const struct record *still_covers(const struct book *b, const struct prefix *p,
					 unsigned kinds)
{
	struct leftover l = {.book = b, .kinds = kinds};

	records_covering(&b->records, p, see_record, &l);
	return l.record;
}

// The command that lets the target through.
static void hint_way(struct err *err, const struct request *r, const struct record *left,
		     const struct holder *h, const char *target)
{
	const char *verb = r->intent.allow ? "unallow" : "unblock";
	struct text way = {0};
	addr_text wide;

	text_addf(&way, "weir %s", verb);
	if (h->origin[0])
		text_addf(&way, " --origin %s", h->origin);
	if (h->list[0])
		text_addf(&way, " --sync %s", h->list);
	text_addf(&way, " %s ends that", h->name[0] ? h->name : prefix_format(&left->prefix, wide));
	if (!r->intent.allow)
		text_addf(&way, "; weir allow %s lets it through", target);
	err_hint(err, "%s", text_get(&way));
	text_free(&way);
}

static void collect_name(const struct request *r, const struct book *b, const char *name,
			 struct prefixes *ret)
{
	CLEANUP_FREE char *key = target_name(name);

	vec_each (&b->records.list, record) {
		const struct holder *h = &b->records.holders.at[record->holder];

		if (r->intent.kinds & 1u << record->kind && !strcmp(h->name, key) &&
		    !strcmp(h->origin, r->intent.origin) && !strcmp(h->list, r->intent.list))
			vec_push(ret, record->prefix);
	}
}

// The prefixes that are meant to be free afterwards; those of a name are known only before.
static void collect(const struct request *r, const struct book *b, struct prefixes *ret)
{
	vec_each (&r->targets.bulk.items, item)
		if (item->name)
			collect_name(r, b, item->name, ret);
		else
			vec_push(ret, item->prefix);
}

// X stays blocked by something else: by what, by whom, and the command that passes it.
static int report_leftover(const struct request *r, const struct book *b,
			   const struct prefixes *meant, struct err *err)
{
	vec_each (meant, prefix) {
		const struct record *left;
		const struct holder *h;
		struct text who = {0};
		addr_text target, wide;

		if (!(left = still_covers(b, prefix, r->intent.kinds)))
			continue;
		h = &b->records.holders.at[left->holder];
		show_holder(&who, h);
		err_refused(err, "%s stays %s: %s %s, by %s%s%s", prefix_format(prefix, target),
			    r->intent.allow ? "allowed" : "blocked", kind_text(left->kind),
			    prefix_format(&left->prefix, wide), h->by[0] ? h->by : "?",
			    who.len ? ", " : "", text_get(&who));
		text_free(&who);
		hint_way(err, r, left, h, target);
		return -EPERM;
	}
	return 0;
}

static void take_all(const struct request *r, struct book *b, size_t *ret_removed)
{
	size_t kept = 0;

	vec_each (&b->records.list, record)
		if (!(r->intent.kinds & 1u << record->kind))
			b->records.list.at[kept++] = *record;
	*ret_removed = b->records.list.n - kept;
	b->records.list.n = kept;
}

static void unrecord(const struct request *r, struct book *b, size_t *ret_removed)
{
	struct holder who = {.origin = (char *)r->intent.origin,
			     .list = (char *)r->intent.list,
			     .name = (char *)"",
			     .note = (char *)"",
			     .by = (char *)""};

	if (r->all)
		take_all(r, b, ret_removed);
	else if (!r->targets.bulk.items.n)
		records_remove(&b->records, &who, r->intent.kinds, NULL, 0, ret_removed);
	else
		targets_unrecord(&r->targets, &r->intent, b, ret_removed);
}

static void report(struct context *ctx, const struct request *r, size_t removed)
{
	const char *verb = r->intent.allow ? "unallowed" : "unblocked";
	bool one = r->targets.bulk.items.n == 1;
	addr_text text;
	const struct bulk_item *item = one ? &r->targets.bulk.items.at[0] : NULL;

	out_set_u64(ctx->out, "changed", removed);
	out_set_u64(ctx->out, "removed", removed);
	out_set_bool(ctx->out, "dry_run", r->dry_run);
	out_set_string(ctx->out, "instance", ctx->instance);
	if (ctx->quiet)
		return;
	if (one)
		out_line(ctx->out, "%s%s %s%s, instance %s", r->dry_run ? "would have " : "", verb,
			 item->name ? item->name : prefix_format(&item->prefix, text),
			 removed ? "" : ": nothing to take away", ctx->instance);
	else
		out_line(ctx->out, "%s%s %zu %s, instance %s", r->dry_run ? "would have " : "",
			 verb, removed, removed == 1 ? "entry" : "entries", ctx->instance);
}

static int change_book(struct context *ctx, const struct request *r, struct err *err)
{
	CLEANUP_BOOK struct book *book = NULL;
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	struct prefixes meant = {0};
	size_t removed = 0;
	int code = pins_exist(ctx->instance) ? book_open(ctx->instance, ctx->line, &book, err)
					     : not_attached(ctx->instance, "undo", err);

	if (code)
		return code;
	collect(r, book, &meant);
	unrecord(r, book, &removed);
	if (!r->dry_run && removed)
		code = book_commit(book, false, &plan, err);
	if (!code) {
		report(ctx, r, removed);
		code = report_leftover(r, book, &meant, err);
	}
	vec_free(&meant);
	return code;
}

static int read_request(struct context *ctx, const struct args *args, bool allow, struct request *r,
			struct err *err)
{
	size_t bad;
	int code;

	r->all = args_has(args, "all");
	r->dry_run = args_has(args, "dry-run");
	r->intent = (struct intent){
		.allow = allow, .now_s = (uint64_t)time(NULL), .note = "", .by = ""};
	code = overlay_kinds(args, allow, kinds_of(allow, true, true), &r->intent.kinds, err);
	if (!code)
		code = overlay_text(args, "origin", &r->intent.origin, err);
	if (!code)
		code = overlay_text(args, "sync", &r->intent.list, err);
	if (!code)
		code = overlay_read_targets(ctx, args, false, &r->targets, &bad, err);
	if (code)
		return code;
	if (r->all && (r->targets.bulk.items.n || r->intent.list[0]))
		return err_input(err, "--all excludes everything else");
	if (!r->all && !r->targets.bulk.items.n && !r->intent.list[0] && !r->intent.origin[0])
		return err_input(err,
				 "%s what? An address, a prefix, a host name, -f FILE, or --all",
				 allow ? "unallow" : "unblock");
	return 0;
}

static int run(struct context *ctx, const struct args *args, bool allow, struct err *err)
{
	CLEANUP(request_free) struct request r = {0};
	int code = pins_ready(err);

	if (!code)
		code = read_request(ctx, args, allow, &r, err);
	if (!code && args_has(args, "set"))
		return sets_change(ctx, args_value(args, "set"), &r.targets, &r.intent, true, err);
	return code ? code : change_book(ctx, &r, err);
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
	{"to", 0, NULL, "only entries that match the destination", false, false},
	{"both", 0, NULL, "entries of both directions (so it is without --to)", false, false},
	OPTION_ORIGIN,
	{"set", 0, "NAME", "take it out of the policy's dynamic set NAME instead", false, false},
	{"sync", 0, "NAME", "of the list NAME; without WHAT all of it", false, false},
	{"all", 0, NULL, "every entry of everybody", false, false},
	{"dry-run", 0, NULL, "say what would be done and do nothing", false, false},
	{0},
};
// clang-format on

const struct command cmd_unblock = {
	.name = "unblock",
	.usage = "WHAT… | -f FILE | --all [OPTIONS]",
	.summary = "take block entries away",
	.text = "A name is taken away with all addresses that came from it; an address that another\n"
		"name, list or origin holds too stays blocked, and Weir says by whom (exit status 3).",
	.options = options,
	.run = run_unblock,
};

const struct command cmd_unallow = {
	.name = "unallow",
	.usage = "WHAT… | -f FILE | --all [OPTIONS]",
	.summary = "take allow entries away",
	.text = "As weir unblock, for allow entries.",
	.options = options,
	.run = run_unallow,
};
