// SPDX-License-Identifier: GPL-2.0-only
// What a host name may look like, and the punycode form of one that does not.
#include <stdio.h>
#include <string.h>

#include "ctl/net/dns_parts.h"

enum { LABEL_MAX = 63, QUOTE_MAX = 100 };

// One character of UTF-8 that is no control character; its length, 0 when there is none.
static size_t take_point(const char *text, size_t len, uint32_t *ret)
{
	size_t n = text_shown(text, len);
	uint32_t point = n == 1 ? (uint8_t)text[0] : (uint8_t)text[0] & (0x7fU >> n);

	for (size_t i = 1; i < n; i++)
		point = point << 6 | ((uint8_t)text[i] & 0x3f);
	*ret = point;
	return n;
}

// Lower case where one offset does it: ASCII, Latin-1, Greek, Cyrillic. Registries take lower case
// only, and this is a hint, so no more is worth its table.
static uint32_t fold(uint32_t c)
{
	if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) ||
	    (c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
		return c + 32;
	if (c >= 0x400 && c <= 0x40f)
		return c + 80;
	return c;
}

// RFC 3492 section 6.1.
static uint32_t punycode_adapt(uint32_t delta, uint32_t points, bool first)
{
	uint32_t k = 0;

	delta = first ? delta / 700 : delta / 2;
	delta += delta / points;
	for (; delta > (36 - 1) * 26 / 2; k += 36)
		delta /= 36 - 1;
	return k + (36 - 1 + 1) * delta / (delta + 38);
}

static char punycode_digit(uint32_t d)
{
	return (char)(d < 26 ? 'a' + d : '0' + (d - 26));
}

// One delta as a variable-length integer (RFC 3492 section 6.3, the inner loop).
static void punycode_put(uint32_t delta, uint32_t bias, struct text *out)
{
	for (uint32_t k = 36;; k += 36) {
		uint32_t t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;

		if (delta < t)
			break;
		text_addc(out, punycode_digit(t + (delta - t) % (36 - t)));
		delta = (delta - t) / (36 - t);
	}
	text_addc(out, punycode_digit(delta));
}

static uint32_t smallest_from(const uint32_t *points, size_t n, uint32_t least)
{
	uint32_t m = UINT32_MAX;

	for (size_t i = 0; i < n; i++)
		if (points[i] >= least && points[i] < m)
			m = points[i];
	return m;
}

// RFC 3492 section 6.3. At most 63 points: delta stays below 2^27.
static void punycode_encode(const uint32_t *points, uint32_t n, struct text *out)
{
	uint32_t code = 128, delta = 0, bias = 72, basic = 0;

	for (uint32_t i = 0; i < n; i++)
		if (points[i] < 128) {
			text_addc(out, (char)points[i]);
			basic++;
		}
	if (basic)
		text_addc(out, '-');
	for (uint32_t done = basic; done < n; delta++, code++) {
		uint32_t next = smallest_from(points, n, code);

		delta += (next - code) * (done + 1);
		code = next;
		for (uint32_t i = 0; i < n; i++) {
			if (points[i] < code)
				delta++;
			if (points[i] != code)
				continue;
			punycode_put(delta, bias, out);
			bias = punycode_adapt(delta, done + 1, done == basic);
			delta = 0;
			done++;
		}
	}
}

bool dns_label_encode(const char *label, size_t len, struct text *out)
{
	uint32_t points[LABEL_MAX], n = 0;
	size_t before = out->len;
	bool ascii = true;

	for (size_t at = 0, step; at < len; at += step) {
		if (n == LABEL_MAX)
			return false;
		step = take_point(label + at, len - at, &points[n]);
		if (!step)
			return false;
		ascii = ascii && step == 1;
		points[n] = fold(points[n]);
		n++;
	}
	if (!ascii)
		text_add(out, "xn--");
	if (ascii)
		for (uint32_t i = 0; i < n; i++)
			text_addc(out, (char)points[i]);
	else
		punycode_encode(points, n, out);
	return out->len - before <= LABEL_MAX;
}

static bool name_encode(const char *text, size_t len, struct text *out)
{
	for (size_t at = 0; at <= len;) {
		const char *dot = memchr(text + at, '.', len - at);
		size_t n = dot ? (size_t)(dot - text) - at : len - at;

		if (!dns_label_encode(text + at, n, out))
			return false;
		if (dot)
			text_addc(out, '.');
		at += n + 1;
	}
	return true;
}

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

	if (name_encode(text, len, &encoded) &&
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
		snprintf(buf, size, "'%s' is the address of a page: write the host name alone",
			 quoted);
	else
		snprintf(buf, size,
			 "'%s' has '%c': a host name has letters, digits, '-', '_' and dots",
			 quoted, c < 0x20 || c == 0x7f ? '?' : c);
}

// Of a name without its final dot. The longest label, 0 when one is empty.
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
