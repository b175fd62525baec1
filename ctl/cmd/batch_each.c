// SPDX-License-Identifier: GPL-2.0-only
// Each line is a separate batch. Plain lines that are waiting at the same time are applied as one,
// which takes the lock and writes the journal once. If that fails, each is tried separately, so
// that each answer belongs to its line.
#include "ctl/cmd/batch_each.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/agent/process.h"
#include "ctl/base/num.h"
#include "ctl/cmd/changing.h"
#include "ctl/cmd/show.h"
#include "ctl/control/changelog_line.h"

#define TOGETHER_MAX 256   // lines of a commit
#define READ_BYTES   65536 // at once

// A line and its answer.
struct each_line {
	const char *text;
	size_t len;
	char by[160]; // the author that the agent names; "": the one of the command
	unsigned number;
	struct batch batch; // no line: it is blank
	struct text result;
	struct err answer; // the error, if there is one
};

struct each {
	struct context *ctx;
	const char *file;
	int fd;
	VEC(char) text; // that was read and not yet answered
	bool over;      // nothing more can be read
	unsigned number;
	VEC(struct each_line) lines; // that are answered next
	size_t n, failed;
	struct err first; // the first failure
	bool warned;      // the limits of block --out are printed
};

// ---- reading ------------------------------------------------------------------------------------

// 0 or -errno; at the end e->over is set.
static int read_more(struct each *e)
{
	ssize_t len;

	vec_reserve(&e->text, READ_BYTES);
	do
		len = read(e->fd, e->text.at + e->text.n, READ_BYTES);
	while (len < 0 && errno == EINTR);
	e->over = len <= 0;
	if (len > 0)
		e->text.n += (size_t)len;
	return len < 0 ? -errno : 0;
}

static bool has_line(const struct each *e)
{
	return e->text.n && (e->over || memchr(e->text.at, '\n', e->text.n));
}

static bool more_waits(const struct each *e)
{
	struct pollfd waits = {.fd = e->fd, .events = POLLIN};

	return !e->over && poll(&waits, 1, 0) > 0;
}

// Waits for a line, and reads those that wait already.
static int read_waiting(struct each *e)
{
	int code;

	while (!e->over && !has_line(e))
		if ((code = read_more(e)))
			return code;
	while (e->text.n < READ_BYTES && more_waits(e))
		if ((code = read_more(e)))
			return code;
	return 0;
}

// The first error of a line is its answer.
static void keep_error(void *each, const struct batch_line *line, const struct err *err)
{
	struct each *e = each;

	vec_each (&e->lines, one)
		if (one->batch.lines.n && one->batch.lines.at[0] == line && !one->answer.kind)
			one->answer = *err;
}

static struct batch new_batch(struct each *e)
{
	return (struct batch){.ctx = e->ctx, .file = e->file, .say = keep_error, .say_ctx = e};
}

// Its words without quotes.
static void set_own_text(struct batch_line *line)
{
	struct text t = {0};

	for (size_t w = 0; w < line->split.words.n && t.len < CHANGELOG_TEXT; w++)
		text_addf(&t, "%s%s", w ? " " : "", line->split.words.at[w]);
	line->own = text_take(&t);
}

static void read_line(struct each *e, struct each_line *line)
{
	const char *before = e->ctx->by;

	batch_free(&line->batch);
	line->answer = (struct err){0};
	line->batch = new_batch(e);
	if (line->by[0])
		e->ctx->by = line->by;
	batch_read_line(&line->batch, line->text, line->len, line->number);
	e->ctx->by = before;
	if (line->batch.lines.n)
		set_own_text(line->batch.lines.at[0]);
}

static void take_author(const struct each *e, struct each_line *line)
{
	const char mark = BATCH_AUTHOR[0], *from = line->text + 1, *end;

	if (!e->ctx->by || !line->len || line->text[0] != mark)
		return;
	end = memchr(from, mark, line->len - 1);
	if (!end)
		return;
	snprintf(line->by, sizeof(line->by), "%.*s", (int)(end - from), from);
	line->len -= (size_t)(end + 1 - line->text);
	line->text = end + 1;
}

