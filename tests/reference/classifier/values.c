// SPDX-License-Identifier: GPL-2.0-only
// Reads the single words of the language: numbers, spans, rates, times, TCP flags.
#include <string.h>

#include "names.h"
#include "parse.h"

/* The word's leading digits; *ret_unit is what follows them. */
static bool split_unit(const char *word, uint64_t *ret_number, const char **ret_unit)
{
	size_t digits = strspn(word, "0123456789");

	*ret_unit = word + digits;
	return number_parse(word, digits, UINT64_MAX, ret_number);
}

static bool one_of(const char *word, const char *const *words)
{
	for (; *words; words++) {
		if (!strcmp(word, *words))
			return true;
	}
	return false;
}

bool parse_number(struct parser *parser, uint64_t max, uint64_t *ret_number)
{
	unsigned int line = parse_peek(parser)->line;
	const char *word;

	if (!parse_word(parser, &word))
		return false;
	if (!number_parse(word, strlen(word), max, ret_number))
		return parse_fail(parser, line, "'%s' is no number", word);
	return true;
}

bool parse_span(struct parser *parser, uint32_t max, struct span *ret_span)
{
	unsigned int line = parse_peek(parser)->line;
	const char *word, *rest;
	uint64_t lo, hi;

	if (!parse_word(parser, &word))
		return false;
	if (!split_unit(word, &lo, &rest))
		return parse_fail(parser, line, "'%s' is no number or range", word);
	hi = lo;
	if (*rest == '-' && !number_parse(rest + 1, strlen(rest + 1), max, &hi))
		return parse_fail(parser, line, "'%s' is no range", word);
	if ((*rest && *rest != '-') || hi > max || lo > hi)
		return parse_fail(parser, line, "'%s' is no range", word);
	*ret_span = (struct span){.given = true, .lo = (uint32_t)lo, .hi = (uint32_t)hi};
	return true;
}

/* Takes a word of digits and one of the units. */
static bool take_unit(struct parser *parser, const char *const *units, const char *what)
{
	unsigned int line = parse_peek(parser)->line;
	const char *word, *unit;
	uint64_t number;

	if (!parse_word(parser, &word))
		return false;
	if (!split_unit(word, &number, &unit) || !one_of(unit, units))
		return parse_fail(parser, line, "'%s' is no %s", word, what);
	return true;
}

bool parse_rate(struct parser *parser)
{
	static const char *const units[] = {
		"/s",    "/min", "/h",    "k/s",    "k/min",  "k/h",    "M/s",
		"M/min", "M/h",  "bit/s", "kbit/s", "mbit/s", "gbit/s", NULL,
	};

	return take_unit(parser, units, "rate");
}

bool parse_count(struct parser *parser)
{
	static const char *const units[] = {"", "k", "M", NULL};

	return take_unit(parser, units, "count");
}

bool parse_time(struct parser *parser)
{
	static const char *const units[] = {"ms", "s", "m", "h", "d", "w", NULL};

	return take_unit(parser, units, "time");
}

bool parse_percent(struct parser *parser)
{
	unsigned int line = parse_peek(parser)->line;
	const char *word;
	size_t digits;

	if (!parse_word(parser, &word))
		return false;
	digits = strspn(word, "0123456789.");
	if (digits == 0 || strcmp(word + digits, "%") != 0)
		return parse_fail(parser, line, "'%s' is no percentage", word);
	return true;
}

bool parse_mask(struct parser *parser, unsigned int ret_len[2])
{
	unsigned int line = parse_peek(parser)->line;
	const char *word, *rest;
	uint64_t v4, v6;

	if (!parse_word(parser, &word))
		return false;
	if (!split_unit(word, &v4, &rest) || *rest != '/' || v4 > 32 ||
	    !number_parse(rest + 1, strlen(rest + 1), 128, &v6))
		return parse_fail(parser, line, "'%s' is no pair of prefix lengths", word);
	ret_len[0] = (unsigned int)v4;
	ret_len[1] = (unsigned int)v6;
	return true;
}

/* Appends the rest of the flags as one text without blanks, "fin,psh/fin,ack". */
static bool join_flags(struct parser *parser, char *text, size_t size)
{
	const char *word;
	size_t len = 0;

	do {
		if (!parse_word(parser, &word))
			return false;
		if (len + strlen(word) + 2 > size)
			return parse_fail(parser, parse_peek(parser)->line, "too many flags");
		memcpy(text + len, word, strlen(word) + 1);
		len += strlen(word);
		if (parse_accept_kind(parser, TOKEN_COMMA)) {
			memcpy(text + len++, ",", 2);
			continue;
		}
		if (parse_peek(parser)->kind != TOKEN_WORD)
			return true;
	} while (text[len - 1] == ',' || text[len - 1] == '/' ||
		 parse_peek(parser)->text[0] == '/');
	return true;
}

/* names = flag { "," flag } up to len bytes. */
static bool flag_names(const char *text, size_t len, uint8_t *ret_flags)
{
	*ret_flags = 0;
	for (;;) {
		const char *comma = memchr(text, ',', len);
		size_t word = comma ? (size_t)(comma - text) : len;
		int flag = name_flag(text, (unsigned int)word);

		if (flag < 0)
			return false;
		*ret_flags |= (uint8_t)flag;
		if (!comma)
			return true;
		text += word + 1;
		len -= word + 1;
	}
}

/* weir-policy(5), Fields: `flags`. */
bool parse_flags(struct parser *parser, struct rule *rule)
{
	const uint8_t usual = FLAG_FIN | FLAG_SYN | FLAG_RST | FLAG_ACK;
	unsigned int line = parse_peek(parser)->line;
	char text[128];
	const char *slash;
	size_t len;
	bool none;

	if (!join_flags(parser, text, sizeof(text)))
		return false;
	slash = strchr(text, '/');
	len = slash ? (size_t)(slash - text) : strlen(text);
	none = len == 4 && !memcmp(text, "none", 4);
	if (!none && !flag_names(text, len, &rule->flags_set))
		return parse_fail(parser, line, "flags '%s'", text);
	rule->flags_mask = none ? usual | FLAG_PSH | FLAG_URG : usual | rule->flags_set;
	if (slash && !flag_names(slash + 1, strlen(slash + 1), &rule->flags_mask))
		return parse_fail(parser, line, "flags '%s'", text);
	if (rule->flags_set & ~rule->flags_mask)
		return parse_fail(parser, line, "flags '%s': a flag outside of the mask", text);
	rule->flags_given = true;
	return true;
}
