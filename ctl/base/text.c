// SPDX-License-Identifier: GPL-2.0-only
// The growing string, and how bytes from outside are shown safely on a terminal.
#include "ctl/base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

#define TEXT_FIRST 64 // bytes

// Room for `more` bytes and a NUL.
static void reserve(struct text *t, size_t more)
{
	size_t cap = t->cap ? t->cap : TEXT_FIRST;

	if (t->at && more < t->cap - t->len)
		return;
	while (cap - t->len <= more) {
		if (cap > SIZE_MAX / 2) {
			cap = SIZE_MAX; // more than there is: mem_realloc reports it
			break;
		}
		cap *= 2;
	}
	t->at = mem_realloc(t->at, cap, 1);
	t->cap = cap;
}

void text_vaddf(struct text *t, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	reserve(t, 0);
	va_copy(again, ap);
	n = vsnprintf(t->at + t->len, t->cap - t->len, fmt, ap);
	if (n > 0 && (size_t)n >= t->cap - t->len) {
		reserve(t, (size_t)n);
		vsnprintf(t->at + t->len, t->cap - t->len, fmt, again);
	}
	va_end(again);
	if (n > 0)
		t->len += (size_t)n;
	t->at[t->len] = '\0';
}

void text_addf(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	text_vaddf(t, fmt, ap);
	va_end(ap);
}

void text_addn(struct text *t, const char *s, size_t len)
{
	reserve(t, len);
	if (len)
		memcpy(t->at + t->len, s, len);
	t->len += len;
	t->at[t->len] = '\0';
}

void text_add(struct text *t, const char *s)
{
	text_addn(t, s, strlen(s));
}

void text_addc(struct text *t, char c)
{
	text_addn(t, &c, 1);
}

const char *text_get(const struct text *t)
{
	return t->at ? t->at : "";
}

char *text_take(struct text *t)
{
	char *content;

	reserve(t, 0);
	t->at[t->len] = '\0';
	content = t->at;
	*t = (struct text){0};
	return content;
}

void text_free(struct text *t)
{
	free(t->at);
	*t = (struct text){0};
}

// Length and smallest second byte follow from the first byte; the table is RFC 3629 section 4,
// where the bounds of the second byte shut out overlong forms, surrogates and values above
// U+10FFFF.
size_t text_utf8(const char *s, size_t len)
{
	static const struct {
		uint8_t first_min, first_max, second_min, second_max, len;
	} forms[] = {
		{0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};
	const uint8_t *byte = (const uint8_t *)s;
	size_t form = 0;

	if (!len)
		return 0;
	while (form < ARRAY_SIZE(forms) && byte[0] > forms[form].first_max)
		form++;
	if (form == ARRAY_SIZE(forms) || byte[0] < forms[form].first_min || forms[form].len > len)
		return 0;
	if (forms[form].len > 1 &&
	    (byte[1] < forms[form].second_min || byte[1] > forms[form].second_max))
		return 0;
	for (size_t i = 2; i < forms[form].len; i++)
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
	return forms[form].len;
}

uint32_t text_code_point(const char *s, size_t len)
{
	static const uint8_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	size_t n = text_utf8(s, len);
	uint32_t c = n ? (uint8_t)s[0] & first_bits[n] : 0;

	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((uint8_t)s[i] & 0x3f);
	return c;
}

// Characters that control a terminal or the order of its text: C0, DEL, C1 (which some terminals
// obey as well), line and paragraph separators, and the bidirectional marks (Unicode Standard Annex
// 9, table 1; they can make a line read as another one: CVE-2021-42574).
static bool steers(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t text_shown(const char *s, size_t len)
{
	size_t n = text_utf8(s, len);

	return n && !steers(text_code_point(s, len)) ? n : 0;
}

// The number of leading bytes of s that are plain ASCII; most texts have nothing else.
static size_t count_ascii(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && ((s[n] >= ' ' && s[n] < 0x7f) || s[n] == '\t'))
		n++;
	return n;
}

void text_add_shown(struct text *t, const char *s, size_t len)
{
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		n = count_ascii(s + i, len - i);
		n = n ? n : text_shown(s + i, len - i);
		if (n)
			text_addn(t, s + i, n);
		else
			text_addc(t, '?');
	}
}

void text_put_shown(char *ret, size_t size, const char *text)
{
	CLEANUP_TEXT struct text shown = {0};
	size_t cut = size - sizeof("...");

	text_add_shown(&shown, text, strlen(text));
	if (shown.len >= size) {
		while (cut && ((uint8_t)shown.at[cut] & 0xc0) == 0x80)
			cut--; // not in the middle of a code point
		snprintf(ret, size, "%.*s...", (int)cut, shown.at);
	} else {
		snprintf(ret, size, "%s", text_get(&shown));
	}
}
