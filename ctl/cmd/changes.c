// SPDX-License-Identifier: GPL-2.0-only
// weir changes: prints what changed, when, and by whom.
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/cmd/change_text.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/show.h"
#include "ctl/cmd/stop.h"
#include "ctl/control/changelog.h"
#include "ctl/control/changelog_follow.h"

#define SINCE_MAX_MS (3650ull * 24 * 3600 * 1000)
#define LAST_MAX     (CHANGELOG_LINES + CHANGELOG_ENTRIES)
#define FOLLOW_LAST  10 // changes that --follow prints at first, without --since and --last
#define WAIT_MS      500

// The question.
struct changes_wanted {
	uint64_t now_ms, since_ms;
	const char *who; // NULL: everybody
	uint64_t last;   // changes, at most; 0: all
	bool follow;
};

static int read_since(const struct args *args, struct changes_wanted *w, struct err *err)
{
	const char *text = args_value(args, "since");
	uint64_t ms;

	if (!text)
		return 0;
	if (num_parse_time_ms(text, strlen(text), 1, SINCE_MAX_MS, &ms)) {
		err_input(err, "--since '%s' is not a time", text);
		return err_hint(err, "--since 2h prints the changes of the last two hours");
	}
	w->since_ms = w->now_ms > ms ? w->now_ms - ms : 0;
	return 0;
}

static int read_wanted(const struct args *args, struct changes_wanted *ret, struct err *err)
{
	const char *last = args_value(args, "last");
	int code;

	*ret = (struct changes_wanted){
		.now_ms = time_ms(CLOCK_REALTIME),
		.who = args_value(args, "by"),
		.follow = args_has(args, "follow"),
	};
	if (ret->follow && !args_has(args, "since"))
		ret->last = FOLLOW_LAST;
	if ((code = read_since(args, ret, err)))
		return code;
	if (last && num_parse_u64(last, strlen(last), 1, LAST_MAX, &ret->last))
		return err_input(err, "--last '%s' is not a number of 1 to %d", last, LAST_MAX);
	return 0;
}

// WHO is a pattern of the login, or of what is printed, "root (ssh 198.51.100.9)", or of the origin.
static bool is_by(const struct changelog_change *c, const void *pattern)
{
	CLEANUP_FREE char *login = mem_printf("%.*s", (int)strcspn(c->by, " "), c->by);
	const char *who = pattern;

	return !fnmatch(who, login, FNM_NOESCAPE) || !fnmatch(who, c->by, FNM_NOESCAPE) ||
	       (c->origin[0] && !fnmatch(who, c->origin, FNM_NOESCAPE));
}

// The values of a change that text has in its cells, and JSON otherwise.
static void set_values(struct out *o, const struct changelog_change *c)
{
	out_set_time(o, "at", c->at_ms / 1000);
	out_set_u64(o, "at_ms", c->at_ms);
	out_set_u64(o, "uid", c->uid);
	out_set_string(o, "verb", c->verb);
	out_set_string(o, "text", c->text);
	out_set_string(o, "origin", c->origin);
	out_set_string(o, "list", c->list);
	out_set_u64(o, "added", c->added);
	out_set_u64(o, "removed", c->removed);
	out_set_u64(o, "changes", c->changes);
}

static void print_change(struct out *o, const struct changelog_change *c, uint64_t now_ms)
{
	CLEANUP_TEXT struct text when = {0}, result = {0};

	show_time(&when, c->at_ms / 1000, now_ms / 1000);
	change_result(&result, c);
	out_row(o);
	out_cell(o, NULL, "WHEN", text_get(&when));
	out_cell(o, "by", "BY", c->by);
	out_cell(o, "command", "COMMAND", c->command);
	out_cell(o, "result", NULL, c->result);
	out_cell(o, NULL, "RESULT", text_get(&result));
	set_values(o, c);
}

