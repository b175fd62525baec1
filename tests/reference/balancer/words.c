// SPDX-License-Identifier: GPL-2.0-only
// Text input: lines cut into words, and what the words mean.
#include "words.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void *memory(size_t count, size_t bytes)
{
	void *space = calloc(count ? count : 1, bytes);

	if (!space) {
		fputs("out of memory\n", stderr);
		exit(2);
	}
	return space;
}

void line_fail(const struct line *line, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "line %lu: ", line->number);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

bool line_read(FILE *file, struct line *line)
{
	ssize_t len;

	while ((len = getline(&line->text, &line->cap, file)) >= 0) {
		line->number++;
		if (len > 0 && line->text[len - 1] == '\n')
			line->text[--len] = '\0';
		if (strlen(line->text) != (size_t)len)
			line_fail(line, "a zero byte");
		if (len > 0 && line->text[0] != '#')
			return true;
	}
	return false;
}

void line_cut(struct line *line)
{
	char *rest = line->text;

	line->words = 0;
	while (*(rest += strspn(rest, " \t"))) {
		if (line->words == WORDS_MAX)
			line_fail(line, "too many words");
		line->word[line->words++] = rest;
		rest += strcspn(rest, " \t");
		if (*rest)
			*rest++ = '\0';
	}
	if (!line->words)
		line_fail(line, "only blanks");
}

void line_free(struct line *line)
{
	free(line->text);
	*line = (struct line){0};
}

bool line_is(const struct line *line, const char *word, unsigned int words)
{
	if (strcmp(line->word[0], word))
		return false;
	if (line->words != words)
		line_fail(line, "'%s' takes %u words", word, words - 1);
	return true;
}

uint64_t word_number(const struct line *line, unsigned int i, uint64_t min, uint64_t max)
{
	const char *word = line->word[i];
	uint64_t number = 0;

	for (const char *c = word; *c; c++) {
		if (*c < '0' || *c > '9')
			line_fail(line, "'%s' is not a number", word);
		if (number > (UINT64_MAX - (uint64_t)(*c - '0')) / 10)
			line_fail(line, "'%s' is too great", word);
		number = number * 10 + (uint64_t)(*c - '0');
	}
	if (number < min || number > max)
		line_fail(line, "'%s' is out of range", word);
	return number;
}

unsigned int word_choice(const struct line *line, unsigned int i, const char *const *choices)
{
	for (unsigned int k = 0; choices[k]; k++)
		if (!strcmp(line->word[i], choices[k]))
			return k;
	line_fail(line, "unknown word '%s'", line->word[i]);
}

static int digit_value(char digit)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = digit ? strchr(digits, digit) : NULL;

	return found ? (int)(found - digits) : -1;
}

void word_key(const struct line *line, unsigned int i, uint8_t ret_key[SIPHASH_KEY])
{
	const char *word = line->word[i];

	if (strlen(word) != 2 * SIPHASH_KEY)
		line_fail(line, "a key is %d hexadecimal digits", 2 * SIPHASH_KEY);
	for (unsigned int k = 0; k < SIPHASH_KEY; k++) {
		int high = digit_value(word[2 * k]);
		int low = digit_value(word[2 * k + 1]);

		if (high < 0 || low < 0)
			line_fail(line, "'%s' is not a key in lower case", word);
		ret_key[k] = (uint8_t)(high * 16 + low);
	}
}

uint8_t word_address(const struct line *line, unsigned int i, uint8_t ret_address[16])
{
	const char *word = line->word[i];

	memset(ret_address, 0, 16);
	if (!strcmp(word, "here"))
		return 0;
	if (inet_pton(AF_INET, word, ret_address) == 1)
		return 4;
	if (inet_pton(AF_INET6, word, ret_address) == 1)
		return 6;
	line_fail(line, "'%s' is not an address", word);
}
