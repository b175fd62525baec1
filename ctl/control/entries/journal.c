// SPDX-License-Identifier: GPL-2.0-only
// Heads, checksums and lines of frames.
#include "ctl/control/entries/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/base/sum.h"

#define PART      "part bytes "
#define CHANGE    "change bytes "
#define EPOCH     " epoch "
#define SUM_BYTES (sizeof("sum \n") - 1 + sizeof(sum_text) - 1)
#define OLD_HEAD  "weir-overlay 1 epoch "
#define ANY_HEAD  "weir-overlay "

static bool begins(const char *at, const char *end, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(end - at) >= len && !memcmp(at, word, len);
}

// The digits from *at to the next blank or the end.
static bool take_number(const char **at, const char *end, uint64_t *ret)
{
	const char *from = *at;
	const char *blank = memchr(from, ' ', (size_t)(end - from));

	*at = blank ? blank : end;
	return !num_parse_u64(from, (size_t)(*at - from), 0, UINT64_MAX, ret);
}

// Parses the head, from its first byte to its newline. Returns NULL, or what is wrong.
static const char *parse_head(const char *at, const char *end, struct journal_frame *ret,
			      uint64_t *ret_bytes)
{
	ret->part = begins(at, end, PART);
	if (!ret->part && !begins(at, end, CHANGE))
		return "not the head of a change";
	at += strlen(ret->part ? PART : CHANGE);
	if (!take_number(&at, end, ret_bytes))
		return "the length of the change is not a number";
	if (ret->part)
		return at == end ? NULL : "unexpected text after the length";
	if (!begins(at, end, EPOCH))
		return "the change has no epoch";
	at += strlen(EPOCH);
	if (!take_number(&at, end, &ret->epoch) || !ret->epoch)
		return "the epoch is not a number";
	return journal_parse_clock(&at, end, &ret->clock);
}

static bool sum_is_right(const char *text, const struct journal_frame *f)
{
	const char *line = text + f->lines_end;
	sum_text sum;

	sum_of(text + f->at, f->lines_end - f->at, sum);
	return begins(line, line + SUM_BYTES, "sum ") && line[SUM_BYTES - 1] == '\n' &&
	       !memcmp(line + 4, sum, sizeof(sum) - 1);
}

enum journal_found journal_find_own(const char *text, size_t len, size_t at,
				    struct journal_frame *ret, const char **why)
{
	struct journal_frame f = {.at = at};
	const char *newline;
	uint64_t bytes = 0;

	if (at == len)
		return JOURNAL_END;
	newline = memchr(text + at, '\n', len - at);
	if (!newline)
		return JOURNAL_CUT;
	if ((*why = parse_head(text + at, newline, &f, &bytes)))
		return JOURNAL_DAMAGED;
	f.lines = (size_t)(newline + 1 - text);
	if (bytes > len - f.lines || len - f.lines - bytes < SUM_BYTES)
		return JOURNAL_CUT;
	f.lines_end = f.lines + bytes;
	f.end = f.lines_end + SUM_BYTES;
	*ret = f;
	return JOURNAL_FRAME;
}

enum journal_found journal_find(const char *text, size_t len, size_t at, struct journal_frame *ret,
				const char **why)
{
	struct journal_frame f;
	enum journal_found found = journal_find_own(text, len, at, &f, why);

	if (found != JOURNAL_FRAME)
		return found;
	if (!sum_is_right(text, &f)) {
		*why = "checksum mismatch";
		return JOURNAL_DAMAGED;
	}
	*ret = f;
	return JOURNAL_FRAME;
}

// Visits the line at *at, which moves past its newline. Returns NULL, or what is wrong.
static const char *visit_line(const char *text, size_t *at, size_t end, char *spare,
			      journal_visit *visit, void *ctx)
{
	const char *line = text + *at, *newline = memchr(line, '\n', end - *at);
	struct journal_line parsed;
	size_t from = *at, len;
	const char *why;

	if (!newline)
		return "a line without an end";
	len = (size_t)(newline - line);
	*at += len + 1;
	why = journal_line_parse(line, len, spare, &parsed);
	return why ? why : visit(ctx, &parsed, from, len);
}

