// SPDX-License-Identifier: GPL-2.0-only
// The records as the text of their file, and back; any damage is an error.
//
//   weir-overlay 1 epoch 17 wall 1790000400 up 86400 boot 8f0c2b6e-0d0c-4a53-9d0e-0a6ad6a3f3c1
//   holder 0 since 1790000000 origin "" list "" name "" note "abuse 4711" by "root"
//   holder 1 since 1790000300 fleeting origin "fail2ban" list "" name "" note "" by "root"
//   block from 203.0.113.7 by 0 until never
//   block from 203.0.113.7 by 1 until 1790000900
//   end 2
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/control/records.h"

#define HEADER    "weir-overlay "
#define VERSION   "1"
#define UNUSED    UINT32_MAX      // the new number of an owner without records
#define CLOCK_MAX (INT64_MAX / 4) // seconds; so that differences of differences fit

static const char *const kind_names[OVERLAY_KINDS] = {
	[OVERLAY_BLOCK_FROM] = "block from ",
	[OVERLAY_ALLOW_FROM] = "allow from ",
	[OVERLAY_BLOCK_TO] = "block to ",
	[OVERLAY_ALLOW_TO] = "allow to ",
};

// The new number of each owner.
static uint32_t *number_owners(const struct records *r)
{
	uint32_t *ids = mem_zalloc(r->owners.n, sizeof(*ids)), next = 0;

	vec_each (&r->list, record)
		ids[record->owner] = 1;
	for (size_t i = 0; i < r->owners.n; i++)
		ids[i] = ids[i] ? next++ : UNUSED;
	return ids;
}

// How many bytes of s stand for themselves between quotes.
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

static void print_owner(struct text *t, uint32_t id, const struct owner *h)
{
	text_addf(t, "holder %" PRIu32 " since %" PRIu64, id, h->since_s);
	if (h->fleeting)
		text_add(t, " fleeting");
	print_string(t, " origin ", h->origin);
	print_string(t, " list ", h->list);
	print_string(t, " name ", h->name);
	print_string(t, " note ", h->note);
	print_string(t, " by ", h->by);
	text_addc(t, '\n');
}

static void print_record(struct text *t, uint32_t owner, const struct record *record)
{
	addr_text prefix;

	text_add(t, kind_names[record->kind]);
	text_add(t, prefix_format(&record->prefix, prefix));
	if (record->until_s == RECORD_NEVER)
		text_addf(t, " by %" PRIu32 " until never\n", owner);
	else
		text_addf(t, " by %" PRIu32 " until %" PRIu64 "\n", owner, record->until_s);
}

static void print_header(struct text *t, const struct records *r)
{
	text_addf(t, HEADER VERSION " epoch %" PRIu64, r->epoch);
	if (r->clock.boot[0])
		text_addf(t, " wall %" PRIu64 " up %" PRIu64 " boot %s", r->clock.wall_s,
			  r->clock.up_s, r->clock.boot);
	text_addc(t, '\n');
}

char *records_print(const struct records *r, size_t *ret_len)
{
	CLEANUP_FREE uint32_t *ids = number_owners(r);
	struct text t = {0};

	print_header(&t, r);
	for (size_t i = 0; i < r->owners.n; i++)
		if (ids[i] != UNUSED)
			print_owner(&t, ids[i], &r->owners.at[i]);
	vec_each (&r->list, record)
		print_record(&t, ids[record->owner], record);
	text_addf(&t, "end %zu\n", r->list.n);
	*ret_len = t.len;
	return text_take(&t);
}

struct records_reading {
	const char *at, *line_end; // the rest of the line
	const char *next, *end;    // the rest of the text after it
	unsigned line;
	char *spare; // room for the strings of one line, unquoted
	struct records *records;
	struct err *err;
};

static int damaged(const struct records_reading *in, const char *what)
{
	err_input(in->err, "line %u: %s", in->line, what);
	return -EINVAL;
}

