// SPDX-License-Identifier: GPL-2.0-only
// Checks the form of a host name, and suggests what to write instead.
#include "ctl/net/dns_name.h"

#include <stdio.h>
#include <string.h>

#include "ctl/base/punycode.h"
#include "ctl/base/text.h"

enum { LABEL_MAX = 63, QUOTE_MAX = 100 };

// The text for a sentence: what could upset a terminal becomes '?', a long one is cut.
static void quote(const char *text, size_t len, char buf[QUOTE_MAX])
{
	struct text shown = {0};
	size_t keep = 0, n;

	text_add_shown(&shown, text, len);
	while (keep < shown.len &&
	       (n = text_utf8(shown.at + keep, shown.len - keep)) < QUOTE_MAX - 3 - keep)
		keep += n;
	snprintf(buf, QUOTE_MAX, "%.*s%s", (int)keep, text_get(&shown),
		 keep < shown.len ? "..." : "");
	text_free(&shown);
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name_char(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

static size_t find_foreign(const char *text, size_t len)
{
	size_t i = 0;

	while (i < len && is_name_char(text[i]))
		i++;
	return i;
}

static bool has_non_ascii(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] & 0x80)
			return true;
	return false;
}

static void describe_non_ascii(const char *text, size_t len, const char *quoted, char *buf,
			       size_t size)
{
	struct text encoded = {0};

	if (punycode_name(text, len, &encoded) &&
	    find_foreign(text_get(&encoded), encoded.len) == encoded.len)
		snprintf(buf, size, "'%s' has letters beyond ASCII: write %s", quoted,
			 text_get(&encoded));
	else
		snprintf(buf, size, "'%s' has bytes that no host name has", quoted);
	text_free(&encoded);
}

static void describe_foreign(const char *text, size_t len, const char *quoted, char *buf,
			     size_t size)
{
	char c = text[find_foreign(text, len)];

	if (memmem(text, len, "://", 3))
		snprintf(buf, size, "'%s' is the address of a page: write only the host name",
			 quoted);
	else if (memchr(text, ':', len) != memrchr(text, ':', len))
		snprintf(buf, size, "'%s' is not an IPv6 address: its digits are 0 to 9 and a to f",
			 quoted);
	else
		snprintf(buf, size,
			 "'%s' has '%c': a host name has letters, digits, '-', '_' and dots",
			 quoted, c < 0x20 || c == 0x7f ? '?' : c);
}

// The length of the longest label of a name without its final dot; 0 if a label is empty.
static size_t longest_label(const char *text, size_t len)
{
	size_t longest = 0;

	for (size_t at = 0; at <= len;) {
		const char *dot = memchr(text + at, '.', len - at);
		size_t n = dot ? (size_t)(dot - text) - at : len - at;

		if (!n)
			return 0;
		longest = n > longest ? n : longest;
		at += n + 1;
	}
	return longest;
}

static bool has_letter(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (is_letter(text[i]))
			return true;
	return false;
}

// Only letters, digits, '-', '_' and dots are left.
static const char *describe_shape(const char *text, size_t len, const char *quoted, char *buf,
				  size_t size)
{
	size_t bare = len && text[len - 1] == '.' ? len - 1 : len;
	size_t longest = longest_label(text, bare);

	if (!longest)
		snprintf(buf, size, "'%s' has nothing between two dots or before one", quoted);
	else if (bare > DNS_NAME_MAX)
		snprintf(buf, size, "'%s' is longer than %d characters", quoted, DNS_NAME_MAX);
	else if (longest > LABEL_MAX)
		snprintf(buf, size, "'%s' has more than %d characters between two dots", quoted,
			 LABEL_MAX);
	else if (!has_letter(text, bare))
		snprintf(buf, size, "'%s' has no letter: it is neither an address nor a host name",
			 quoted);
	else
		return NULL;
	return buf;
}

const char *dns_name_problem(const char *text, size_t len, char *buf, size_t size)
{
	char quoted[QUOTE_MAX];

	quote(text, len, quoted);
	if (!len)
		snprintf(buf, size, "a host name is missing");
	else if (has_non_ascii(text, len))
		describe_non_ascii(text, len, quoted, buf, size);
	else if (find_foreign(text, len) < len)
		describe_foreign(text, len, quoted, buf, size);
	else
		return describe_shape(text, len, quoted, buf, size);
	return buf;
}
