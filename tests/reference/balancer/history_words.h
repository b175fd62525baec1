// SPDX-License-Identifier: GPL-2.0-only
// Lines of a history, cut into words, and what the words mean.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/hash.h"
#include "common/service.h"
#include "ctl/base/addr.h"

#define WORDS_MAX 16

struct words {
	char *text;
	size_t cap;
	size_t line;
	char *at[WORDS_MAX];
	size_t n;
};

// The next line that is neither empty nor a comment. False: the end.
bool words_next(struct words *w, FILE *f);
void words_free(struct words *w);
// Does the line begin with this word, and have n words?
bool words_are(const struct words *w, const char *first, size_t n);

// Prints the error of the line, and ends the process with status 2.
__attribute__((format(printf, 2, 3))) _Noreturn void words_fail(const struct words *w,
								const char *fmt, ...);

// The value of word i; fails if the word is invalid.
uint64_t words_u64(const struct words *w, size_t i, uint64_t max);
uint32_t words_u32(const struct words *w, size_t i, uint32_t max);
bool words_flag(const struct words *w, size_t i, const char *yes, const char *no);
enum backend_state words_state(const struct words *w, size_t i);
struct addr words_addr(const struct words *w, size_t i); // "here": family 0
struct hash_key words_key(const struct words *w, size_t i);
