// SPDX-License-Identifier: GPL-2.0-only
// Hints for clauses of nft and iptables that take several words: "ct state new", "meta hour".
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/names.h"
#include "ctl/policy/parser.h"

#define BEFORE "XDP sees packets before connection tracking: "

// In the order in which they are looked for: a list needs what its first word here needs.
static const struct {
	const char *state, *hint;
} states[] = {
	{"new", BEFORE "write 'not established flags syn', or keep this rule in nft"},
	{"invalid",
	 BEFORE "keep this rule in nft, or write 'not established flags none/syn' for TCP "
		"without a connection"},
	{"untracked", BEFORE "keep this rule in nft, or write 'not established'"},
	{"related",
	 BEFORE "write 'established', and 'type destination-unreachable, time-exceeded, "
		"parameter-problem' in a second rule; keep other related packets in nft"},
	{"established", "write 'established'"},
};

static bool is_any(const struct token *t, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n && t->kind == TOKEN_WORD; i++)
		if (!strcmp(t->text, words[i]))
			return true;
	return false;
}

// Is the word among the words of this line, in any case? iptables writes NEW,ESTABLISHED.
static bool names_state(const struct token *t, const char *state)
{
	for (; t->kind == TOKEN_WORD || t->kind == TOKEN_COMMA || t->kind == TOKEN_OPEN; t++)
		if (t->kind == TOKEN_WORD && !strcasecmp(t->text, state))
			return true;
	return false;
}

static const char *hint_of_tracking(const struct token *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (names_state(t, states[i].state))
			return states[i].hint;
	return BEFORE "write 'established' or 'not established', or keep this rule in nft";
}

const char *parse_foreign(const struct parser *p)
{
	static const char *const tracking[] = {"ct", "state", "ctstate", "conntrack"};
	const struct token *t = p->at;

	if (t->kind != TOKEN_WORD)
		return NULL;
	if (!strcmp(t->text, "ct") && t[1].kind == TOKEN_WORD && !strcmp(t[1].text, "count"))
		return "write over 50 connections per source, for connections to this host";
	if (is_any(t, tracking, ARRAY_SIZE(tracking)))
		return hint_of_tracking(t + 1);
	if (!strcmp(t->text, "meta") && t[1].kind == TOKEN_WORD)
		t++;
	return names_foreign(t->text, true);
}
