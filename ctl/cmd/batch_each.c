// SPDX-License-Identifier: GPL-2.0-only
// Each line is a batch of its own.
#include "ctl/cmd/batch_each.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "ctl/base/num.h"
#include "ctl/cmd/show.h"

struct batch_answers {
	struct context *ctx;
	size_t n, failed;
	struct err first; // the first failure
};

// The first error of a line is its answer.
static void keep_error(void *ctx, const struct batch_line *line, const struct err *err)
{
	struct err *answer = ctx;

	(void)line;
	if (!answer->kind)
		*answer = *err;
}

static void report(struct batch_answers *a, const struct batch_line *line,
		   const struct store *store, struct text *result, struct err *answer)
{
	struct out *o = a->ctx->out;

	batch_describe(result, line, store, o);
	text_add(result, " on ");
	show_interfaces(result, store->instance, o, answer);
	if (line->verb->removes)
		unblocking_report_left(&line->unblocking, o, answer);
}

// Runs one line. answer: the error, if there is one.
static void run_line(struct batch_answers *a, struct batch *b, struct text *result,
		     struct err *answer)
{
	CLEANUP_STORE struct store *store = NULL;

	if (!b->failed)
		batch_check(b);
	if (!b->failed && batch_apply(b, &store, answer))
		return;
	if (!b->failed)
		report(a, b->lines.at[0], store, result, answer);
}

static void print_answer(struct batch_answers *a, const struct text *result,
			 const struct err *answer)
{
	struct out *o = a->ctx->out;
	bool hint = answer->hint[0];

	a->n++;
	if (!answer->kind) {
		out_line(o, "ok %s", text_get(result));
	} else {
		if (!a->failed++)
			a->first = *answer;
		out_error(o, answer->text, answer->hint,
			  answer->code ? err_name(answer->code) : "");
		out_line(o, "error %s%s%s%s", answer->text, hint ? " (" : "", answer->hint,
			 hint ? ")" : "");
	}
	out_next_document(o);
}

static void answer_line(struct batch_answers *a, const char *file, const char *text, size_t len,
			unsigned number)
{
	CLEANUP_TEXT struct text result = {0};
	struct err answer = {0};
	CLEANUP(batch_free)
	struct batch b = {.ctx = a->ctx, .file = file, .say = keep_error, .say_ctx = &answer};

	batch_read_line(&b, text, len, number);
	if (!b.lines.n)
		return;
	out_set_u64(a->ctx->out, "line", number);
	run_line(a, &b, &result, &answer);
	print_answer(a, &result, &answer);
}

static void answer_all(struct batch_answers *a, const char *file, FILE *f)
{
	CLEANUP_FREE char *line = NULL;
	size_t cap = 0;
	unsigned number = 0;
	ssize_t len;

	while (!out_failed(a->ctx->out) && (len = getline(&line, &cap, f)) > 0)
		answer_line(a, file, line, (size_t)len - (line[len - 1] == '\n'), ++number);
}

static int finish(const struct batch_answers *a, struct err *err)
{
	struct out *o = a->ctx->out;

	out_set_bool(o, "end", true);
	out_set_u64(o, "commands", a->n);
	out_set_u64(o, "failed", a->failed);
	if (!a->failed)
		return 0;
	*err = (struct err){.kind = a->first.kind, .code = a->first.code};
	snprintf(err->text, sizeof(err->text), "%zu of %zu %s failed", a->failed, a->n,
		 num_plural(a->n, "command", "commands"));
	return a->first.code ? -a->first.code : -EINVAL;
}

int batch_each(struct context *ctx, const char *file, struct err *err)
{
	struct batch_answers answers = {.ctx = ctx};
	bool standard = !file || !strcmp(file, "-");
	FILE *f = standard ? stdin : fopen(file, "re");

	if (!f) {
		err_system(err, errno, "cannot open '%s'", file);
		err->kind = ERR_INPUT;
		return -err->code;
	}
	answer_all(&answers, standard ? "-" : file, f);
	if (ferror(f))
		err_system(err, errno, "cannot read '%s'", batch_shown_file(standard ? "-" : file));
	if (!standard)
		fclose(f);
	return err->kind ? -err->code : finish(&answers, err);
}
