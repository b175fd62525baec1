// SPDX-License-Identifier: GPL-2.0-only
// weir batch: runs commands from a file or a pipe, all in one commit or each as it is read.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/cmd/batch_each.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/show.h"
#include "ctl/datapath/bpffs.h"

#define BATCH_BYTES_MAX (256u << 20)
#define ERRORS_SHOWN    100
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

// The errors of a batch that is applied as a whole.
struct batch_errors {
	struct context *ctx;
	const char *file; // "-": standard input
	size_t n;
};

static void say_error(void *ctx, const struct batch_line *line, const struct err *err)
{
	struct batch_errors *errors = ctx;
	struct out *o = errors->ctx->out;
	CLEANUP_TEXT struct text place = {0};
	bool hint = err->hint[0];

	if (errors->n++ >= ERRORS_SHOWN)
		return;
	overlay_add_place(&place, errors->file, line->number);
	log_error("%s: %s%s%s%s", text_get(&place), err->text, hint ? " (" : "", err->hint,
		  hint ? ")" : "");
	out_row(o);
	out_cell(o, "file", NULL, batch_shown_file(errors->file));
	out_cell_u64(o, "line", NULL, line->number);
	out_cell(o, "text", NULL, err->text);
	out_cell(o, "hint", NULL, err->hint);
}

// The error that ends a batch of which some lines failed.
static int nothing_changed(const struct batch *b, struct err *err)
{
	*err = (struct err){.kind = b->first.kind, .code = b->first.code};
	snprintf(err->text, sizeof(err->text), "%zu of %zu %s failed; nothing was changed",
		 b->failed, b->lines.n, num_plural(b->lines.n, "command", "commands"));
	return b->first.code ? -b->first.code : -EINVAL;
}

static int read_lines(struct batch *b, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;
	unsigned number = 0;
	int code = file_read_stream(b->file, BATCH_BYTES_MAX, &text, &len, err);
	const char *at = text, *end = text ? text + len : NULL;

	if (code)
		return code;
	if (len >= 3 && !memcmp(at, BYTE_ORDER_MARK, 3))
		at += 3;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		batch_read_line(b, at, (size_t)(stop - at), ++number);
		at = newline ? newline + 1 : end;
	}
	return 0;
}

// Input without commands usually means that the program before the pipe failed.
static int refuse_empty(const char *file, struct err *err)
{
	err_input(err, "%s contains no command", batch_shown_file(file));
	return err_hint(err, "did the program that wrote it fail?");
}

// Nothing is applied if a line failed.
static int read_and_apply(struct batch *b, struct err *err)
{
	int code = read_lines(b, err);

	if (code || b->failed)
		return code;
	batch_check(b);
	if (b->failed || !b->lines.n)
		return 0;
	return batch_apply(b, err);
}

// Everything until the result is reported.
static int change(struct batch *b, struct batch_errors *errors, struct err *err)
{
	int code;

	out_table(errors->ctx->out, "errors");
	code = read_and_apply(b, err);
	out_table_end(errors->ctx->out);
	show_damage(&b->changed.damaged);
	if (code)
		return code;
	if (errors->n > ERRORS_SHOWN)
		log_error("%zu more errors", errors->n - ERRORS_SHOWN);
	if (b->failed)
		return nothing_changed(b, err);
	return b->lines.n ? 0 : refuse_empty(b->file, err);
}

struct batch_sums {
	struct records_change change;
	size_t left; // commands that left an address blocked
	bool fleeting;
};

static void sum_up(struct batch_sums *sums, const struct batch_line *line)
{
	const struct records_change *done = &line->change.done;

	sums->change.added += done->added;
	sums->change.extended += done->extended;
	sums->change.unchanged += done->unchanged;
	sums->change.removed += done->removed;
	if (!line->change.removes)
		sums->fleeting &= line->change.intent.fleeting;
}

static void report_line(const struct batch *b, const struct batch_line *line,
			struct batch_sums *sums)
{
	CLEANUP_TEXT struct text text = {0}, place = {0};
	struct out *o = b->ctx->out;
	struct err err = {0};

	out_object(o, NULL);
	out_set_u64(o, "line", line->number);
	out_set_string(o, "command", line->change.verb);
	line_describe(&text, line, b->ctx->instance, NULL, o, NULL);
	overlay_add_place(&place, b->file, line->number);
	if (b->ctx->verbose)
		out_line(o, "%s: %s", text_get(&place), text_get(&text));
	if (line->change.removes && line_report_left(line, o, &err)) {
		log_error("%s: %s (%s)", text_get(&place), err.text, err.hint);
		sums->left++;
	}
	sum_up(sums, line);
	out_end(o);
}