// A line, or with -j a document, since a table would have to wait for its last row.
static void print_line(struct out *o, const struct changelog_change *c, uint64_t now_ms)
{
	CLEANUP_TEXT struct text when = {0}, result = {0};

	show_time(&when, c->at_ms / 1000, now_ms / 1000);
	change_result(&result, c);
	out_set_string(o, "by", c->by);
	out_set_string(o, "command", c->command);
	out_set_string(o, "result", c->result);
	set_values(o, c);
	out_line(o, "%s  %s  %s  %s", text_get(&when), c->by, c->command, text_get(&result));
	out_next_document(o);
}

static void report_missing(const struct context *ctx, const struct changelog *all, uint64_t lost)
{
	out_set_u64(ctx->out, "lost", lost);
	out_set_u64(ctx->out, "damaged", all->damaged);
	if (lost)
		log_warning("%" PRIu64 " %s could not be recorded", lost,
			    num_plural(lost, "change", "changes"));
	if (all->damaged)
		log_warning("%" PRIu64 " %s of the record %s damaged and not printed", all->damaged,
			    num_plural(all->damaged, "line", "lines"),
			    num_plural(all->damaged, "is", "are"));
}

static void print_all(struct context *ctx, const struct changelog *all, uint64_t now_ms)
{
	out_set_string(ctx->out, "instance", ctx->instance);
	report_missing(ctx, all, changelog_lost(ctx->instance));
	out_long_table(ctx->out, "changes");
	vec_each (&all->list, c)
		print_change(ctx->out, c, now_ms);
	out_table_end(ctx->out);
	if (!all->list.n && !ctx->quiet)
		out_line(ctx->out, "no changes in instance %s", ctx->instance);
}

static void close_follow(struct changelog_follow **f)
{
	changelog_follow_close(*f);
}

static void print_lines(struct context *ctx, const struct changelog *some)
{
	vec_each (&some->list, c)
		print_line(ctx->out, c, time_ms(CLOCK_REALTIME));
	out_flush(ctx->out);
}

static int follow(struct context *ctx, const struct changelog_choice *choice, struct err *err)
{
	const struct changelog_choice news_of = {.wants = choice->wants, .ctx = choice->ctx};
	CLEANUP(close_follow) struct changelog_follow *f = NULL;
	CLEANUP_CHANGELOG struct changelog before = {0};
	int code = changelog_follow_open(ctx->instance, choice, &f, &before, err);

	if (code)
		return code;
	stop_catch();
	print_lines(ctx, &before);
	while (!stop_asked && !file_is_unread(STDOUT_FILENO)) {
		CLEANUP_CHANGELOG struct changelog news = {0};
		bool more;

		if ((code = changelog_follow_wait(f, WAIT_MS, &news_of, &news, &more, err)))
			return code;
		print_lines(ctx, &news);
	}
	out_set_bool(ctx->out, "end", true);
	return 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_CHANGELOG struct changelog all = {0};
	struct changes_wanted wanted;
	int code = args_expect_words(args, 0, 0, "", err);
	struct changelog_choice choice;

	if (code)
		return code;
	if ((code = read_wanted(args, &wanted, err)))
		return code;
	choice = (struct changelog_choice){.since_ms = wanted.since_ms,
					   .last = (size_t)wanted.last,
					   .wants = wanted.who ? is_by : NULL,
					   .ctx = wanted.who};
	if (wanted.follow)
		return follow(ctx, &choice, err);
	if ((code = changelog_read(ctx->instance, &choice, &all, err)))
		return code;
	print_all(ctx, &all, wanted.now_ms);
	return 0;
}

static const struct args_option options[] = {
	{.name = "follow", .letter = 'f', .help = "print new changes until interrupted"},
	{.name = "last", .arg = "N", .help = "only the last N changes"},
	{.name = "since", .arg = "TIME", .help = "only changes of this last time: 2h, 7d"},
	{.name = "by", .arg = "WHO", .help = "only changes by this login or origin (pattern)"},
	OPTION_WIDE_TABLES,
	{0},
};

const struct command cmd_changes = {
	.name = "changes",
	.usage = "[OPTIONS]",
	.summary = "list what changed, when, and by whom",
	.options = options,
	.run = run,
};
