// SPDX-License-Identifier: GPL-2.0-only
// Reads words strictly: an invalid history must not be played in part.
#include "tests/reference/balancer/history_words.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/num.h"

void words_fail(const struct words *w, const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "histories: line %zu: ", w->line);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static void cut(struct words *w)
{
	char *rest = w->text, *word;

	w->n = 0;
	while ((word = strsep(&rest, " \t\n"))) {
		if (!*word)
			continue;
		if (w->n == WORDS_MAX)
			words_fail(w, "too many words");
		w->at[w->n++] = word;
	}
}

bool words_next(struct words *w, FILE *f)
{
	while (getline(&w->text, &w->cap, f) >= 0) {
		w->line++;
		cut(w);
		if (w->n && w->at[0][0] != '#')
			return true;
	}
	return false;
}

void words_free(struct words *w)
{
	free(w->text);
	*w = (struct words){0};
}

bool words_are(const struct words *w, const char *first, size_t n)
{
	return w->n == n && !strcmp(w->at[0], first);
}

uint64_t words_u64(const struct words *w, size_t i, uint64_t max)
{
	uint64_t n;

	if (num_parse_u64(w->at[i], strlen(w->at[i]), 0, max, &n))
		words_fail(w, "'%s' is no number, or too great", w->at[i]);
	return n;
}

uint32_t words_u32(const struct words *w, size_t i, uint32_t max)
{
	return (uint32_t)words_u64(w, i, max);
}

bool words_flag(const struct words *w, size_t i, const char *yes, const char *no)
{
	if (!strcmp(w->at[i], yes))
		return true;
	if (strcmp(w->at[i], no) != 0)
		words_fail(w, "'%s' is neither '%s' nor '%s'", w->at[i], yes, no);
	return false;
}

enum backend_state words_state(const struct words *w, size_t i)
{
	if (!strcmp(w->at[i], "up"))
		return BACKEND_UP;
	if (!strcmp(w->at[i], "failing"))
		return BACKEND_FAILING;
	return words_flag(w, i, "drain", "down") ? BACKEND_DRAIN : BACKEND_DOWN;
}

struct addr words_addr(const struct words *w, size_t i)
{
	struct addr a = {0};

	if (strcmp(w->at[i], "here") != 0 && addr_parse(w->at[i], strlen(w->at[i]), &a, NULL))
		words_fail(w, "'%s' is no address", w->at[i]);
	return a;
}

struct hash_key words_key(const struct words *w, size_t i)
{
	struct hash_key key = {0};

	if (strlen(w->at[i]) != 32)
		words_fail(w, "a key has 32 digits");
	for (uint32_t byte = 0; byte < 16; byte++) {
		const char *hex = w->at[i] + 2 * byte;
		char digits[] = {'0', 'x', hex[0], hex[1], '\0'};
		uint32_t value;

		if (num_parse_hex32(digits, sizeof(digits) - 1, &value))
			words_fail(w, "'%s' is no key", w->at[i]);
		key.word[byte / 8] |= (uint64_t)value << byte % 8 * 8;
	}
	return key;
}
