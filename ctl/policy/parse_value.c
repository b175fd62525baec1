// SPDX-License-Identifier: GPL-2.0-only
// The parser's tools for scalars of one word: digits, COUNT, TIME, MASK, RATE, PERCENT, SPAN.

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/policy/parser.h"

#define SHOWN_MAX 60 // longer words are cut in messages; the line with the caret shows them

// Reports why the next word is invalid, by the result of num_parse_*; passes a valid one.
static bool judge(struct parser *p, int code, const char *what, const char *form, const char *range)
{
	if (code == -ERANGE)
		return parse_fail(p, p->at->at, range, "'%.*s' is out of range for %s", SHOWN_MAX,
				  p->at->text, what);
	if (code < 0)
		return parse_fail(p, p->at->at, form, "'%.*s' is not %s", SHOWN_MAX, p->at->text,
				  what);
	parse_next(p);
	return true;
}

// Is the next token a word that may be a value? Keywords are not.
static bool has_value(struct parser *p, const char *what, const char *form)
{
	if (parse_is(p, TOKEN_WORD) && !keyword_is(p->at->text))
		return true;
	return parse_expected(p, what, form);
}

bool parse_number(struct parser *p, const char *what, uint32_t min, uint32_t max, uint32_t *ret)
{
	char range[64];

	if (!has_value(p, what, NULL))
		return false;
	snprintf(range, sizeof(range), "%" PRIu32 " to %" PRIu32, min, max);
	return judge(p, num_parse_u32(p->at->text, strlen(p->at->text), min, max, ret), what, NULL,
		     range);
}

bool parse_count(struct parser *p, const char *what, uint64_t min, uint64_t max, uint64_t *ret)
{
	static const char form[] = "a count is digits, with k for thousands or M for millions";
	char range[64];

	if (!has_value(p, what, form))
		return false;
	snprintf(range, sizeof(range), "%" PRIu64 " to %" PRIu64, min, max);
	return judge(p, num_parse_count(p->at->text, strlen(p->at->text), min, max, ret), what,
		     form, range);
}

bool parse_time(struct parser *p, const char *what, uint64_t *ret)
{
	static const char form[] = "a time is digits and ms, s, m, h, d or w";

	if (!has_value(p, what, form))
		return false;
	return judge(p, num_parse_time_ms(p->at->text, strlen(p->at->text), 1, POLICY_TIME_MS, ret),
		     what, form, "1ms to 10 years");
}

static int mask_lengths(const char *text, uint32_t *ret4, uint32_t *ret6)
{
	const char *slash = strchr(text, '/');
	int code;

	if (!slash)
		return -EINVAL;
	code = num_parse_u32(text, (size_t)(slash - text), 0, 32, ret4);
	if (code)
		return code;
	return num_parse_u32(slash + 1, strlen(slash + 1), 0, 128, ret6);
}

bool parse_mask(struct parser *p, uint8_t *ret4, uint8_t *ret6)
{
	static const char form[] = "a mask is a length for IPv4 and one for IPv6: 24/64";
	uint32_t v4 = 0, v6 = 0;

	if (!has_value(p, "a mask", form))
		return false;
	if (!judge(p, mask_lengths(p->at->text, &v4, &v6), "a mask", form,
		   "0 to 32 for IPv4, 0 to 128 for IPv6"))
		return false;
	*ret4 = (uint8_t)v4;
	*ret6 = (uint8_t)v6;
	return true;
}

// "20k" of "20k/s"
static int packet_rate(const char *text, size_t len, const char *unit, struct ast_rate *ret)
{
	static const struct {
		const char *name;
		uint32_t ms;
	} units[] = {{"s", 1000}, {"min", 60000}, {"h", 3600000}};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(unit, units[i].name)) {
			ret->period_ms = units[i].ms;
			return num_parse_count(text, len, 1, POLICY_RATE_PACKETS, &ret->count);
		}
	return -EINVAL;
}

