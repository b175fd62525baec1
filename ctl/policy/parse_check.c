// SPDX-License-Identifier: GPL-2.0-only
// Parses the option "check" of a service.

#include <stdio.h>
#include <string.h>

#include "ctl/base/diag_nearest.h"
#include "ctl/base/mem.h"
#include "ctl/policy/host.h"
#include "ctl/policy/parser.h"

bool parse_port_number(struct parser *p, bool *ret_has, uint16_t *ret)
{
	uint32_t port;

	if (!parse_number(p, "a port", 1, 65535, &port))
		return false;
	*ret_has = true;
	*ret = (uint16_t)port;
	return true;
}

// ---- what each kind begins with -----------------------------------------------------------------

static bool parse_path(struct parser *p, struct ast_check *c)
{
	const struct token *t;

	if (!parse_string(p, "a path", &t))
		return false;
	if (t->text[0] != '/')
		return parse_fail(p, t->at, NULL, "the path of a check must begin with '/'");
	c->path = t->text;
	return true;
}

static bool parse_question(struct parser *p, struct ast_check *c)
{
	char problem[160];

	if (!parse_is(p, TOKEN_WORD) || keyword_is(p->at->text))
		return parse_expected(p, "a host name", NULL);
	if (host_problem(p->at->text, problem, sizeof(problem)))
		return parse_fail(p, p->at->at, NULL, "'%s' %s", p->at->text, problem);
	c->name = parse_next(p)->text;
	return true;
}

static bool parse_program(struct parser *p, struct ast_check *c)
{
	const struct token *t;

	if (!parse_string(p, "a program", &t))
		return false;
	if (t->text[0] != '/')
		return parse_fail(p, t->at, NULL, "the program of a check must begin with '/'");
	c->arguments[c->n_arguments++] = t->text;
	while (parse_is(p, TOKEN_STRING)) {
		if (!parse_room(p, c->n_arguments, POLICY_ARGUMENTS, p->at->at,
				"arguments of one program"))
			return false;
		c->arguments[c->n_arguments++] = parse_next(p)->text;
	}
	return true;
}

static bool parse_kind(struct parser *p, struct ast_check *c)
{
	if (!parse_choice(p, &choice_checks, NULL, &c->kind))
		return false;
	switch ((enum check_kind)c->kind) {
	case CHECK_HTTP:
	case CHECK_HTTPS:
		return parse_path(p, c);
	case CHECK_DNS:
		return parse_question(p, c);
	case CHECK_EXEC:
		return parse_program(p, c);
	case CHECK_NONE:
	case CHECK_TCP:
		return true;
	}
	return true;
}

// ---- its words, in any order --------------------------------------------------------------------

static bool parse_text(struct parser *p, const char *what, const char **ret)
{
	const struct token *t;

	if (!parse_string(p, what, &t))
		return false;
	*ret = t->text;
	return true;
}

static bool parse_ca(struct parser *p, struct ast_check *c)
{
	struct diag_at at = p->at->at;

	if (!parse_text(p, "a file", &c->ca))
		return false;
	return c->ca[0] == '/' ||
	       parse_fail(p, at, NULL, "the file of certificates must begin with '/'");
}

static bool parse_statuses(struct parser *p, struct ast_check *c)
{
	do {
		struct diag_at at = p->at->at;
		struct ast_span *span = &c->statuses[c->n_statuses];

		if (!parse_room(p, c->n_statuses, POLICY_STATUSES, at, "statuses in one check") ||
		    !parse_number_span(p, "a status", 599, span))
			return false;
		if (span->first < 100)
			return parse_fail(p, at, NULL, "a status is 100 to 599");
		c->n_statuses++;
	} while (parse_accept(p, TOKEN_COMMA));
	return true;
}

// Records that a server may be asked for; RFC 1035, 3596 and 2782. Not keywords: they follow
// "type".
static bool parse_type(struct parser *p, struct ast_check *c)
{
	static const struct {
		const char *word;
		uint16_t type;
	} types[] = {{"a", 1},   {"ns", 2},   {"soa", 6},   {"ptr", 12},
		     {"mx", 15}, {"txt", 16}, {"aaaa", 28}, {"srv", 33}};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (parse_accept_word(p, types[i].word)) {
			c->type = types[i].type;
			return true;
		}
	return parse_expected(p, "a, aaaa, ns, soa, ptr, mx, txt or srv", NULL);
}

static bool parse_via(struct parser *p, struct ast_check *c)
{
	if (!parse_accept_word(p, "path"))
		return parse_expected(p, "'path'", NULL);
	c->via_path = true;
	return true;
}