// The lines that are in the text, up to TOGETHER_MAX. Returns their bytes.
static size_t take_lines(struct each *e)
{
	size_t at = 0;

	while (at < e->text.n && e->lines.n < TOGETHER_MAX) {
		const char *from = e->text.at + at;
		const char *newline = memchr(from, '\n', e->text.n - at);
		size_t len = newline ? (size_t)(newline - from) : e->text.n - at;

		if (!newline && !e->over)
			break;
		vec_push(&e->lines,
			 ((struct each_line){.text = from, .len = len, .number = ++e->number}));
		at += len + (newline != NULL);
	}
	return at;
}

// ---- applying -----------------------------------------------------------------------------------

// The devices are those after the change, for all lines that were applied together.
static void report(struct each *e, struct each_line *line, const struct devices *devices)
{
	const struct batch_line *done = line->batch.lines.at[0];
	struct out *o = e->ctx->out;

	out_set_string(o, "command", done->change.verb);
	line_describe(&line->result, done, e->ctx->instance, NULL, o, NULL);
	text_add(&line->result, " on ");
	show_devices(&line->result, devices, o, &line->answer);
	if (done->change.removes)
		line_report_left(done, o, &line->answer);
}

static void print_answer(struct each *e, const struct each_line *line)
{
	const struct err *answer = &line->answer;
	struct out *o = e->ctx->out;
	bool hint = answer->hint[0];

	e->n++;
	out_set_u64(o, "status", answer->kind);
	if (!answer->kind) {
		out_line(o, "ok %s", text_get(&line->result));
	} else {
		if (!e->failed++)
			e->first = *answer;
		out_error(o, answer->text, answer->hint,
			  answer->code ? err_name(answer->code) : "");
		out_line(o, "error %s%s%s%s", answer->text, hint ? " (" : "", answer->hint,
			 hint ? ")" : "");
	}
	out_next_document(o);
}

// i: the instance after the change; NULL: it was not opened.
static void answer(struct each *e, struct each_line *line, const struct instance *i,
		   const struct devices *devices)
{
	out_set_u64(e->ctx->out, "line", line->number);
	if (i && !line->answer.kind)
		report(e, line, devices);
	if (line->answer.kind == ERR_REFUSED)
		changing_note_line(e->ctx, line->batch.lines.at[0], &line->answer);
	print_answer(e, line);
}

static void look(const struct batch *b, struct devices *ret)
{
	show_damage(&b->changed.damaged);
	if (b->changed.instance)
		devices_read(b->changed.instance, ret, &ret->unknown);
}

static void warn_limits(struct each *e, const struct batch *b)
{
	e->warned = e->warned || batch_warn_limits(b);
}

static void answer_alone(struct each *e, struct each_line *line)
{
	CLEANUP_DEVICES struct devices devices = {0};
	struct batch *b = &line->batch;

	if (!b->failed)
		batch_check(b);
	if (!b->failed)
		batch_apply(b, &line->answer);
	look(b, &devices);
	if (!line->answer.kind)
		warn_limits(e, b);
	answer(e, line, b->changed.instance, &devices);
	changed_free(&b->changed); // an open instance for each line would take all descriptors
}

// It waits for no name server and no file, and concerns few entries.
static bool is_plain(const struct each_line *line)
{
	const struct batch_line *l = line->batch.lines.n ? line->batch.lines.at[0] : NULL;

	if (!l || l->change.failed || args_has(l->args, "file") || args_has(l->args, "sync") ||
	    l->change.scope != SCOPE_TARGETS)
		return false;
	return !l->change.targets.items.names && !l->change.targets.items.geos;
}

