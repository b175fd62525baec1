// SPDX-License-Identifier: GPL-2.0-only
// weir history, weir show: list accepted policies and print their text.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/log.h"
#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/cmd/show.h"
#include "ctl/control/revisions.h"

static int run_history(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_REVISIONS struct revisions list = {0};
	char current[REVISION_ID] = "";
	int code = args_expect_words(args, 0, 0, "", err);

	if (code)
		return code;
	if ((code = revisions_current(ctx->instance, current, err)))
		return code;
	if ((code = revisions_list(ctx->instance, &list, err)))
		return code;
	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_string(ctx->out, "current", current);
	out_table(ctx->out, "revisions");
	vec_each (&list, revision) {
		CLEANUP_TEXT struct text when = {0};

		show_time(&when, revision->at_s, (uint64_t)time(NULL));
		out_row(ctx->out);
		out_cell(ctx->out, "revision", "REVISION", revision->id);
		out_cell(ctx->out, NULL, "WHEN", text_get(&when));
		out_set_time(ctx->out, "at", revision->at_s);
		out_cell(ctx->out, "by", "BY", revision->by);
		out_cell(ctx->out, "path", "FILE", revision->path);
		out_cell(ctx->out, "note", "NOTE", revision->note);
		out_cell(ctx->out, NULL, "", strcmp(revision->id, current) ? "" : "current");
	}
	out_table_end(ctx->out);
	if (!list.n && !ctx->quiet)
		out_line(ctx->out, "no revisions in instance %s", ctx->instance);
	return 0;
}

static int run_show(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_ENVIRONMENT struct environment environment;
	CLEANUP(revision_free) struct revision revision = {0};
	char id[REVISION_ID] = "";
	int code = args_expect_words(args, 0, 1, "", err);

	environment_replay(&environment);
	if (code)
		return code;
	if ((code = policy_pick_revision(ctx->instance, args->words.n ? args->words.at[0] : NULL,
					 id, err)))
		return code;
	if ((code = revisions_load(ctx->instance, id, &environment, &revision, err)))
		return code;
	out_set_string(ctx->out, "revision", revision.id);
	out_set_string(ctx->out, "path", revision.path);
	out_set_string(ctx->out, "by", revision.by);
	out_set_time(ctx->out, "at", revision.at_s);
	out_array(ctx->out, "files");
	vec_each (&environment.files, file) {
		out_object(ctx->out, NULL);
		out_set_string(ctx->out, "path", file->path);
		out_set_string(ctx->out, "text", file->text);
		out_end(ctx->out);
		if (!ctx->json && (args_has(args, "all") || file == environment.files.at))
			out_text(ctx->out, file->text, file->len);
	}
	out_end(ctx->out);
	return 0;
}

static const struct args_option history_options[] = {OPTION_WIDE_TABLES, {0}};

const struct command cmd_history = {
	.name = "history",
	.usage = "",
	.summary = "list the accepted revisions",
	.options = history_options,
	.run = run_history,
};

static const struct args_option show_options[] = {
	{.name = "all", .help = "also print included files and list files"},
	{0},
};

const struct command cmd_show = {
	.name = "show",
	.usage = "[REVISION] [OPTIONS]",
	.summary = "print the accepted policy (default: the current revision)",
	.options = show_options,
	.run = run_show,
};
