// SPDX-License-Identifier: GPL-2.0-only
// Shared by the parts of the parser.
//
// A function that parses returns true, or false when an error has been queued and the statement is
// to be left; p->at is then where the error was found.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/limits-policy.h"
#include "ctl/policy/ast.h"
#include "ctl/policy/domain.h"
#include "ctl/policy/keywords.h"
#include "ctl/policy/lex.h"
#include "ctl/policy/source.h"
#include "ctl/policy/words.h"

struct parser {
	struct ast *ast;
	struct diag *diag;
	struct source *source;
	const struct token *at; // the next one; the last token is TOKEN_EOF, which is never passed
	bool in_block;          // "}" ends an option
	const struct token *include; // the path of an "include" whose files are to be read now
};

// ---- tokens (parse_token.c) ---------------------------------------------------------------------

const struct token *parse_next(struct parser *p); // the token, and passes it
bool parse_is(const struct parser *p, enum token_kind kind);
bool parse_is_word(const struct parser *p, const char *word);
bool parse_accept(struct parser *p, enum token_kind kind);
bool parse_accept_word(struct parser *p, const char *word);
bool parse_at_end(const struct parser *p); // word of a statement or option
bool parse_starts_statement(const struct token *t);

// Queues "expected WHAT, found …" at the next token; returns false. hint may be NULL.
bool parse_expected(struct parser *p, const char *what, const char *hint);
#define PARSE_OPTION_ENDS "an option of a service ends at the end of the line or at ';'"
// Queues an error at `at`; returns false.
__attribute__((format(printf, 4, 5))) bool parse_fail(struct parser *p, struct diag_at at,
						      const char *hint, const char *fmt, ...);
// "duplicate 'log' in this rule" if *first is set; else *first becomes the location of the token.
bool parse_once(struct parser *p, struct diag_at *first, const struct token *t, const char *where);
// "more than MAX WHATS" when n has reached max.
bool parse_room(struct parser *p, size_t n, size_t max, struct diag_at at, const char *what);

struct diag_at parse_span(struct diag_at first, struct diag_at last); // from one to the other
bool parse_name(struct parser *p, const char *what, const struct token **ret);
bool parse_ifname(struct parser *p, bool pattern, const struct token **ret);
bool parse_string(struct parser *p, const char *what, const struct token **ret);
// One of the choice's words; *ret is its number. `other` is what else may be here, for "expected A,
// B or OTHER"; NULL: nothing.
bool parse_choice(struct parser *p, const struct choice *choice, const char *other, uint8_t *ret);

// ---- values (parse_value.c) ---------------------------------------------------------------------

bool parse_number(struct parser *p, const char *what, uint32_t min, uint32_t max, uint32_t *ret);
bool parse_count(struct parser *p, const char *what, uint64_t min, uint64_t max, uint64_t *ret);
bool parse_time(struct parser *p, const char *what, uint64_t *ret);
bool parse_mask(struct parser *p, uint8_t *ret4, uint8_t *ret6);
bool parse_rate(struct parser *p, bool allow_bits, struct ast_rate *ret);
bool parse_percent(struct parser *p, uint64_t *ret_millionths); // 0 .. 100,000,000
bool parse_number_span(struct parser *p, const char *what, uint32_t max, struct ast_span *ret);

// ---- lists (parse_list.c) -----------------------------------------------------------------------

bool parse_list(struct parser *p, const struct domain *domain, struct ast_list *ret);
// The elements of a set of addresses or of ports; true: the block is complete, but *ret_broken is
// set if it has errors.
bool parse_elements(struct parser *p, const struct domain *domain, const struct token *open,
		    struct ast_list *ret, bool *ret_broken);
// "names" [ "/" "names" ]; mask may be NULL: no "/".
bool parse_flags(struct parser *p, struct ast_list *set, struct ast_list *mask);

// The hint for a clause of nft or iptables at the next token; NULL: it is unknown
// (parse_foreign.c).
const char *parse_foreign(const struct parser *p);

// ---- statements: at the first word, which is known but not consumed -----------------------------

bool parse_statement(struct parser *p);
bool parse_rule(struct parser *p);
// A rule with an error keeps its name, so that the name is not reported as unknown.
void parse_break_rule(struct ast_rule *rule);
bool parse_service(struct parser *p);
// The option "check" of a service; t: its word (parse_check.c).
bool parse_check(struct parser *p, struct ast_check *c, const struct token *t);
// 1 to 65535, for a check or a backend (parse_check.c).
bool parse_port_number(struct parser *p, bool *ret_has, uint16_t *ret);
bool parse_expect(struct parser *p);
