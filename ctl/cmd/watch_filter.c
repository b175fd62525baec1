// SPDX-License-Identifier: GPL-2.0-only
// The conditions on events of `weir watch`.
#include "ctl/cmd/watch_filter.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/diag_nearest.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/datapath/counters.h"

// In the order of enum watch_test; "not" is no test, but may be misspelt as well.
static const char *const words[] = {"from",      "to",    "rule",   "reason",
				    "interface", "drops", "logged", "not"};
#define TESTS (ARRAY_SIZE(words) - 1)

static int unknown(const char *word, struct err *err)
{
	const char *nearest = diag_nearest(word, words, ARRAY_SIZE(words));

	err_input(err, "unexpected argument '%s'", word);
	if (nearest)
		return err_hint(err, "did you mean '%s'?", nearest);
	return err_hint(err, "conditions are: from ADDRESS, to ADDRESS, rule NAME, reason NAME, "
			     "interface NAME, drops, logged, each also after 'not'");
}

static int read_prefix(const char *word, const char *text, struct prefix *ret, struct err *err)
{
	if (!prefix_parse_masked(text, strlen(text), ret, NULL))
		return 0;
	err_input(err, "'%s' after '%s' is not an address", text, word);
	return err_hint(err, "an address or prefix such as 192.0.2.0/24");
}

static int check_reason(const char *name, struct err *err)
{
	const char *names[WEIR_REASON_COUNT];
	const char *nearest;

	for (unsigned r = 0; r < WEIR_REASON_COUNT; r++) {
		names[r] = reason_name((enum weir_reason)r);
		if (text_same(names[r], name))
			return 0;
	}
	err_input(err, "no reason has the name '%s'", name);
	nearest = diag_nearest(name, names, WEIR_REASON_COUNT);
	if (nearest)
		return err_hint(err, "did you mean '%s'?", nearest);
	return err_hint(err, "weir stats --all prints the reasons");
}

static int read_value(struct watch_condition *c, const char *value, struct err *err)
{
	if (c->test == WATCH_FROM || c->test == WATCH_TO)
		return read_prefix(words[c->test], value, &c->prefix, err);
	c->name = value;
	return c->test == WATCH_REASON ? check_reason(value, err) : 0;
}

static bool has_value(enum watch_test test)
{
	return test != WATCH_DROPS && test != WATCH_LOGGED;
}

// Reads one condition from the word *at on.
static int read_one(const struct args *args, size_t *at, struct watch_condition *c, struct err *err)
{
	size_t test = 0;

	*c = (struct watch_condition){0};
	while (*at < args->words.n && text_same(args->words.at[*at], "not")) {
		c->negated = !c->negated;
		++*at;
	}
	if (*at == args->words.n)
		return err_input(err, "missing condition after 'not'");
	while (test < TESTS && !text_same(args->words.at[*at], words[test]))
		test++;
	if (test == TESTS)
		return unknown(args->words.at[*at], err);
	c->test = (enum watch_test)test;
	++*at;
	if (!has_value(c->test))
		return 0;
	if (*at == args->words.n)
		return err_input(err, "missing value after '%s'", words[test]);
	return read_value(c, args->words.at[(*at)++], err);
}

int watch_filter_read(const struct args *args, struct watch_filter *ret, struct err *err)
{
	struct watch_condition one;

	for (size_t at = 0; at < args->words.n;) {
		int code = read_one(args, &at, &one, err);

		if (code)
			return code;
		vec_push(&ret->all, one);
	}
	if (watch_filter_admits(ret, true) || watch_filter_admits(ret, false))
		return 0;
	return err_input(err, "an event is either a drop or logged: these conditions exclude both");
}

void watch_filter_free(struct watch_filter *f)
{
	vec_free(&f->all);
}

static bool in_prefix(const struct watch_condition *c, const struct watch_event *e)
{
	const struct addr *a = c->test == WATCH_FROM ? &e->from : &e->to;
	struct prefix host;

	if (!e->ip)
		return false;
	host = prefix_of(a, (uint8_t)addr_bits(a));
	return prefix_contains(&c->prefix, &host);
}

static bool is_true(const struct watch_condition *c, const struct watch_event *e)
{
	switch (c->test) {
	case WATCH_FROM:
	case WATCH_TO:
		return in_prefix(c, e);
	case WATCH_RULE:
		return e->rule && text_same(e->rule, c->name);
	case WATCH_REASON:
		return text_same(e->reason, c->name);
	case WATCH_INTERFACE:
		return text_same(e->interface, c->name);
	case WATCH_DROPS:
		return !e->logged;
	case WATCH_LOGGED:
		return e->logged;
	}
	return false;
}

bool watch_filter_holds(const struct watch_filter *f, const struct watch_event *e)
{
	for (size_t n = 0; n < f->all.n; n++)
		if (is_true(&f->all.at[n], e) == f->all.at[n].negated)
			return false;
	return true;
}

bool watch_filter_admits(const struct watch_filter *f, bool logged)
{
	for (size_t n = 0; n < f->all.n; n++) {
		const struct watch_condition *c = &f->all.at[n];

		if (!has_value(c->test) && ((c->test == WATCH_LOGGED) == logged) == c->negated)
			return false;
	}
	return true;
}
