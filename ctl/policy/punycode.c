// SPDX-License-Identifier: GPL-2.0-only
// RFC 3492: Bootstring with the parameters of section 5.
#include "ctl/policy/punycode.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LABEL_MAX 63

enum { BASE = 36, TMIN = 1, TMAX = 26, SKEW = 38, DAMP = 700, FIRST_BIAS = 72, FIRST_N = 128 };

struct output {
	char *at, *end;
	bool full;
};

static void put(struct output *o, char c)
{
	if (o->at < o->end)
		*o->at++ = c;
	else
		o->full = true;
}

// Small letters for the alphabets in which upper case is a plain offset; others stay as they are.
static uint32_t lower(uint32_t c)
{
	if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) ||
	    (c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
		return c + 0x20;
	return c;
}

// Reads one code point; moves *at behind it. False for what is not UTF-8 (RFC 3629).
static bool next_point(const char **at, const char *end, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
	unsigned char first = (unsigned char)*(*at)++;
	unsigned more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
	uint32_t c = more ? first & (0x3fu >> more) : first;

	if ((first >= 0x80 && first < 0xc0) || first > 0xf4)
		return false;
	for (unsigned i = 0; i < more; i++) {
		if (*at == end || ((unsigned char)**at & 0xc0) != 0x80)
			return false;
		c = c << 6 | ((unsigned char)*(*at)++ & 0x3f);
	}
	*ret = c;
	return c >= least[more] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
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

static void put_digits(struct output *o, uint32_t q, uint32_t bias)
{
	for (uint32_t k = BASE;; k += BASE) {
		uint32_t t = k <= bias ? TMIN : k >= bias + TMAX ? TMAX : k - bias;
		uint32_t digit = q < t ? q : t + (q - t) % (BASE - t);

		put(o, (char)(digit < 26 ? 'a' + digit : '0' + digit - 26));
		if (q < t)
			return;
		q = (q - t) / (BASE - t);
	}
}

static uint32_t smallest_from(const uint32_t *points, size_t n, uint32_t from)
{
	uint32_t smallest = UINT32_MAX;

	for (size_t i = 0; i < n; i++)
		if (points[i] >= from && points[i] < smallest)
			smallest = points[i];
	return smallest;
}

// Section 6.3, for a label with at least one point that is not ASCII. At most 63 points: no overflow.
static void encode(const uint32_t *points, size_t n, struct output *o)
{
	uint32_t next = FIRST_N, delta = 0, bias = FIRST_BIAS, basic = 0, done;

	for (size_t i = 0; i < n; i++)
		if (points[i] < 0x80) {
			put(o, (char)points[i]);
			basic++;
		}
	if (basic)
		put(o, '-');
	for (done = basic; done < n; delta++, next++) {
		uint32_t m = smallest_from(points, n, next);

		delta += (m - next) * (done + 1);
		next = m;
		for (size_t i = 0; i < n; i++) {
			delta += points[i] < next;
			if (points[i] != next)
				continue;
			put_digits(o, delta, bias);
			bias = adapt(delta, done + 1, done == basic);
			delta = 0;
			done++;
		}
	}
}

static bool put_label(const char *at, const char *end, struct output *o)
{
	uint32_t points[LABEL_MAX];
	size_t n = 0;
	bool ascii = true;
	const char *start = o->at;

	while (at < end) {
		if (n == LABEL_MAX || !next_point(&at, end, &points[n]))
			return false;
		points[n] = lower(points[n]);
		ascii = ascii && points[n] < 0x80;
		n++;
	}
	if (!ascii) {
		for (const char *p = "xn--"; *p; p++)
			put(o, *p);
		encode(points, n, o);
	}
	for (size_t i = 0; ascii && i < n; i++)
		put(o, (char)points[i]);
	return !o->full && o->at - start <= LABEL_MAX;
}

const char *punycode_name(const char *text, size_t len, char *ret, size_t size)
{
	const char *end = text + len;
	struct output o = {.at = ret, .end = ret + size};

	for (;;) {
		const char *dot = memchr(text, '.', (size_t)(end - text));

		if (!put_label(text, dot ? dot : end, &o))
			return NULL;
		if (!dot)
			break;
		put(&o, '.');
		text = dot + 1;
	}
	put(&o, '\0');
	return o.full ? NULL : ret;
}
