// SPDX-License-Identifier: GPL-2.0-only
// One table for each list of common/words.h.
#include "ctl/policy/words.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CHOICE(name, words_of)                                            \
	static const char *const name##_words[] = {words_of(WORDS_WORD)}; \
	const struct choice choice_##name = {name##_words,                \
					     sizeof(name##_words) / sizeof(*name##_words)}

CHOICE(actions, WORDS_OF_ACTIONS);
CHOICE(pers, WORDS_OF_PERS);
CHOICE(treatments, WORDS_OF_TREATMENTS);
CHOICE(modes, WORDS_OF_MODES);
CHOICE(hashes, WORDS_OF_HASHES);
CHOICE(udp, WORDS_OF_UDP);
CHOICE(checks, WORDS_OF_CHECKS);
CHOICE(attach, WORDS_OF_ATTACH);
CHOICE(expects, WORDS_OF_EXPECTS);
CHOICE(vias, WORDS_OF_VIAS);

const char *choice_word(const struct choice *c, size_t number)
{
	return number < c->n && c->words[number] ? c->words[number] : "";
}

int choice_find(const struct choice *c, const char *word, size_t *ret)
{
	for (size_t n = 0; n < c->n; n++) {
		if (!c->words[n] || strcmp(word, c->words[n]) != 0)
			continue;
		*ret = n;
		return 0;
	}
	return -ENOENT;
}

static bool fits(size_t mode, unsigned does, unsigned not )
{
	unsigned all = service_mode_does((enum service_mode)mode);

	return (all & does) == does && !(all & not );
}

const char *choice_modes_that(unsigned does, unsigned not, choice_text buf)
{
	size_t len = 0, last = 0;

	for (size_t i = 0; i < choice_modes.n; i++)
		if (fits(i, does, not ))
			last = i;
	buf[0] = '\0';
	for (size_t i = 0; i <= last; i++)
		if (fits(i, does, not ))
			len += (size_t)snprintf(buf + len, sizeof(choice_text) - len, "%s%s",
						!len        ? ""
						: i == last ? " or "
							    : ", ",
						choice_word(&choice_modes, i));
	return buf;
}
