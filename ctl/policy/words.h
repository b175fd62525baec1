// SPDX-License-Identifier: GPL-2.0-only
// The words of each closed choice of the language, by number: common/words.h as tables.
#pragma once

#include <stddef.h>

#include "common/words.h"

struct choice {
	const char *const *words; // NULL: a number without a word
	size_t n;
};

extern const struct choice choice_actions, choice_pers, choice_treatments, choice_modes,
	choice_hashes, choice_udp, choice_checks, choice_attach, choice_expects, choice_vias;

// The word, never NULL.
const char *choice_word(const struct choice *c, size_t number);
// The number of the word; -ENOENT: no such word.
int choice_find(const struct choice *c, const char *word, size_t *ret);

// "dr, ipip or gue": the modes that do all of `does` and nothing of `not` (MODE_*).
typedef char choice_text[64];
const char *choice_modes_that(unsigned does, unsigned not, choice_text buf);
