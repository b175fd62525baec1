// SPDX-License-Identifier: GPL-2.0-only
// Finds the addresses in texts with other columns.
#include "ctl/import/addrlist.h"

#include <string.h>

#include "ctl/base/addr_range.h"
#include "ctl/base/lines.h"

#define SEPARATORS " \t\r,;\"'|"

// '#' begins a comment, and so does ';' after a blank or at the start.
static size_t without_comment(const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] == '#' || (at[i] == ';' && (!i || at[i - 1] == ' ' || at[i - 1] == '\t')))
			return i;
	return len;
}

static struct word trimmed(const char *at, size_t len)
{
	while (len && strchr(SEPARATORS, at[0])) {
		at++;
		len--;
	}
	while (len && strchr(SEPARATORS, at[len - 1]))
		len--;
	return (struct word){at, len};
}

// The separator is a comma, semicolon or tab, whichever the line has, or else blanks.
static struct word find_column(const char *at, size_t len, unsigned column)
{
	static const char marks[] = ",;\t";
	char mark = ' ';
	size_t start = 0, end;

	for (size_t i = 0; marks[i] && mark == ' '; i++)
		if (memchr(at, marks[i], len))
			mark = marks[i];
	for (;; start = end + 1) {
		for (end = start; end < len && at[end] != mark; end++)
			;
		if ((mark != ' ' || end > start) && !--column)
			return trimmed(at + start, end - start);
		if (end >= len)
			return (struct word){at, 0};
	}
}

static bool is_address(struct word w)
{
	struct prefix cut[254];
	size_t n;
	bool dotted = memchr(w.at, '.', w.len) || memchr(w.at, ':', w.len);

	return dotted && (!prefix_parse_quiet(w.at, w.len, &cut[0], NULL) ||
			  !range_parse_quiet(w.at, w.len, cut, &n) ||
			  (addr_looks_like(w.at, w.len) && memchr(w.at, '/', w.len)));
}

// How many words are addresses; ret: the first two.
static unsigned find_addresses(const char *at, size_t len, struct word ret[2])
{
	unsigned n = 0;

	for (size_t i = 0, end; i < len; i = end + 1) {
		struct word w;

		for (end = i; end < len && !strchr(SEPARATORS, at[end]); end++)
			;
		w = (struct word){at + i, end - i};
		if (!w.len || !is_address(w))
			continue;
		if (n < 2)
			ret[n] = w;
		n++;
	}
	return n;
}

// 255.255.0.0, or 0.0.255.255 as in access lists.
static bool is_netmask(uint32_t mask)
{
	uint32_t ones = mask >> 31 ? ~mask : mask;

	return mask && !(ones & (ones + 1));
}

// How many leading bits are the same.
static unsigned common_bits(const struct addr *a, const struct addr *b)
{
	unsigned n = 0, bits = a->family == 4 ? 32 : 128;

	while (n < bits && !((a->bytes[n / 8] ^ b->bytes[n / 8]) >> (7 - n % 8) & 1))
		n++;
	return n;
}

// Do the columns describe one network? NULL: they do not.
static const char *explain_pair(const struct word w[2])
{
	struct addr a, b;

	if (addr_parse(w[0].at, w[0].len, &a, NULL) || addr_parse(w[1].at, w[1].len, &b, NULL) ||
	    a.family != b.family)
		return NULL;
	if (b.family == 4 && is_netmask((uint32_t)b.bytes[0] << 24 | (uint32_t)b.bytes[1] << 16 |
					(uint32_t)b.bytes[2] << 8 | b.bytes[3]))
		return "an address and a netmask in two columns";
	if (memcmp(a.bytes, b.bytes, a.family == 4 ? 4 : 16) < 0 &&
	    common_bits(&a, &b) >= (a.family == 4 ? 8 : 16))
		return "the first and last address of a range in two columns";
	return NULL;
}

static int report_several(const struct word w[2], unsigned n, unsigned line, struct err *err)
{
	const char *what = n == 2 ? explain_pair(w) : NULL;

	if (what) {
		err_input(err, "line %u: %s", line, what);
		return err_hint(err, "write a prefix, or FIRST-LAST, in one column");
	}
	err_input(err, "line %u: several addresses", line);
	return err_hint(err, "choose a column: --column 1");
}

static int read_line(struct addrlist *l, const char *at, size_t len, unsigned line,
		     const struct addrlist_options *options, struct err *err)
{
	struct word w[2] = {{at, 0}};
	unsigned n;

	len = without_comment(at, len);
	if (!trimmed(at, len).len)
		return 0;
	if (options->column) {
		w[0] = find_column(at, len, options->column);
		n = w[0].len && is_address(w[0]);
	} else {
		n = find_addresses(at, len, w);
	}
	if (n > 1)
		return report_several(w, n, line, err);
	l->counts.skipped += !n;
	return n ? addrlist_add(l, w[0].at, w[0].len, line, err) : 0;
}

int import_plain(const char *text, size_t len, const struct addrlist_options *options,
		 struct text *ret, struct addrlist_counts *counts, struct err *err)
{
	CLEANUP_ADDRLIST struct addrlist l = {0};
	unsigned line = 0;
	size_t end;

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		len -= 3;
	}
	for (size_t i = 0; i < len; i = end + 1) {
		int code;

		for (end = i; end < len && text[end] != '\n'; end++)
			;
		code = read_line(&l, text + i, end - i, ++line, options, err);
		if (code)
			return code;
	}
	return addrlist_print(&l, options, ret, counts, err);
}
