// SPDX-License-Identifier: GPL-2.0-only
// Parses services: blocks of options, among them "check".

#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/host.h"
#include "ctl/policy/names.h"
#include "ctl/policy/parser.h"

static bool parse_port_number(struct parser *p, bool *ret_has, uint16_t *ret)
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
		return parse_expected(p, "the end of the option", NULL);
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

static bool parse_check(struct parser *p, struct ast_check *c, const struct token *t)
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

// Each parses what follows the option's word, which is passed.
typedef bool option_fn(struct parser *p, struct ast_service *s, const struct token *t);

static bool parse_vip(struct parser *p, struct ast_service *s, const struct token *t)
{
	return parse_list(p, &domain_address, &s->vip);
}

static bool parse_proto(struct parser *p, struct ast_service *s, const struct token *t)
{
	return parse_list(p, &domain_proto, &s->proto);
}

static bool parse_port(struct parser *p, struct ast_service *s, const struct token *t)
{
	s->any_port = parse_accept_word(p, "any");
	return s->any_port || parse_list(p, &domain_port, &s->port);
}

static bool parse_mode(struct parser *p, struct ast_service *s, const struct token *t)
{
	return parse_choice(p, &choice_modes, NULL, &s->mode);
}

static bool parse_idle(struct parser *p, struct ast_service *s, const struct token *t)
{
	return parse_time(p, "a time", &s->idle_ms);
}

static bool parse_lost(struct parser *p, struct ast_service *s, const struct token *t)
{
	return parse_time(p, "a time", &s->lost_ms);
}

static bool parse_ramp(struct parser *p, struct ast_service *s, const struct token *t)
{
	return parse_time(p, "a time", &s->ramp_ms);
}

static bool parse_keep(struct parser *p, struct ast_service *s, const struct token *t)
{
	uint64_t millionths;

	if (!parse_percent(p, &millionths))
		return false;
	s->keep = (uint32_t)(millionths / 10000);
	return true;
}

static bool parse_check_option(struct parser *p, struct ast_service *s, const struct token *t)
{
	return parse_check(p, &s->check, t);
}

static bool parse_udp(struct parser *p, struct ast_service *s, const struct token *t)
{
	uint8_t n;

	if (!parse_choice(p, &choice_udp, NULL, &n))
		return false;
	s->udp_move = n == UDP_MOVE;
	return true;
}

static bool parse_hash(struct parser *p, struct ast_service *s, const struct token *t)
{
	uint8_t n;

	if (!parse_choice(p, &choice_hashes, NULL, &n))
		return false;
	s->hash_source = n == SERVICE_HASH_SOURCE;
	return true;
}

static bool parse_source(struct parser *p, struct ast_service *s, const struct token *t)
{
	return parse_list(p, &domain_address, &s->source);
}

static bool parse_ring(struct parser *p, struct ast_service *s, const struct token *t)
{
	return parse_number(p, "a ring size", POLICY_RING_MIN, POLICY_RING_MAX, &s->ring);
}

static bool parse_pins(struct parser *p, struct ast_service *s, const struct token *t)
{
	return parse_count(p, "a number of pins", POLICY_PINS_MIN, POLICY_PINS_MAX, &s->pins);
}

// ---- backend ------------------------------------------------------------------------------------

static bool parse_backend_words(struct parser *p, struct ast_backend *b)
{
	struct diag_at port = {0}, weight = {0}, backup = {0};
	bool ok = true;

	while (ok && !parse_at_end(p)) {
		const struct token *t = p->at;

		if (parse_accept_word(p, "port"))
			ok = parse_once(p, &port, t, "backend") &&
			     parse_port_number(p, &b->has_port, &b->port);
		else if (parse_accept_word(p, "weight"))
			ok = parse_once(p, &weight, t, "backend") &&
			     parse_number(p, "a weight", 0, POLICY_WEIGHT_MAX, &b->weight);
		else if (parse_accept_word(p, "backup"))
			ok = parse_once(p, &backup, t, "backend");
		else
			return parse_expected(p, "port, weight or backup", NULL);
	}
	b->has_weight = weight.file;
	b->backup = backup.file;
	return ok;
}