// Goes to the next line. The last one, too, has its newline: a text without it was cut off.
static int next_line(struct records_reading *in)
{
	const char *newline = memchr(in->next, '\n', (size_t)(in->end - in->next));

	in->line++;
	if (!newline)
		return damaged(in, "the file is truncated");
	in->at = in->next;
	in->line_end = newline;
	in->next = newline + 1;
	return 0;
}

// Does the rest of the line begin with this text? Then it is taken.
static bool take(struct records_reading *in, const char *text)
{
	size_t len = strlen(text);

	if ((size_t)(in->line_end - in->at) < len || memcmp(in->at, text, len) != 0)
		return false;
	in->at += len;
	return true;
}

// The bytes before the next blank; may be empty, which no parser of words accepts.
static const char *take_word(struct records_reading *in, size_t *ret_len)
{
	const char *word = in->at;
	const char *blank = memchr(word, ' ', (size_t)(in->line_end - word));

	in->at = blank ? blank : in->line_end;
	*ret_len = (size_t)(in->at - word);
	return word;
}

static bool take_u64(struct records_reading *in, uint64_t max, uint64_t *ret)
{
	size_t len;
	const char *word = take_word(in, &len);

	return num_parse_u64(word, len, 0, max, ret) == 0;
}

// The byte after "\x". A NUL would end the string early.
static bool take_hex(struct records_reading *in, char *ret)
{
	char number[] = "0x00";
	uint32_t byte;

	if (in->line_end - in->at < 2)
		return false;
	memcpy(number + 2, in->at, 2);
	if (num_parse_hex32(number, 4, &byte) < 0 || !byte)
		return false;
	in->at += 2;
	*ret = (char)byte;
	return true;
}

