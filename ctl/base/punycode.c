// SPDX-License-Identifier: GPL-2.0-only
// Punycode (RFC 3492): Bootstring with the parameters of section 5.
#include "ctl/base/punycode.h"

#include <stdint.h>
#include <string.h>

enum { LABEL_MAX = 63 };
enum { BASE = 36, TMIN = 1, TMAX = 26, SKEW = 38, DAMP = 700, FIRST_BIAS = 72, FIRST_CODE = 128 };

// One character of UTF-8 that is not a control character; its length, or 0.
static size_t take_point(const char *text, size_t len, uint32_t *ret)
{
	size_t n = text_shown(text, len);
	uint32_t point = n == 1 ? (uint8_t)text[0] : (uint8_t)text[0] & (0x7fU >> n);

	for (size_t i = 1; i < n; i++)
		point = point << 6 | ((uint8_t)text[i] & 0x3f);
	*ret = point;
	return n;
}

// Converts to lower case by one offset: ASCII, Latin-1, Greek, Cyrillic. Registries accept only
// lower case. The result is only a hint, so larger tables are not worthwhile.
static uint32_t fold(uint32_t c)
{
	if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) ||
	    (c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
		return c + 32;
	if (c >= 0x400 && c <= 0x40f)
		return c + 80;
	return c;
}

// Section 6.1.
static uint32_t adapt(uint32_t delta, uint32_t points, bool first)
{
	uint32_t k = 0;

	delta = first ? delta / DAMP : delta / 2;
	delta += delta / points;
	for (; delta > (BASE - TMIN) * TMAX / 2; k += BASE)
		delta /= BASE - TMIN;
	return k + (BASE - TMIN + 1) * delta / (delta + SKEW);
}

static char digit(uint32_t d)
{
	return (char)(d < 26 ? 'a' + d : '0' + (d - 26));
}

// One delta as a variable-length integer (section 6.3, the inner loop).
static void put_delta(uint32_t delta, uint32_t bias, struct text *out)
{
	for (uint32_t k = BASE;; k += BASE) {
		uint32_t t = k <= bias ? TMIN : k >= bias + TMAX ? TMAX : k - bias;

		if (delta < t)
			break;
		text_addc(out, digit(t + (delta - t) % (BASE - t)));
		delta = (delta - t) / (BASE - t);
	}
	text_addc(out, digit(delta));
}

static uint32_t smallest_from(const uint32_t *points, size_t n, uint32_t least)
{
	uint32_t m = UINT32_MAX;

	for (size_t i = 0; i < n; i++)
		if (points[i] >= least && points[i] < m)
			m = points[i];
	return m;
}

// Section 6.3. At most 63 points: delta stays below 2^27.
static void encode(const uint32_t *points, uint32_t n, struct text *out)
{
	uint32_t code = FIRST_CODE, delta = 0, bias = FIRST_BIAS, basic = 0;

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
			put_delta(delta, bias, out);
			bias = adapt(delta, done + 1, done == basic);
			delta = 0;
			done++;
		}
	}
}

static bool encode_label(const char *label, size_t len, struct text *out)
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
		encode(points, n, out);
	return out->len - before <= LABEL_MAX;
}

bool punycode_name(const char *text, size_t len, struct text *ret)
{
	for (size_t at = 0; at <= len;) {
		const char *dot = memchr(text + at, '.', len - at);
		size_t n = dot ? (size_t)(dot - text) - at : len - at;

		if (!encode_label(text + at, n, ret))
			return false;
		if (dot)
			text_addc(ret, '.');
		at += n + 1;
	}
	return true;
}
