// SPDX-License-Identifier: GPL-2.0-only
// weir event-writer: the process of `weir run --events`. It reads documents from standard input, a
// line each, and writes them where agent/event_log.h says. The command is not in `weir help`.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/agent/event_log.h"
#include "ctl/agent/history_plan.h"
#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/event_sink.h"
#include "ctl/cmd/event_text.h"

#define LINE_MAX_BYTES (1u << 17)
#define PIECE          16384
#define LINES_A_SECOND 1000
#define SECOND_MS      1000
#define LEAVE_S        1 // after the end of the input
#define TOO_MANY       "more than 1000 lines in a second"

struct event_writer {
	struct context *ctx;
	struct event_sink *sink;
	struct history_lines lines;
	uint64_t second_ms;     // monotonic; when this second began
	unsigned n;             // lines in it
	uint64_t written, lost; // events so far; lost: here, not by the agent
	uint64_t missed;        // events that no line has reported yet
	struct err why;         // the last line could not be written; text "": it could
	char missed_why[sizeof(((struct err *)0)->text)];
	bool changed; // since the last report
	uint64_t reported_ms;
};

static void miss(struct event_writer *w, uint64_t n, const char *why)
{
	w->missed += n;
	snprintf(w->missed_why, sizeof(w->missed_why), "%s", why);
	w->changed = true;
}

static void lose(struct event_writer *w, const char *why)
{
	w->lost++;
	miss(w, 1, why);
}

static void note(struct event_writer *w, const struct err *err)
{
	if (strcmp(err->text, w->why.text) != 0)
		w->changed = true;
	w->why = *err;
}

static int write_line(struct event_writer *w, const char *line, size_t len)
{
	struct err err = {0};
	int code = event_sink_write(w->sink, line, len, &err);

	note(w, &err);
	return code;
}

static void reopen(struct event_writer *w)
{
	struct err err = {0};

	event_sink_reopen(w->sink, &err);
	note(w, &err);
}

static int write_missed(struct event_writer *w)
{
	CLEANUP_TEXT struct text line = {0};
	int code;

	if (!w->missed)
		return 0;
	event_missed_line(w->missed, w->missed_why, &line);
	code = write_line(w, line.at, line.len);
	if (code)
		return code;
	w->missed = 0;
	w->n++;
	return 0;
}

// A new second; the lines that the last one had too many are reported in it.
static void turn_second(struct event_writer *w)
{
	uint64_t now_ms = time_ms(CLOCK_MONOTONIC);

	if (now_ms - w->second_ms < SECOND_MS)
		return;
	w->second_ms = now_ms;
	w->n = 0;
	write_missed(w);
}

// Returns why it was not written, or NULL.
static const char *take_any(struct event_writer *w, const char *line, size_t len)
{
	turn_second(w);
	if (w->n >= LINES_A_SECOND)
		return TOO_MANY;
	w->n++;
	return write_missed(w) || write_line(w, line, len) ? w->why.text : NULL;
}

static void take_event(struct event_writer *w, const char *line, size_t len)
{
	const char *why = take_any(w, line, len);

	if (why) {
		lose(w, why);
		return;
	}
	w->written++;
	w->changed = true;
}

// A line that is not an event: what the agent has left out, its trouble, or a request to reopen.
static void take_other(struct event_writer *w, const struct json *document, const char *line,
		       size_t len)
{
	uint64_t missed = json_get_u64(document, "missed");

	if (json_is_yes(json_get(document, "reopen")))
		reopen(w);
	else if (missed)
		miss(w, missed, "they arrived faster than they were recorded");
	else if (json_get(document, "error"))
		take_any(w, line, len);
}

// Events have the key of their moment before any text from outside.
static void take_line(struct event_writer *w)
{
	const char *line = w->lines.line.at;
	size_t len = w->lines.line.len;
	CLEANUP_JSON struct json *document = NULL;

	if (memmem(line, len, "\"packet\":", 9) || memmem(line, len, "\"verb\":", 7)) {
		take_event(w, line, len);
		return;
	}
	document = json_parse(line, len, NULL, 0);
	take_other(w, document, line, len);
}

static void report(struct event_writer *w, bool now)
{
	uint64_t now_ms = time_ms(CLOCK_MONOTONIC);
	struct out *o = w->ctx->out;

	if (!w->changed || (!now && now_ms - w->reported_ms < SECOND_MS))
		return;
	w->changed = false;
	w->reported_ms = now_ms;
	out_set_u64(o, "written", w->written);
	out_set_u64(o, "lost", w->lost);
	out_set_string(o, "why", w->why.text[0] ? w->why.text : NULL);
	out_next_document(o);
}

// Sleeps until input, or until something is to be reported. False: the input has ended.
static bool read_input(struct event_writer *w)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char piece[PIECE];
	const char *at = piece;
	ssize_t got;
	size_t len;

	if (poll(&input, 1, w->changed || w->missed ? SECOND_MS : -1) <= 0)
		return true;
	got = read(STDIN_FILENO, piece, sizeof(piece));
	if (got < 0)
		return errno == EINTR;
	for (len = (size_t)got; len;)
		if (history_lines_take(&w->lines, LINE_MAX_BYTES, &at, &len) == HISTORY_LINE_WHOLE)
			take_line(w);
	return got > 0;
}

// The agent ends this process by the end of its input, after the last events; a service manager
// sends signals to all processes of the agent.
static void ignore_signals(void)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};

	for (size_t n = 0; n < ARRAY_SIZE(numbers); n++)
		signal(numbers[n], SIG_IGN);
}

static void writer_free(struct event_writer *w)
{
	event_sink_free(w->sink);
	text_free(&w->lines.line);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(writer_free) struct event_writer w = {.ctx = ctx, .changed = true};
	int code = args_expect_words(args, 1, 1, "journal, stderr or FILE", err);

	if (code)
		return code;
	ignore_signals();
	w.sink = event_sink_new(args->words.at[0]);
	report(&w, true);
	while (read_input(&w)) {
		turn_second(&w);
		report(&w, false);
	}
	alarm(LEAVE_S);
	write_missed(&w);
	report(&w, true);
	return 0;
}

const struct command cmd_event_writer = {
	.name = EVENT_WRITER,
	.usage = "journal|stderr|FILE",
	.summary = "write the events of an agent",
	.run = run,
};
