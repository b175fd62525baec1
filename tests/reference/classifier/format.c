// SPDX-License-Identifier: GPL-2.0-only
// Writes an answer as one line of text.
#include <stdarg.h>
#include <stdio.h>

#include "ref.h"

struct line {
	char *buf;
	size_t size;
	size_t len;
};

static void put(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct line *line, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line->buf + line->len, line->size - line->len, format, args);
	va_end(args);
	if (len > 0)
		line->len += (size_t)len;
	if (line->len >= line->size)
		line->len = line->size - 1;
}

static void put_verdict(struct line *line, const struct ref_result *result)
{
	static const char *const verdicts[] = {
		[REF_PASS] = "pass", [REF_DROP] = "drop", [REF_REJECT] = "reject"};

	if (result->verdict == REF_REDIRECT)
		put(line, "redirect:%s", result->redirect);
	else
		put(line, "%s", verdicts[result->verdict]);
}

static void put_via(struct line *line, const struct ref_result *result)
{
	switch (result->via) {
	case REF_BY_RULE:
		put(line, " rule:%u", result->rule);
		if (result->rule_name)
			put(line, ":\"%s\"", result->rule_name);
		break;
	case REF_BY_MALFORMED:
		put(line, " malformed:%s", result->word);
		break;
	case REF_BY_FRAGMENTS:
		put(line, " fragments");
		break;
	case REF_BY_ESSENTIALS:
		put(line, " essentials:%s", result->word);
		break;
	case REF_BY_DEFAULT:
		put(line, " default");
		break;
	}
}

static void put_trace(struct line *line, const struct ref_result *result)
{
	for (size_t i = 0; i < result->counted_len; i++)
		put(line, "%s%u", i ? "," : " count=", result->counted[i]);
	for (size_t i = 0; i < result->added_len; i++)
		put(line, "%s@%s:%s", i ? "," : " add=", result->added[i].set,
		    result->added[i].prefix);
}

void ref_format(const struct ref_result *result, bool trace, char *buf, size_t size)
{
	struct line line = {.buf = buf, .size = size};

	if (size == 0)
		return;
	put_verdict(&line, result);
	put_via(&line, result);
	if (trace)
		put_trace(&line, result);
}
