// SPDX-License-Identifier: GPL-2.0-only
// The lines of a batch, which are parsed one by one and become one change.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/diag_nearest.h"
#include "ctl/cmd/block_url.h"
#include "ctl/cmd/changing.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/show.h"

static const struct line_verb verbs[] = {
	{.command = &cmd_block},
	{.command = &cmd_allow, .allow = true},
	{.command = &cmd_unblock, .removes = true},
	{.command = &cmd_unallow, .removes = true, .allow = true},
};

// Options of these commands that a line cannot have.
static const struct {
	const char *name, *why;
} excluded[] = {
	{"iface", "attach first: weir attach IFACE"},
	{"mode", "attach first: weir attach IFACE"},
	{"live", "run weir block --live by itself"},
	{"url", "run weir block --url by itself"},
	{"set", "a dynamic set changes at once: run weir block --set by itself"},
	{"keep-going", "a batch is applied as a whole or not at all"},
	{"dry-run", "weir batch --dry-run tests the whole batch"},
};

static void free_line(struct batch_line *line)
{
	change_free(&line->change);
	block_url_free(line->url);
	free(line->note);
	free(line->own);
	args_free(&line->parsed);
	split_free(&line->split);
	free(line);
}

void batch_free(struct batch *b)
{
	vec_each (&b->lines, line)
		free_line(*line);
	vec_free(&b->lines);
	guard_free(&b->guard);
	changed_free(&b->changed);
}

struct batch_line *batch_add(struct batch *b)
{
	struct batch_line *line = mem_new(struct batch_line);

	vec_push(&b->lines, line);
	return line;
}

void batch_fail(struct batch *b, struct batch_line *line, const struct err *err)
{
	if (!b->failed)
		b->first = *err;
	b->failed += !line->change.failed;
	line->change.failed = true;
	if (b->say)
		b->say(b->say_ctx, line, err);
}

// ---- parsing ------------------------------------------------------------------------------------

static bool is_command(const char *word)
{
	for (const struct command *const *c = commands; *c; c++)
		if (!strcmp((*c)->name, word))
			return true;
	return false;
}

static int find_verb(const char *word, const struct line_verb **ret, struct err *err)
{
	const char *names[ARRAY_SIZE(verbs)], *near;

	for (size_t v = 0; v < ARRAY_SIZE(verbs); v++) {
		names[v] = verbs[v].command->name;
		if (strcmp(word, names[v]))
			continue;
		*ret = &verbs[v];
		return 0;
	}
	near = diag_nearest(word, names, ARRAY_SIZE(names));
	err_input(err,
		  is_command(word) ? "'%s' is not a command of a batch" : "unknown command '%s'",
		  word);
	if (!strcmp(word, "weir"))
		return err_hint(err, "a line begins with block, allow, unblock or unallow");
	if (near)
		return err_hint(err, "did you mean '%s'?", near);
	return err_hint(err, "the commands are block, allow, unblock and unallow");
}

static int check_option(const struct batch *b, const struct args *args,
			const struct args_given *given, struct err *err)
{
	const char *name = given->option->name;

	if (!args_knows(args, name)) {
		err_input(err, "option '--%s' does not belong on a line", name);
		return err_hint(err, "write it before the command: weir --%s batch", name);
	}
	for (size_t x = 0; x < ARRAY_SIZE(excluded); x++) {
		if (strcmp(name, excluded[x].name))
			continue;
		err_input(err, "a batch cannot have --%s", name);
		return err_hint(err, "%s", excluded[x].why);
	}
	if (!strcmp(name, "file") && !strcmp(given->value, "-") && !strcmp(b->file, "-")) {
		err_input(err, "standard input is the batch itself");
		return err_hint(err, "weir batch -f FILE leaves it to the line");
	}
	return 0;
}

static int parse_args(const struct batch *b, struct batch_line *line, struct err *err)
{
	size_t used;
	int code = args_parse(&line->parsed, line->split.words.at + 1, line->split.words.n - 1,
			      false, &used, err);

	if (code)
		return code;
	vec_each (&line->parsed.given, given)
		if ((code = check_option(b, &line->parsed, given, err)))
			return code;
	return 0;
}

static int parse(const struct batch *b, struct batch_line *line, struct err *err)
{
	int code = find_verb(line->split.words.at[0], &line->verb, err);

	if (code)
		return code;
	line->parsed.tables[0] = line->verb->command->options;
	line->parsed.tables[1] = global_options;
	line->parsed.foreign = line->verb->command->foreign;
	line->parsed.command = line->verb->command->name;
	if ((code = parse_args(b, line, err)))
		return code;
	code = line_read(b->ctx, &line->parsed, line->verb, line, err);
	line->dry_run = b->dry_run;
	return code;
}

// An error of an item: of a word, or of a line of a list that the command reads.
static void fail_item(struct batch *b, struct batch_line *line, const struct items_error *bad)
{
	CLEANUP_TEXT struct text place = {0};
	struct err err = {0};

	err_input(&err, "%s", bad->text);
	if (bad->file) {
		overlay_add_place(&place, bad->file, bad->line);
		err_prefix(&err, "%s", text_get(&place));
	}
	batch_fail(b, line, &err);
}

static void fail_reading(struct batch *b, struct batch_line *line, const struct err *err)
{
	if (!line->change.targets.items.errors.n) {
		batch_fail(b, line, err);
		return;
	}
	vec_each (&line->change.targets.items.errors, bad)
		fail_item(b, line, bad);
}

void batch_read_line(struct batch *b, const char *text, size_t len, unsigned number)
{
	struct batch_line *line = batch_add(b);
	struct err err = {0};

	line->number = number;
	if (split_line(text, len, &line->split, &err)) {
		batch_fail(b, line, &err);
	} else if (!line->split.words.n) {
		b->lines.n--;
		free_line(line);
	} else if (parse(b, line, &err)) {
		fail_reading(b, line, &err);
	}
}

// ---- applying -----------------------------------------------------------------------------------

static void fail_line(void *batch, size_t which, const struct err *err)
{
	struct batch *b = batch;

	batch_fail(b, b->lines.at[which], err);
}

static void keep_feeds(void *batch)
{
	struct batch *b = batch;

	vec_each (&b->lines, line)
		block_url_keep(b->ctx, *line);
}

int batch_apply(struct batch *b, struct err *err)
{
	CLEANUP_VEC VEC(struct entry_change *) all = {0};
	struct entry_changes changes = {
		.instance = b->ctx->instance,
		.command = b->ctx->line,
		.guard = &b->guard,
		.dry_run = b->dry_run,
		.failed = fail_line,
		.committed = keep_feeds,
		.ctx = b,
	};
	size_t failed = b->failed;
	int code;

	vec_each (&b->lines, line)
		vec_push(&all, &(*line)->change);
	changes.at = all.at;
	changes.n = all.n;
	if ((code = entries_change(&changes, &b->changed, err)))
		return code;
	if (b->failed == failed)
		changing_note_entries(b);
	return 0;
}

const char *batch_shown_file(const char *file)
{
	return strcmp(file, "-") ? file : "standard input";
}