// False: nothing has changed, and each line is to be tried for itself.
static bool apply_together(struct batch *b)
{
	struct err err = {0};
	size_t failed;

	batch_check(b);
	failed = b->failed;
	if (b->unguarded)
		return false;
	if (failed == b->lines.n)
		return true;
	return !batch_apply(b, &err) && b->failed == failed;
}

static void answer_together(struct each *e, struct each_line *lines, size_t n)
{
	CLEANUP_DEVICES struct devices devices = {0};
	struct batch b = new_batch(e);
	bool done;

	for (size_t l = 0; l < n; l++)
		vec_push(&b.lines, lines[l].batch.lines.at[0]);
	done = apply_together(&b);
	look(&b, &devices);
	if (done)
		warn_limits(e, &b);
	for (size_t l = 0; l < n; l++) {
		if (done) {
			answer(e, &lines[l], b.changed.instance, &devices);
			continue;
		}
		read_line(e, &lines[l]);
		answer_alone(e, &lines[l]);
	}
	b.lines.n = 0; // they belong to their own batches
	batch_free(&b);
}

static size_t count_plain(const struct each *e, size_t from)
{
	size_t n = 0;

	while (from + n < e->lines.n && is_plain(&e->lines.at[from + n]))
		n++;
	return n;
}

static void answer_lines(struct each *e)
{
	for (size_t l = 0, n; l < e->lines.n && !out_failed(e->ctx->out); l += n ? n : 1) {
		n = count_plain(e, l);
		if (n > 1)
			answer_together(e, &e->lines.at[l], n);
		else if (e->lines.at[l].batch.lines.n)
			answer_alone(e, &e->lines.at[l]);
	}
}

static void forget_lines(struct each *e, size_t bytes)
{
	vec_each (&e->lines, line) {
		batch_free(&line->batch);
		text_free(&line->result);
	}
	e->lines.n = 0;
	e->text.n -= bytes;
	memmove(e->text.at, e->text.at + bytes, e->text.n);
}

// The first of the lines that are waiting now.
static void answer_waiting(struct each *e)
{
	size_t bytes = take_lines(e);

	vec_each (&e->lines, line) {
		take_author(e, line);
		read_line(e, line);
	}
	answer_lines(e);
	forget_lines(e, bytes);
}

// ---- the command --------------------------------------------------------------------------------

static void each_free(struct each *e)
{
	if (e->fd != STDIN_FILENO)
		fd_close(e->fd);
	vec_free(&e->text);
	vec_free(&e->lines);
}

static int finish(const struct each *e, struct err *err)
{
	struct out *o = e->ctx->out;

	e->ctx->noted = NOTED_ALL;
	out_set_bool(o, "end", true);
	out_set_u64(o, "commands", e->n);
	out_set_u64(o, "failed", e->failed);
	if (!e->failed)
		return 0;
	*err = (struct err){.kind = e->first.kind, .code = e->first.code};
	snprintf(err->text, sizeof(err->text), "%zu of %zu %s failed", e->failed, e->n,
		 num_plural(e->n, "command", "commands"));
	return e->first.code ? -e->first.code : -EINVAL;
}

static int answer_all(struct each *e, struct err *err)
{
	while (!out_failed(e->ctx->out)) {
		int code = read_waiting(e);

		if (code)
			return err_system(err, -code, "cannot read '%s'",
					  batch_shown_file(e->file));
		if (!has_line(e))
			break;
		answer_waiting(e);
	}
	return finish(e, err);
}

int batch_each(struct context *ctx, const char *file, struct err *err)
{
	bool standard = !file || !strcmp(file, "-");
	CLEANUP(each_free)
	struct each e = {
		.ctx = ctx,
		.file = standard ? "-" : file,
		.fd = standard ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC),
	};

	if (e.fd < 0) {
		err_system(err, errno, "cannot open '%s'", file);
		err->kind = ERR_INPUT;
		return -err->code;
	}
	return answer_all(&e, err);
}