// "100mbit" of "100mbit/s"
static int bit_rate(const char *text, size_t len, struct ast_rate *ret)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} units[] = {{"kbit", 1000}, {"mbit", 1000000}, {"gbit", 1000000000}, {"bit", 1}};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t unit = strlen(units[i].name);
		int code;

		if (len < unit || memcmp(text + len - unit, units[i].name, unit) != 0)
			continue;
		code = num_parse_u64(text, len - unit, 1, POLICY_RATE_BITS / units[i].factor,
				     &ret->count);
		ret->count *= units[i].factor;
		ret->period_ms = 1000;
		ret->bits = true;
		return code;
	}
	return -EINVAL;
}

bool parse_rate(struct parser *p, bool allow_bits, struct ast_rate *ret)
{
	const char *form = allow_bits ? "a rate is like 100/s, 20k/min, 5/h or 100mbit/s"
				      : "a rate is like 100/s, 20k/min or 5/h";
	const char *text, *slash;
	struct ast_rate rate = {.given = true};
	int code = -EINVAL;

	if (!has_value(p, "a rate", form))
		return false;
	text = p->at->text;
	slash = strchr(text, '/');
	rate.at = p->at->at;
	if (slash && allow_bits && !strcmp(slash + 1, "s"))
		code = bit_rate(text, (size_t)(slash - text), &rate);
	if (slash && code == -EINVAL && !rate.bits)
		code = packet_rate(text, (size_t)(slash - text), slash + 1, &rate);
	if (!judge(p, code, "a rate", form,
		   rate.bits ? "1bit/s to 10000gbit/s" : "1 to 1000M packets"))
		return false;
	*ret = rate;
	return true;
}

// The digits after the dot, one to six, as millionths.
static int parse_fraction(const char *text, size_t len, uint64_t *ret)
{
	char digits[8] = "1000000"; // the leading one keeps the zeros that follow the dot
	uint64_t n;
	int code;

	if (!len || len > 6)
		return -EINVAL;
	memcpy(digits + 1, text, len);
	code = num_parse_u64(digits, 7, 1000000, 1999999, &n);
	if (code)
		return code;
	*ret = n - 1000000;
	return 0;
}

static int parse_millionths(const char *text, size_t len, uint64_t *ret)
{
	const char *dot = memchr(text, '.', len);
	size_t whole_len = dot ? (size_t)(dot - text) : len;
	uint64_t whole, rest = 0;
	int code = num_parse_u64(text, whole_len, 0, 100, &whole);

	if (code)
		return code;
	if (dot && (code = parse_fraction(dot + 1, len - whole_len - 1, &rest)))
		return code;
	if (whole * 1000000 + rest > 100000000)
		return -ERANGE;
	*ret = whole * 1000000 + rest;
	return 0;
}

bool parse_percent(struct parser *p, uint64_t *ret_millionths)
{
	static const char form[] = "a percentage is like 25% or 0.1%";
	size_t len;
	int code = -EINVAL;

	if (!has_value(p, "a percentage", form))
		return false;
	len = strlen(p->at->text);
	if (len > 1 && p->at->text[len - 1] == '%')
		code = parse_millionths(p->at->text, len - 1, ret_millionths);
	return judge(p, code, "a percentage", form, "0% to 100%");
}

bool parse_number_span(struct parser *p, const char *what, uint32_t max, struct ast_span *ret)
{
	static const char form[] = "a span is a number, or FIRST-LAST without blanks";
	struct ast_span span = {.given = true};
	const char *text;
	char range[64];
	int code;

	if (!has_value(p, what, form))
		return false;
	text = p->at->text;
	span.at = p->at->at;
	code = num_parse_span(text, max, &span.first, &span.last);
	if (span.first > span.last)
		return parse_fail(p, span.at, NULL, "'%s' ends before it begins", text);
	snprintf(range, sizeof(range), "0 to %" PRIu32, max);
	if (!judge(p, code, what, form, range))
		return false;
	*ret = span;
	return true;
}