const char *journal_lines(const char *text, const struct journal_frame *f, journal_visit *visit,
			  void *ctx)
{
	// No line's strings take more room unquoted. Unused pages cost nothing.
	CLEANUP_FREE char *spare = mem_zalloc(f->lines_end - f->lines + 1, 1);

	for (size_t at = f->lines; at < f->lines_end;) {
		const char *why = visit_line(text, &at, f->lines_end, spare, visit, ctx);

		if (why)
			return why;
	}
	return NULL;
}

static void print_frame(struct text *t, size_t from, const char *lines, size_t len)
{
	sum_text sum;

	text_addc(t, '\n');
	text_addn(t, lines, len);
	sum_of(t->at + from, t->len - from, sum);
	text_addf(t, "sum %s\n", sum);
}

void journal_print_part(struct text *t, const char *lines, size_t len)
{
	size_t from = t->len;

	text_addf(t, PART "%zu", len);
	print_frame(t, from, lines, len);
}

void journal_print_change(struct text *t, const char *lines, size_t len, uint64_t epoch,
			  const struct records_clock *clock)
{
	size_t from = t->len;

	text_addf(t, CHANGE "%zu" EPOCH "%" PRIu64, len, epoch);
	journal_print_clock(t, clock);
	print_frame(t, from, lines, len);
}

// ---- version 1 ----------------------------------------------------------------------------------

bool journal_is_old(const char *text, size_t len)
{
	return begins(text, text + len, OLD_HEAD);
}

bool journal_is_newer(const char *text, size_t len)
{
	const char *at = text + strlen(ANY_HEAD), *end = text + len;
	uint64_t version;

	if (!begins(text, end, ANY_HEAD) || !(end = memchr(at, '\n', (size_t)(end - at))))
		return false;
	return take_number(&at, end, &version) && version > 2;
}

struct old_lines {
	journal_visit *visit;
	void *ctx;
	size_t entries;
};

static const char *visit_old(void *ctx, const struct journal_line *line, size_t at, size_t len)
{
	struct old_lines *old = ctx;

	if (line->what == JOURNAL_REMOVE)
		return "unknown first word of the line";
	if (line->what == JOURNAL_OWNER && old->entries)
		return "unexpected holder";
	old->entries += line->what == JOURNAL_ADD;
	return old->visit(old->ctx, line, at, len);
}

static int old_error(struct err *err, size_t line, const char *why)
{
	return err_input(err, "line %zu: %s", line, why);
}

// Parses the last line, "end N", from its first byte.
static const char *parse_old_end(const char *at, const char *end, size_t entries)
{
	uint64_t n;

	at += strlen("end ");
	if (!take_number(&at, end, &n) || at != end || n != entries)
		return "wrong number of entries";
	return NULL;
}

static int find_old_lines(const char *text, size_t len, size_t at, char *spare,
			  struct old_lines *old, size_t *ret_end, struct err *err)
{
	for (size_t line = 2;; line++) {
		const char *newline = memchr(text + at, '\n', len - at), *why;

		if (!newline)
			return old_error(err, line, "the file is truncated");
		if (begins(text + at, newline, "end ")) {
			*ret_end = at;
			why = parse_old_end(text + at, newline, old->entries);
			if (!why && newline + 1 != text + len)
				why = "unexpected text after the end";
			return why ? old_error(err, line, why) : 0;
		}
		if ((why = visit_line(text, &at, len, spare, visit_old, old)))
			return old_error(err, line, why);
	}
}

int journal_find_old(const char *text, size_t len, struct journal_frame *ret, journal_visit *visit,
		     void *ctx, struct err *err)
{
	CLEANUP_FREE char *spare = mem_zalloc(len + 1, 1);
	struct old_lines old = {visit, ctx, 0};
	struct journal_frame f = {0};
	const char *at = text + strlen(OLD_HEAD), *newline, *why;
	int code;

	if (sum_open(text, &len))
		return err_input(err, "checksum mismatch");
	if (!(newline = memchr(text, '\n', len)))
		return old_error(err, 1, "the file is truncated");
	if (!take_number(&at, newline, &f.epoch))
		return old_error(err, 1, "the epoch is not a number");
	if ((why = journal_parse_clock(&at, newline, &f.clock)))
		return old_error(err, 1, why);
	f.lines = (size_t)(newline + 1 - text);
	code = find_old_lines(text, len, f.lines, spare, &old, &f.lines_end, err);
	if (code)
		return code;
	f.end = len;
	*ret = f;
	return 0;
}