static void set_sums(struct context *ctx, const struct batch *b, const struct batch_sums *sums)
{
	const struct records_change *c = &sums->change;
	struct out *o = ctx->out;
	const char *key;

	show_kept(ctx->instance, sums->fleeting, &key);
	out_set_u64(o, "changed", c->added + c->extended + c->removed);
	out_set_u64(o, "added", c->added);
	out_set_u64(o, "extended", c->extended);
	out_set_u64(o, "removed", c->removed);
	out_set_u64(o, "unchanged", c->unchanged);
	out_set_bool(o, "dry_run", b->dry_run);
	out_set_string(o, "instance", ctx->instance);
	out_set_string(o, "kept", key);
}

// "12 commands: 10 entries added, 1 extended, 1 removed on eth0; saved"
static void add_sums(struct text *line, const struct batch *b, const struct batch_sums *sums)
{
	const struct records_change *c = &sums->change;

	text_addf(line, "%zu %s: %s%zu %s added, %zu extended, %zu removed on ", b->lines.n,
		  num_plural(b->lines.n, "command", "commands"), b->dry_run ? "would have " : "",
		  c->added, num_plural(c->added, "entry", "entries"), c->extended, c->removed);
}

static int report(struct batch *b, struct err *err)
{
	CLEANUP_TEXT struct text line = {0};
	struct context *ctx = b->ctx;
	struct batch_sums sums = {.fleeting = true};
	struct err open = {0};
	const char *key;

	out_array(ctx->out, "commands");
	vec_each (&b->lines, one)
		report_line(b, *one, &sums);
	out_end(ctx->out);
	set_sums(ctx, b, &sums);
	add_sums(&line, b, &sums);
	show_interfaces(&line, b->changed.instance, ctx->out, &open);
	text_addf(&line, "; %s", show_kept(ctx->instance, sums.fleeting, &key));
	if (!ctx->quiet)
		out_line(ctx->out, "%s", text_get(&line));
	batch_warn_limits(b);
	if (sums.left) {
		err_refused(err, "%zu of %zu %s left an address covered by another entry",
			    sums.left, b->lines.n, num_plural(b->lines.n, "command", "commands"));
		return -EPERM;
	}
	if (!open.kind)
		return 0;
	*err = open;
	return -EPERM;
}

static int run_whole(struct context *ctx, const struct args *args, struct err *err)
{
	const char *file = args_value(args, "file");
	struct batch_errors errors = {.ctx = ctx, .file = file ? file : "-"};
	CLEANUP(batch_free)
	struct batch b = {
		.ctx = ctx,
		.file = file ? file : "-",
		.dry_run = args_has(args, "dry-run"),
		.say = say_error,
		.say_ctx = &errors,
	};
	int code = change(&b, &errors, err);

	return code ? code : report(&b, err);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	int code = args_expect_words(args, 0, 0, "", err);

	if (code && args->words.n)
		return err_hint(err, "weir batch -f %s reads a file", args->words.at[0]);
	if ((code = bpffs_ready(err)))
		return code;
	if (!args_has(args, "each"))
		return run_whole(ctx, args, err);
	if (args_has(args, "dry-run"))
		return err_input(err, "--each cannot be combined with --dry-run");
	return batch_each(ctx, args_value(args, "file"), err);
}

static const struct args_option options[] = {
	{.name = "file",
	 .letter = 'f',
	 .arg = "FILE",
	 .help = "read commands from FILE (default: standard input)"},
	{.name = "each", .help = "commit each line as it is read, and answer it with ok or error"},
	{.name = "dry-run", .help = "print what would be done, change nothing"},
	{0},
};

static const struct args_foreign foreign[] = {
	{"force", 0, "a line has its own: block 203.0.113.0/24 --force"},
	{"sync", 0, "a line has its own: block -f FILE --sync NAME"},
	{"origin", 0, "a line has its own: block 203.0.113.7 --origin NAME"},
	{0},
};

const struct command cmd_batch = {
	.name = "batch",
	.usage = "[-f FILE] [OPTIONS]",
	.summary = "run commands from a file, in one commit",
	.text = "A line is a command block, allow, unblock or unallow with its options, without 'weir'.\n"
		"Words are split at blanks; '…', \"…\" and \\ quote, # begins a comment. If a line is\n"
		"invalid or refused, nothing is changed; else packets see all changes at once.\n"
		"\n"
		"  printf '%s\\n' 'unblock 203.0.113.7' 'block 203.0.113.9 --for 1h' | weir batch\n"
		"  weir batch -f bans --dry-run\n"
		"  ban-daemon | weir batch --each",
	.options = options,
	.foreign = foreign,
	.changes = CHANGES_ENTRIES,
	.run = run,
};
