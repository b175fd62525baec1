// SPDX-License-Identifier: GPL-2.0-only
// Collects the keywords from the tables of fields, choices and statements, and the other ones.
#include "ctl/policy/keywords.h"

#include <string.h>

#include "ctl/base/diag_nearest.h"
#include "ctl/base/mem.h"
#include "ctl/policy/fields.h"
#include "ctl/policy/words.h"

#define STATEMENT(name) #name,

static const char *const statements[] = {STATEMENTS(STATEMENT) "always",
					 WORDS_OF_ACTIONS(WORDS_WORD_ONLY)};

// Words that are not in another table.
static const char *const others[] = {
	"add",  "any",     "asn",     "backend",  "backup", "body",   "burst", "ca",   "check",
	"code", "country", "dynamic", "every",    "expire", "fall",   "file",  "for",  "hash",
	"here", "host",    "idle",    "insecure", "keep",   "lax",    "log",   "lost", "mask",
	"max",  "min",     "mode",    "not",      "of",     "path",   "per",   "pins", "port",
	"ramp", "ring",    "rise",    "optional", "self",   "sni",    "snap",  "udp",  "sha256",
	"url",  "via",     "timeout", "under",    "vip",    "weight", "wide",
};

static const struct choice *const choices[] = {
	&choice_actions, &choice_pers,   &choice_treatments, &choice_modes,   &choice_hashes,
	&choice_udp,     &choice_checks, &choice_attach,     &choice_expects, &choice_vias,
};

static bool is_one_of(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] && words[i][0] == word[0] && !strcmp(words[i], word))
			return true;
	return false;
}

// A field that became one later than policies had names is no keyword.
static bool is_field(const char *word)
{
	size_t field = field_find(word);

	return field < AST_RULE_FIELDS && !fields[field].name;
}

bool keyword_is(const char *word)
{
	if (word[0] < 'a' || word[0] > 'z') // most words of lists are addresses
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++)
		if (is_one_of(choices[i]->words, choices[i]->n, word))
			return true;
	return is_field(word) || keyword_is_statement(word) ||
	       is_one_of(others, ARRAY_SIZE(others), word);
}

bool keyword_is_statement(const char *word)
{
	return is_one_of(statements, ARRAY_SIZE(statements), word);
}

const char *keyword_nearest_statement(const char *word)
{
	return diag_nearest(word, statements, ARRAY_SIZE(statements));
}