// N [of M]; only N: in a row.
static bool parse_fall(struct parser *p, struct ast_check *c)
{
	struct diag_at at = p->at->at;

	if (!parse_number(p, "a number of checks", 1, POLICY_FALL_OF, &c->fall))
		return false;
	c->of = c->fall;
	if (!parse_accept_word(p, "of"))
		return true;
	if (!parse_number(p, "a number of checks", 1, POLICY_FALL_OF, &c->of))
		return false;
	return c->fall <= c->of || parse_fail(p, at, "fall N of M: N at most M",
					      "'fall %u of %u' can never be true", c->fall, c->of);
}

enum check_word {
	PORT,
	EVERY,
	TIMEOUT,
	RISE,
	FALL,
	VIA,
	HOST,
	EXPECT,
	BODY,
	SNI,
	CA,
	INSECURE,
	TYPE,
	CHECK_WORDS,
};

static bool parse_check_value(struct parser *p, struct ast_check *c, enum check_word word)
{
	switch (word) {
	case PORT:
		return parse_port_number(p, &c->has_port, &c->port);
	case EVERY:
		return parse_time(p, "a time", &c->every_ms);
	case TIMEOUT:
		return parse_time(p, "a time", &c->timeout_ms);
	case RISE:
		return parse_number(p, "a number of checks", 1, 1000, &c->rise);
	case FALL:
		return parse_fall(p, c);
	case VIA:
		return parse_via(p, c);
	case HOST:
		return parse_text(p, "a host name", &c->host);
	case EXPECT:
		return parse_statuses(p, c);
	case BODY:
		return parse_text(p, "a pattern", &c->body);
	case SNI:
		return parse_text(p, "a host name", &c->sni);
	case CA:
		return parse_ca(p, c);
	case INSECURE:
		return c->insecure = true;
	default:
		return parse_type(p, c);
	}
}

#define ANY_KIND                                                                    \
	(1u << CHECK_TCP | 1u << CHECK_HTTP | 1u << CHECK_HTTPS | 1u << CHECK_DNS | \
	 1u << CHECK_EXEC)
#define WEB (1u << CHECK_HTTP | 1u << CHECK_HTTPS)

static const struct {
	const char *word;
	unsigned kinds;   // a bit for each kind that takes it
	const char *need; // for the message about another kind
} check_words[] = {
	[PORT] = {"port", ANY_KIND, "a check"},
	[EVERY] = {"every", ANY_KIND, "a check"},
	[TIMEOUT] = {"timeout", ANY_KIND, "a check"},
	[RISE] = {"rise", ANY_KIND, "a check"},
	[FALL] = {"fall", ANY_KIND, "a check"},
	[VIA] = {"via", ANY_KIND, "a check"},
	[HOST] = {"host", WEB, "check http or https"},
	[EXPECT] = {"expect", WEB, "check http or https"},
	[BODY] = {"body", WEB, "check http or https"},
	[SNI] = {"sni", 1u << CHECK_HTTPS, "check https"},
	[CA] = {"ca", 1u << CHECK_HTTPS, "check https"},
	[INSECURE] = {"insecure", 1u << CHECK_HTTPS, "check https"},
	[TYPE] = {"type", 1u << CHECK_DNS, "check dns"},
};

// "port, every, …": those that the kind takes.
static bool expected_word(struct parser *p, const struct ast_check *c)
{
	const char *known[CHECK_WORDS];
	char list[160], hint[48];
	size_t n = 0, len = 0;
	const char *near = NULL;

	if (c->kind == CHECK_NONE)
		return parse_expected(p, "the end of the option", PARSE_OPTION_ENDS);
	for (size_t i = 0; i < CHECK_WORDS; i++)
		if (check_words[i].kinds & 1u << c->kind)
			known[n++] = check_words[i].word;
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
					!i           ? ""
					: i == n - 1 ? " or "
						     : ", ",
					known[i]);
	if (parse_is(p, TOKEN_WORD))
		near = diag_nearest(p->at->text, known, n);
	if (near)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", near);
	return parse_expected(p, list, near ? hint : NULL);
}

static bool parse_check_word(struct parser *p, struct ast_check *c, struct diag_at *seen)
{
	const struct token *t = p->at;

	for (size_t i = 0; i < CHECK_WORDS; i++) {
		if (!parse_accept_word(p, check_words[i].word))
			continue;
		if (!(check_words[i].kinds & 1u << c->kind))
			return parse_fail(p, t->at, NULL, "'%s' needs %s", check_words[i].word,
					  check_words[i].need);
		return parse_once(p, &seen[i], t, "check") &&
		       parse_check_value(p, c, (enum check_word)i);
	}
	return expected_word(p, c);
}

bool parse_check(struct parser *p, struct ast_check *c, const struct token *t)
{
	struct diag_at seen[CHECK_WORDS] = {0};

	c->given = true;
	c->at = t->at;
	if (!parse_kind(p, c))
		return false;
	while (!parse_at_end(p))
		if (!parse_check_word(p, c, seen))
			return false;
	c->every_at = seen[EVERY];
	c->body_at = seen[BODY];
	c->via_at = seen[VIA];
	return true;
}
