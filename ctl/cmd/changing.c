// SPDX-License-Identifier: GPL-2.0-only
// Records what a command has changed, for weir changes.
#include "ctl/cmd/changing.h"

#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/cmd/show.h"
#include "ctl/control/changelog.h"
#include "ctl/datapath/lock.h"

#define AFTER      "after the change: "
#define GROUPS_MAX 32 // of a commit

static bool has_option(const struct args *args, const char *name)
{
	return args_knows(args, name) && args_has(args, name);
}

static void add_by(const struct context *ctx, const char *by, struct changelog_change *c)
{
	c->at_ms = time_ms(CLOCK_REALTIME);
	c->uid = getuid();
	c->by = (char *)by;
	if (!c->command)
		c->command = (char *)ctx->line;
	changelog_add(ctx->instance, c);
}

static void add(const struct context *ctx, struct changelog_change *c)
{
	char by[CHANGELOG_WORD];

	show_author(ctx, by, sizeof(by));
	add_by(ctx, by, c);
}

static const char *result_of(int code, const struct err *err)
{
	if (code)
		return err->kind == ERR_REFUSED ? "refused" : "failed";
	return CHANGELOG_DONE;
}

static bool is_of_entries(const struct command *c, const struct context *ctx)
{
	return c->changes == CHANGES_ENTRIES && !ctx->of_rule;
}

// A command that has taken the lock may have changed something before it failed.
static bool is_change(const struct command *c, const struct args *args, const struct context *ctx,
		      int code, const struct err *err)
{
	if (c->changes == CHANGES_NOTHING || has_option(args, "dry-run"))
		return false;
	if (code && err->kind == ERR_REFUSED)
		return true;
	if (c->changes == CHANGES_AT_ONCE)
		return !code;
	return lock_was_taken() && (code || !is_of_entries(c, ctx));
}

void changing_note(const struct command *c, const struct args *args, const struct context *ctx,
		   int code, const struct err *err)
{
	CLEANUP_FREE char *after = mem_printf("%s%s", AFTER, err->text);
	struct changelog_change change = {
		.verb = (char *)c->name,
		.result = (char *)result_of(code, err),
		.text = code ? (char *)err->text : NULL,
		.about = ctx->about,
		.entries = is_of_entries(c, ctx),
	};

	if ((ctx->noted || ctx->about) && code) {
		change.result = (char *)(ctx->noted ? "failed" : CHANGELOG_DONE);
		change.text = after;
	}
	if (ctx->noted != NOTED_ALL && is_change(c, args, ctx, code, err) && (!ctx->noted || code))
		add(ctx, &change);
}

// ---- entries ------------------------------------------------------------------------------------

// Changes of a commit that are recorded as one.
struct noted_group {
	const char *by;
	struct changelog_change change;
};

struct noted_groups {
	struct noted_group at[GROUPS_MAX];
	size_t n;
};

static bool suits(const struct noted_group *g, const struct batch_line *line)
{
	const struct entry_change *c = &line->change;

	return text_same(g->by, line->by) && text_same(g->change.verb, c->verb) &&
	       text_same(g->change.origin, c->intent.origin) &&
	       text_same(g->change.list, c->intent.list);
}

// The last group also takes what suits none, and then names neither origin nor list.
static struct noted_group *find_group(struct noted_groups *all, const struct batch_line *line)
{
	struct noted_group *g;

	for (size_t n = 0; n < all->n; n++)
		if (suits(&all->at[n], line))
			return &all->at[n];
	if (all->n == GROUPS_MAX) {
		g = &all->at[GROUPS_MAX - 1];
		g->change.origin = g->change.list = NULL;
		return g;
	}
	g = &all->at[all->n++];
	*g = (struct noted_group){.by = line->by,
				  .change = {.entries = true,
					     .result = (char *)CHANGELOG_DONE,
					     .command = line->own,
					     .verb = (char *)line->change.verb,
					     .origin = (char *)line->change.intent.origin,
					     .list = (char *)line->change.intent.list}};
	return g;
}

static uint64_t added_by(const struct batch_line *line)
{
	const struct records_change *done = &line->change.done;

	return done->added + done->extended + done->shortened + done->replaced;
}

static void add_line(struct noted_groups *all, const struct batch_line *line)
{
	struct noted_group *g;

	if (!added_by(line) && !line->change.done.removed)
		return;
	g = find_group(all, line);
	if (!text_same(g->by, line->by))
		g->by = "several";
	g->change.added += added_by(line);
	g->change.removed += line->change.done.removed;
	g->change.changes += line->own != NULL;
}

void changing_note_entries(const struct batch *b)
{
	struct noted_groups all = {0};

	if (b->dry_run || !lock_was_taken())
		return;
	vec_each (&b->lines, line)
		if (!(*line)->change.failed)
			add_line(&all, *line);
	for (size_t n = 0; n < all.n; n++)
		add_by(b->ctx, all.at[n].by, &all.at[n].change);
	if (all.n && !b->ctx->noted)
		b->ctx->noted = NOTED_CHANGES;
}

void changing_note_line(const struct context *ctx, const struct batch_line *line,
			const struct err *err)
{
	const struct entry_change *c = &line->change;
	bool changed = added_by(line) || c->done.removed;
	CLEANUP_FREE char *text = mem_printf("%s%s", changed ? AFTER : "", err->text);
	struct changelog_change change = {
		.entries = true,
		.verb = (char *)c->verb,
		.command = line->own,
		.origin = (char *)c->intent.origin,
		.list = (char *)c->intent.list,
		.result = (char *)(changed ? "failed" : "refused"),
		.text = text,
	};

	if (line->verb)
		add_by(ctx, line->by, &change);
}

void changing_show_lost(const struct context *ctx)
{
	uint64_t lost = changelog_lost(ctx->instance);

	out_set_u64(ctx->out, "changes_lost", lost);
	if (lost)
		out_line(ctx->out, "%sweir changes lacks %llu %s that could not be recorded%s",
			 out_yellow(ctx->out), (unsigned long long)lost,
			 num_plural(lost, "change", "changes"), out_plain(ctx->out));
}
