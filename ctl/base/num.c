// SPDX-License-Identifier: GPL-2.0-only
// Strict numbers: all digits in this project are parsed here.
#include "ctl/base/num.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/mem.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t count_digits(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && is_digit(text[n]))
		n++;
	return n;
}

// text[0..len) holds digits only. A leading zero is refused: elsewhere it means octal.
static int parse_digits(const char *text, size_t len, uint64_t *ret)
{
	uint64_t n = 0;

	if (!len || (text[0] == '0' && len > 1))
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (__builtin_mul_overflow(n, 10u, &n) ||
		    __builtin_add_overflow(n, (unsigned)(text[i] - '0'), &n))
			return -ERANGE;
	*ret = n;
	return 0;
}

static int store(uint64_t n, uint64_t min, uint64_t max, uint64_t *ret)
{
	if (n < min || n > max)
		return -ERANGE;
	*ret = n;
	return 0;
}

static const struct unit *find_unit(const struct unit *units, size_t n, const char *name,
				    size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(units[i].name) == len && !memcmp(units[i].name, name, len))
			return &units[i];
	return NULL;
}

static int parse_with_unit(const char *text, size_t len, const struct unit *units, size_t n_units,
			   uint64_t min, uint64_t max, uint64_t *ret)
{
	size_t digits = count_digits(text, len);
	const struct unit *unit = find_unit(units, n_units, text + digits, len - digits);
	uint64_t n;
	int code;

	if (!unit)
		return -EINVAL;
	code = parse_digits(text, digits, &n);
	if (code < 0)
		return code;
	if (__builtin_mul_overflow(n, unit->factor, &n))
		return -ERANGE;
	return store(n, min, max, ret);
}

// The number and the unit that the text begins with.
static size_t count_part(const char *text, size_t len)
{
	size_t n = count_digits(text, len);

	while (n < len && !is_digit(text[n]))
		n++;
	return n;
}

// "1h30m": the units from the largest to the smallest, each at most once.
static int parse_sum(const char *text, size_t len, const struct unit *units, size_t n_units,
		     uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t sum = 0, before = UINT64_MAX;

	do {
		size_t part = count_part(text, len), digits = count_digits(text, len);
		const struct unit *unit = find_unit(units, n_units, text + digits, part - digits);
		uint64_t n;
		int code = parse_with_unit(text, part, units, n_units, 0, UINT64_MAX, &n);

		if (code)
			return code;
		if (unit->factor >= before)
			return -EINVAL;
		if (__builtin_add_overflow(sum, n, &sum))
			return -ERANGE;
		before = unit->factor;
		text += part;
		len -= part;
	} while (len);
	return store(sum, min, max, ret);
}

int num_parse_u64(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret)
{
	static const struct unit none[] = {{"", 1}};

	return parse_with_unit(text, len, none, ARRAY_SIZE(none), min, max, ret);
}

int num_parse_u32(const char *text, size_t len, uint32_t min, uint32_t max, uint32_t *ret)
{
	uint64_t n;
	int code = num_parse_u64(text, len, min, max, &n);

	if (code)
		return code;
	*ret = (uint32_t)n;
	return 0;
}

int num_parse_span(const char *text, uint32_t max, uint32_t *ret_first, uint32_t *ret_last)
{
	const char *dash = strchr(text, '-');
	uint32_t first, last;
	int code = num_parse_u32(text, dash ? (size_t)(dash - text) : strlen(text), 0, max, &first);

	if (code)
		return code;
	last = first;
	if (dash && (code = num_parse_u32(dash + 1, strlen(dash + 1), 0, max, &last)))
		return code;
	*ret_first = first;
	*ret_last = last;
	return 0;
}

int num_parse_u16(const char *text, size_t len, uint16_t min, uint16_t max, uint16_t *ret)
{
	uint64_t n;
	int code = num_parse_u64(text, len, min, max, &n);

	if (code)
		return code;
	*ret = (uint16_t)n;
	return 0;
}

int num_parse_count(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret)
{
	static const struct unit units[] = {{"", 1}, {"k", 1000}, {"M", 1000000}};

	return parse_with_unit(text, len, units, ARRAY_SIZE(units), min, max, ret);
}