// One byte of a quoted string, escapes undone.
static bool take_char(struct records_reading *in, char *ret)
{
	if (in->at == in->line_end || (uint8_t)*in->at < 0x20 || *in->at == 0x7f)
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

// A word and the quoted string after it, unquoted to *spare, which moves on.
static bool take_string(struct records_reading *in, const char *word, char **spare, char **ret)
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

static bool take_boot(struct records_reading *in, char ret[RECORDS_BOOT + 1])
{
	size_t len;
	const char *word = take_word(in, &len);

	if (len != RECORDS_BOOT || strspn(word, "0123456789abcdef-") < len)
		return false;
	memcpy(ret, word, len);
	return true;
}

static bool take_clock(struct records_reading *in, struct records_clock *ret)
{
	return take(in, " wall ") && take_u64(in, CLOCK_MAX, &ret->wall_s) && take(in, " up ") &&
	       take_u64(in, CLOCK_MAX, &ret->up_s) && take(in, " boot ") &&
	       take_boot(in, ret->boot) && in->at == in->line_end;
}

static int parse_header(struct records_reading *in)
{
	int code = next_line(in);

	if (code < 0)
		return code;
	if (!take(in, HEADER))
		return damaged(in, "not an overlay file");
	if (!take(in, VERSION " epoch "))
		return damaged(in,
			       "unsupported version of the overlay file (expected version " VERSION
			       ")");
	if (!take_u64(in, UINT64_MAX, &in->records->epoch))
		return damaged(in, "the epoch is not a number");
	// Files of older versions have no clock.
	if (in->at != in->line_end && !take_clock(in, &in->records->clock))
		return damaged(in, "invalid clock");
	return 0;
}

static int parse_owner(struct records_reading *in)
{
	struct owner h = {0};
	char *spare = in->spare;
	uint64_t id;

	if (!take_u64(in, UINT32_MAX - 1, &id) || id != in->records->owners.n ||
	    in->records->list.n)
		return damaged(in, "unexpected holder");
	if (!take(in, " since ") || !take_u64(in, UINT64_MAX, &h.since_s))
		return damaged(in, "the holder's time is not a number");
	h.fleeting = take(in, " fleeting");
	if (!take_string(in, " origin ", &spare, &h.origin) ||
	    !take_string(in, " list ", &spare, &h.list) ||
	    !take_string(in, " name ", &spare, &h.name) ||
	    !take_string(in, " note ", &spare, &h.note) ||
	    !take_string(in, " by ", &spare, &h.by) || in->at != in->line_end)
		return damaged(in, "invalid words of the holder");
	records_owner(in->records, &h);
	return 0;
}

static bool take_kind(struct records_reading *in, uint8_t *ret)
{
	for (unsigned kind = 0; kind < OVERLAY_KINDS; kind++) {
		if (take(in, kind_names[kind])) {
			*ret = (uint8_t)kind;
			return true;
		}
	}
	return false;
}

// A mapped address that came from a packet or an AAAA record is IPv6 in the records and stays so,
// although prefix_parse reads the same text as IPv4.
static struct prefix mapped_again(const struct prefix *p)
{
	struct prefix mapped = {.addr = {.family = 6, .bytes = {[10] = 0xff, 0xff}}};

	memcpy(mapped.addr.bytes + 12, p->addr.bytes, 4);
	mapped.len = (uint8_t)(p->len + 96);
	return mapped;
}

static bool take_prefix(struct records_reading *in, struct prefix *ret)
{
	bool mapped;
	size_t len;
	const char *word = take_word(in, &len);

	if (prefix_parse(word, len, ret, &mapped, NULL) < 0)
		return false;
	if (mapped)
		*ret = mapped_again(ret);
	return true;
}

static bool take_until(struct records_reading *in, uint64_t *ret)
{
	*ret = RECORD_NEVER;
	return take(in, "never") || take_u64(in, RECORD_NEVER - 1, ret);
}

static int add_record(struct records_reading *in, const struct record *record)
{
	struct records *r = in->records;

	if (r->list.n && record_compare(r, vec_last(&r->list), record) >= 0)
		return damaged(in, "the entries are not in order");
	vec_push(&r->list, *record);
	return 0;
}

static int parse_record(struct records_reading *in)
{
	struct record record = {0};
	uint64_t owner;

	if (!take_kind(in, &record.kind))
		return damaged(in, "unknown first word of the line");
	if (!take_prefix(in, &record.prefix))
		return damaged(in, "missing address of the entry");
	if (!take(in, " by ") || !take_u64(in, UINT32_MAX, &owner) ||
	    owner >= in->records->owners.n)
		return damaged(in, "unknown holder of the entry");
	if (!take(in, " until ") || !take_until(in, &record.until_s) || in->at != in->line_end)
		return damaged(in, "the entry's end is neither a number nor 'never'");
	record.owner = (uint32_t)owner;
	return add_record(in, &record);
}

static int parse_end(struct records_reading *in)
{
	uint64_t n;

	if (!take_u64(in, UINT64_MAX, &n) || in->at != in->line_end || n != in->records->list.n)
		return damaged(in, "wrong number of entries");
	if (in->next != in->end) {
		in->line++;
		return damaged(in, "unexpected text after the end");
	}
	return 0;
}

static int parse(struct records_reading *in)
{
	int code = parse_header(in);

	if (code)
		return code;
	for (;;) {
		if ((code = next_line(in)) < 0)
			return code;
		if (take(in, "end "))
			return parse_end(in);
		if ((code = take(in, "holder ") ? parse_owner(in) : parse_record(in)))
			return code;
	}
}

int records_parse(const char *text, size_t len, struct records *ret, struct err *err)
{
	// No line's strings take more room unquoted than the text. The pages that are not used cost nothing.
	CLEANUP_FREE char *spare = mem_zalloc(len, 1);
	struct records records = {0};
	struct records_reading in = {
		.next = text, .end = text + len, .spare = spare, .records = &records, .err = err};
	int code = parse(&in);

	if (code < 0)
		records_free(&records);
	*ret = records;
	return code;
}
