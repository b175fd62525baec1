// SPDX-License-Identifier: GPL-2.0-only
// Lines, and the heads and checksums of frames. A byte that does not fit refuses the line.
#include "ctl/control/entries/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/base/sum.h"

#define CLOCK_MAX (INT64_MAX / 4) // seconds; so that differences of differences fit

#define PART      "part bytes "
#define CHANGE    "change bytes "
#define EPOCH     " epoch "
#define SUM_BYTES (sizeof("sum \n") - 1 + sizeof(sum_text) - 1)
#define OLD_HEAD  "weir-overlay 1 epoch "
#define ANY_HEAD  "weir-overlay "

// ---- lines --------------------------------------------------------------------------------------

static const char *const kind_names[OVERLAY_KINDS] = {
	[OVERLAY_BLOCK_FROM] = "block from ",
	[OVERLAY_ALLOW_FROM] = "allow from ",
	[OVERLAY_BLOCK_TO] = "block to ",
	[OVERLAY_ALLOW_TO] = "allow to ",
	[OVERLAY_ALLOW_OUT] = "allow out ",
	[OVERLAY_BLOCK_OUT] = "block out ",
	[OVERLAY_BLOCK_OUT_REFUSED] = "block out-refused ",
	[OVERLAY_BLOCK_OUT_UNREACHABLE] = "block out-unreachable ",
	[OVERLAY_BLOCK_OUT_ALL] = "block out-all ",
	[OVERLAY_BLOCK_OUT_ALL_REFUSED] = "block out-all-refused ",
	[OVERLAY_BLOCK_OUT_ALL_UNREACHABLE] = "block out-all-unreachable ",
};

// Counts the bytes of s that need no escape between quotes.
static size_t count_plain(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && s[n] != '"' && s[n] != '\\') {
		bool ascii = s[n] >= ' ' && s[n] < 0x7f;
		size_t step = ascii ? 1 : text_shown(s + n, len - n);

		if (!step)
			break;
		n += step;
	}
	return n;
}

static void print_string(struct text *t, const char *word, const char *s)
{
	size_t left = strlen(s);

	text_add(t, word);
	text_addc(t, '"');
	while (left) {
		size_t n = count_plain(s, left);

		text_addn(t, s, n);
		s += n;
		left -= n;
		if (!left)
			break;
		if (*s == '"' || *s == '\\')
			text_addf(t, "\\%c", *s);
		else
			text_addf(t, "\\x%02x", (unsigned)(uint8_t)*s);
		s++;
		left--;
	}
	text_addc(t, '"');
}

void journal_print_owner(struct text *t, uint32_t number, const struct owner *owner)
{
	text_addf(t, "holder %" PRIu32 " since %" PRIu64, number, owner->since_s);
	if (owner->fleeting)
		text_add(t, " fleeting");
	if (owner->group)
		text_addf(t, " group %" PRIu32, owner->group);
	print_string(t, " origin ", owner->origin);
	print_string(t, " list ", owner->list);
	print_string(t, " name ", owner->name);
	print_string(t, " note ", owner->note);
	print_string(t, " by ", owner->by);
	text_addc(t, '\n');
}

static void print_reference(struct text *t, const struct reference *r, uint32_t number)
{
	addr_text prefix;

	text_add(t, kind_names[r->kind]);
	text_add(t, prefix_format(&r->prefix, prefix));
	text_addf(t, " by %" PRIu32, number);
}

void journal_print_add(struct text *t, const struct reference *r, uint32_t number)
{
	print_reference(t, r, number);
	if (r->until_s == RECORD_NEVER)
		text_add(t, " until never\n");
	else
		text_addf(t, " until %" PRIu64 "\n", r->until_s);
}

void journal_print_remove(struct text *t, const struct reference *r, uint32_t number)
{
	text_add(t, "remove ");
	print_reference(t, r, number);
	text_addc(t, '\n');
}

void journal_print_clock(struct text *t, const struct records_clock *clock)
{
	if (clock->boot[0])
		text_addf(t, " wall %" PRIu64 " up %" PRIu64 " boot %s", clock->wall_s, clock->up_s,
			  clock->boot);
}

// Compares the rest of a line.
struct line_rest {
	const char *at, *end;
};

// Does the rest begin with this text? Then it is taken.
static bool take(struct line_rest *in, const char *text)
{
	size_t len = strlen(text);

	if ((size_t)(in->end - in->at) < len || memcmp(in->at, text, len) != 0)
		return false;
	in->at += len;
	return true;
}

// Returns the bytes before the next blank. They may be empty, which no parser of words accepts.
static const char *take_word(struct line_rest *in, size_t *ret_len)
{
	const char *word = in->at;
	const char *blank = memchr(word, ' ', (size_t)(in->end - word));

	in->at = blank ? blank : in->end;
	*ret_len = (size_t)(in->at - word);
	return word;
}

static bool take_u64(struct line_rest *in, uint64_t max, uint64_t *ret)
{
	size_t len;
	const char *word = take_word(in, &len);

	return num_parse_u64(word, len, 0, max, ret) == 0;
}

// Parses the byte after "\x". A NUL would end the string early.
static bool take_hex(struct line_rest *in, char *ret)
{
	char number[] = "0x00";
	uint32_t byte;

	if (in->end - in->at < 2)
		return false;
	memcpy(number + 2, in->at, 2);
	if (num_parse_hex32(number, 4, &byte) < 0 || !byte)
		return false;
	in->at += 2;
	*ret = (char)byte;
	return true;
}