int num_parse_time_ms(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret)
{
	static const struct unit units[] = {
		{"ms", 1},      {"s", 1000},         {"m", 60000},
		{"h", 3600000}, {"d", 24 * 3600000}, {"w", 7 * 24 * 3600000},
	};

	return parse_sum(text, len, units, ARRAY_SIZE(units), min, max, ret);
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int num_parse_hex32(const char *text, size_t len, uint32_t *ret)
{
	uint32_t n = 0;

	if (len < 3 || text[0] != '0' || text[1] != 'x')
		return -EINVAL;
	for (size_t i = 2; i < len; i++) {
		int digit = hex_value(text[i]);

		if (digit < 0)
			return -EINVAL;
		n = n << 4 | (uint32_t)digit;
	}
	if (len > 2 + 8)
		return -ERANGE;
	*ret = n;
	return 0;
}

const char *num_format(uint64_t n, num_text buf)
{
	char digits[NUM_TEXT];
	size_t first = NUM_TEXT - 1;

	digits[first] = '\0';
	do
		digits[--first] = (char)('0' + n % 10);
	while (n /= 10);
	memcpy(buf, digits + first, NUM_TEXT - first);
	return buf;
}

const char *num_format_grouped(uint64_t n, num_text buf)
{
	num_text digits;
	size_t len = strlen(num_format(n, digits));
	size_t at = 0;

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

// One decimal and a prefix of thousands, where n or -n is about 1000 or more; moves on to the next
// prefix where rounding would give "1000.0".
static const char *format_scaled(double n, const char *unit, num_text buf)
{
	static const char prefixes[] = "kMGTPE";
	size_t i = 0;

	for (n /= 1000; (n >= 999.95 || n <= -999.95) && i + 2 < sizeof(prefixes); i++)
		n /= 1000;
	if (n >= 1e6 || n <= -1e6)
		snprintf(buf, NUM_TEXT, "%.1e %c%s", n, prefixes[i], unit);
	else
		snprintf(buf, NUM_TEXT, "%.1f %c%s", n, prefixes[i], unit);
	return buf;
}

static bool has_tenths(double n)
{
	double tenths = n - (double)(uint64_t)n;

	return tenths >= 0.05 && tenths < 0.95;
}

const char *num_format_short(double n, num_text buf)
{
	double size = n < 0 ? -n : n;

	if (!isfinite(n))
		snprintf(buf, NUM_TEXT, "-");
	else if (size >= 999.5)
		format_scaled(n, "", buf);
	else if (size < 9.95 && has_tenths(size))
		snprintf(buf, NUM_TEXT, "%.1f", n); // a rate of 0.3 is not 0
	else
		snprintf(buf, NUM_TEXT, "%.0f", size < 0.5 ? 0.0 : n); // not "-0"
	return buf;
}

const char *num_format_bytes(uint64_t n, num_text buf)
{
	if (n >= 1000)
		return format_scaled((double)n, "B", buf);
	snprintf(buf, NUM_TEXT, "%u B", (unsigned)n);
	return buf;
}

const char *num_format_duration_ms(uint64_t ms, num_text buf)
{
	static const struct unit units[] = {
		{"d", 24 * 3600000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
	};
	int at = 0, shown = 0;

	for (size_t i = 0; i < ARRAY_SIZE(units) && shown < 2; i++) {
		uint64_t n = ms / units[i].factor;

		ms %= units[i].factor;
		if (!n)
			continue;
		at += snprintf(buf + at, NUM_TEXT - (size_t)at, "%s%llu%s", shown ? " " : "",
			       (unsigned long long)n, units[i].name);
		shown++;
	}
	if (!shown)
		snprintf(buf, NUM_TEXT, "0s");
	return buf;
}

bool num_is_prime(uint32_t n)
{
	for (uint64_t d = 2; d * d <= n; d++)
		if (n % d == 0)
			return false;
	return n > 1;
}

const char *num_format_time(uint64_t wall_s, num_time_text buf)
{
	time_t seconds = (time_t)wall_s;
	struct tm tm;
	size_t len;

	if (wall_s > INT64_MAX || !localtime_r(&seconds, &tm) ||
	    !strftime(buf, sizeof(num_time_text) - 1, "%Y-%m-%dT%H:%M:%S%z", &tm))
		return NULL;
	// strftime writes +0100, RFC 3339 wants +01:00.
	len = strlen(buf);
	memmove(buf + len - 1, buf + len - 2, 3);
	buf[len - 2] = ':';
	return buf;
}

const char *num_format_time_ms(uint64_t wall_ms, num_time_text buf)
{
	const size_t seconds = strlen("2026-11-24T02:15:03");
	char fraction[8];

	if (!num_format_time(wall_ms / 1000, buf) || buf[seconds - 3] != ':')
		return NULL;
	snprintf(fraction, sizeof(fraction), ".%03u", (unsigned)(wall_ms % 1000));
	memmove(buf + seconds + 4, buf + seconds, strlen(buf + seconds) + 1);
	memcpy(buf + seconds, fraction, 4);
	return buf;
}
