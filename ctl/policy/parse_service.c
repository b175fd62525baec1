// SPDX-License-Identifier: GPL-2.0-only
// Parses services: blocks of options.

#include <stdio.h>
#include <string.h>

#include "ctl/base/diag_nearest.h"
#include "ctl/base/mem.h"
#include "ctl/policy/host.h"
#include "ctl/policy/names.h"
#include "ctl/policy/parser.h"

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

static bool parse_connections(struct parser *p, struct ast_service *s, const struct token *t)
{
	return parse_count(p, "a number of connections", POLICY_NAT_MIN, POLICY_NAT_MAX,
			   &s->connections);
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
			return parse_expected(p, "port, weight or backup", PARSE_OPTION_ENDS);
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
	{"connections", AST_CONNECTIONS, parse_connections},
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
		return parse_at_end(p) ||
		       parse_expected(p, "the end of the option", PARSE_OPTION_ENDS);
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