static bool parse_backend(struct parser *p, struct ast_service *s, const struct token *t)
{
	struct ast_backend b = {.at = p->at->at, .line = t->line, .weight = 1};

	if (!parse_room(p, s->backends.n, POLICY_BACKENDS, t->at, "backends in one service"))
		return false;
	if (!parse_accept_word(p, "here")) {
		if (!parse_is(p, TOKEN_WORD) || keyword_is(p->at->text))
			return parse_expected(p, "an address or here", NULL);
		b.word = parse_next(p)->text;
	}
	if (!parse_backend_words(p, &b))
		return false;
	vec_push(&s->backends, b);
	return true;
}

// ---- the block ----------------------------------------------------------------------------------

static const struct {
	const char *word;
	enum ast_option option; // AST_OPTIONS: may be given more than once
	option_fn *parse;
} options[] = {
	{"vip", AST_VIP, parse_vip},
	{"proto", AST_SERVICE_PROTO, parse_proto},
	{"port", AST_SERVICE_PORT, parse_port},
	{"mode", AST_MODE, parse_mode},
	{"idle", AST_IDLE, parse_idle},
	{"lost", AST_LOST, parse_lost},
	{"udp", AST_UDP, parse_udp},
	{"backend", AST_OPTIONS, parse_backend},
	{"hash", AST_HASH, parse_hash},
	{"source", AST_SOURCE, parse_source},
	{"ring", AST_RING, parse_ring},
	{"pins", AST_PINS, parse_pins},
	{"check", AST_CHECK, parse_check_option},
	{"ramp", AST_RAMP, parse_ramp},
	{"keep", AST_KEEP, parse_keep},
};

static bool unknown_option(struct parser *p)
{
	const char *words[ARRAY_SIZE(options)], *near = NULL;
	char hint[80];

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		words[i] = options[i].word;
	if (parse_is(p, TOKEN_WORD))
		near = diag_nearest(p->at->text, words, ARRAY_SIZE(words));
	if (near)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", near);
	return parse_expected(p, "an option of a service or '}'", near ? hint : NULL);
}

static bool parse_option(struct parser *p, struct ast_service *s)
{
	const struct token *t = p->at;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (!parse_accept_word(p, options[i].word))
			continue;
		if (options[i].option != AST_OPTIONS &&
		    !parse_once(p, &s->option_at[options[i].option], t, "service"))
			return false;
		if (!options[i].parse(p, s, t))
			return false;
		return parse_at_end(p) || parse_expected(p, "the end of the option", NULL);
	}
	return unknown_option(p);
}

static void skip_option(struct parser *p)
{
	while (!parse_at_end(p) && !parse_starts_statement(p->at))
		parse_next(p);
}

static bool parse_block(struct parser *p, struct ast_service *s, const struct token *open)
{
	for (;;) {
		while (parse_accept(p, TOKEN_END))
			;
		if (parse_accept(p, TOKEN_CLOSE))
			return true;
		if (parse_is(p, TOKEN_EOF) || parse_starts_statement(p->at))
			return parse_fail(p, open->at, NULL, "unclosed '{'");
		if (!parse_option(p, s)) {
			s->broken = true;
			skip_option(p);
		}
	}
}

static void free_service(struct ast_service *s)
{
	vec_free(&s->vip.items);
	vec_free(&s->proto.items);
	vec_free(&s->port.items);
	vec_free(&s->source.items);
	vec_free(&s->backends);
}

bool parse_service(struct parser *p)
{
	struct ast_service s = {.line = p->at->line};
	const struct token *name, *open;
	bool closed;

	parse_next(p);
	if (!parse_name(p, "the name of a service", &name))
		return false;
	s.at = name->at;
	s.name = name->text;
	open = p->at;
	if (!parse_accept(p, TOKEN_OPEN))
		return parse_expected(p, "'{'", NULL);
	p->in_block = true;
	closed = parse_block(p, &s, open);
	s.broken = s.broken || !closed;
	p->in_block = false;
	if (p->ast->services.n > POLICY_SERVICES) { // reported once; nothing more is kept
		free_service(&s);
		return closed;
	}
	parse_room(p, p->ast->services.n, POLICY_SERVICES, s.at, "services");
	vec_push(&p->ast->services, s);
	return closed;
}
