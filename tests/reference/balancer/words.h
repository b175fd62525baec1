// SPDX-License-Identifier: GPL-2.0-only
// Text input: lines cut into words, and what the words mean.
#ifndef REF_WORDS_H
#define REF_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "siphash.h"

#define WORDS_MAX 16

struct line {
	char *text; /* without the newline */
	size_t cap;
	unsigned long number; /* from 1 */
	char *word[WORDS_MAX];
	unsigned int words;
};

/* The next line that is neither empty nor a comment (#), not cut yet; false at the end. */
bool line_read(FILE *file, struct line *line);
void line_cut(struct line *line);
void line_free(struct line *line);

/* Reports an invalid line and exits with status 2. */
void line_fail(const struct line *line, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/* Does the line begin with this word and have so many words? Fails if only the word is right. */
bool line_is(const struct line *line, const char *word, unsigned int words);

/* Word i, or the line fails. */
uint64_t word_number(const struct line *line, unsigned int i, uint64_t min, uint64_t max);
unsigned int word_choice(const struct line *line, unsigned int i, const char *const *choices);
void word_key(const struct line *line, unsigned int i, uint8_t ret_key[SIPHASH_KEY]);
/* 4 or 6; 0 for "here". */
uint8_t word_address(const struct line *line, unsigned int i, uint8_t ret_address[16]);

/* Zeroed memory; exits if there is no more. */
void *memory(size_t count, size_t bytes);

#endif