// Reads one byte of a quoted string and removes its escape.
static bool take_char(struct line_rest *in, char *ret)
{
	if (in->at == in->end || (uint8_t)*in->at < 0x20 || *in->at == 0x7f)
		return false;
	*ret = *in->at++;
	if (*ret != '\\')
		return true;
	if (take(in, "x"))
		return take_hex(in, ret);
	if (!take(in, "\"") && !take(in, "\\"))
		return false;
	*ret = in->at[-1];
	return true;
}

// Reads a word and the quoted string after it, unquoted to *spare, which moves past the string.
static bool take_string(struct line_rest *in, const char *word, char **spare, char **ret)
{
	char *to = *spare;

	if (!take(in, word) || !take(in, "\""))
		return false;
	*ret = to;
	while (!take(in, "\""))
		if (!take_char(in, to++))
			return false;
	*to++ = '\0';
	*spare = to;
	return true;
}

static bool take_boot(struct line_rest *in, char ret[RECORDS_BOOT + 1])
{
	size_t len;
	const char *word = take_word(in, &len);

	if (len != RECORDS_BOOT || strspn(word, "0123456789abcdef-") < len)
		return false;
	memcpy(ret, word, len);
	return true;
}

static bool take_clock(struct line_rest *in, struct records_clock *ret)
{
	return take(in, " wall ") && take_u64(in, CLOCK_MAX, &ret->wall_s) && take(in, " up ") &&
	       take_u64(in, CLOCK_MAX, &ret->up_s) && take(in, " boot ") &&
	       take_boot(in, ret->boot) && in->at == in->end;
}

const char *journal_parse_clock(const char **at, const char *end, struct records_clock *ret)
{
	struct line_rest in = {*at, end};

	if (in.at == in.end)
		return NULL;
	*at = in.end;
	return take_clock(&in, ret) ? NULL : "invalid clock";
}

static const char *parse_owner(struct line_rest *in, char *spare, struct journal_line *ret)
{
	struct owner *h = &ret->owner;
	uint64_t number, group = 0;

	ret->what = JOURNAL_OWNER;
	if (!spare || !take_u64(in, JOURNAL_OWNERS_MAX, &number))
		return "unexpected holder";
	ret->reference.owner = (uint32_t)number;
	if (!take(in, " since ") || !take_u64(in, UINT64_MAX, &h->since_s))
		return "the holder's time is not a number";
	h->fleeting = take(in, " fleeting");
	if (take(in, " group ") && !take_u64(in, UINT32_MAX, &group))
		return "the holder's group is not a number";
	h->group = (uint32_t)group;
	if (!take_string(in, " origin ", &spare, &h->origin) ||
	    !take_string(in, " list ", &spare, &h->list) ||
	    !take_string(in, " name ", &spare, &h->name) ||
	    !take_string(in, " note ", &spare, &h->note) ||
	    !take_string(in, " by ", &spare, &h->by) || in->at != in->end)
		return "invalid words of the holder";
	return NULL;
}

static bool take_kind(struct line_rest *in, uint8_t *ret)
{
	for (unsigned kind = 0; kind < OVERLAY_KINDS; kind++) {
		if (take(in, kind_names[kind])) {
			*ret = (uint8_t)kind;
			return true;
		}
	}
	return false;
}

// A mapped address of a packet or an AAAA record is IPv6 in the records and stays so, although
// prefix_parse reads the same text as IPv4.
static struct prefix mapped_again(const struct prefix *p)
{
	struct prefix mapped = {.addr = {.family = 6, .bytes = {[10] = 0xff, 0xff}}};

	memcpy(mapped.addr.bytes + 12, p->addr.bytes, 4);
	mapped.len = (uint8_t)(p->len + 96);
	return mapped;
}

static bool take_prefix(struct line_rest *in, struct prefix *ret)
{
	bool mapped;
	size_t len;
	const char *word = take_word(in, &len);

	if (prefix_parse_quiet(word, len, ret, &mapped) < 0)
		return false;
	if (mapped)
		*ret = mapped_again(ret);
	return true;
}

static bool take_until(struct line_rest *in, uint64_t *ret)
{
	*ret = RECORD_NEVER;
	return take(in, "never") || take_u64(in, RECORD_NEVER - 1, ret);
}

static const char *parse_reference(struct line_rest *in, struct journal_line *ret)
{
	struct reference *r = &ret->reference;
	uint64_t number;

	ret->what = take(in, "remove ") ? JOURNAL_REMOVE : JOURNAL_ADD;
	if (!take_kind(in, &r->kind))
		return "unknown first word of the line";
	if (!take_prefix(in, &r->prefix))
		return "missing address of the entry";
	if (!take(in, " by ") || !take_u64(in, JOURNAL_OWNERS_MAX, &number))
		return "unknown holder of the entry";
	r->owner = (uint32_t)number;
	if (ret->what == JOURNAL_ADD && (!take(in, " until ") || !take_until(in, &r->until_s)))
		return "the entry's end is neither a number nor 'never'";
	return in->at == in->end ? NULL : "unexpected text after the entry";
}

const char *journal_line_parse(const char *line, size_t len, char *spare, struct journal_line *ret)
{
	struct line_rest in = {line, line + len};

	*ret = (struct journal_line){0};
	return take(&in, "holder ") ? parse_owner(&in, spare, ret) : parse_reference(&in, ret);
}

// ---- heads of frames ----------------------------------------------------------------------------

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
