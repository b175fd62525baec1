// SPDX-License-Identifier: GPL-2.0-only
// Parses lists, the elements of sets, and TCP flags.
#include <stdio.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/geo.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/policy/names.h"
#include "ctl/policy/parser.h"

static bool keyword_fits(const struct domain *domain, const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(domain->keywords) && domain->keywords[i]; i++)
		if (!strcmp(domain->keywords[i], word))
			return true;
	return false;
}

static bool ends_item(const struct token *t)
{
	return t->kind == TOKEN_COMMA || t->kind == TOKEN_END || t->kind == TOKEN_EOF;
}

// Can the next token be the word of an item? A keyword that also begins a statement is a value only
// if a comma or the end of the line follows.
static bool at_value(const struct parser *p, const struct domain *domain)
{
	if (!parse_is(p, TOKEN_WORD))
		return false;
	if (!keyword_is(p->at->text))
		return true;
	return keyword_fits(domain, p->at->text) &&
	       (!parse_starts_statement(p->at) || ends_item(p->at + 1));
}

static bool expected_item(struct parser *p, const struct domain *domain, bool behind_comma)
{
	const char *hint = NULL;

	if (behind_comma && !parse_is(p, TOKEN_BAD))
		return parse_fail(p, p->at[-1].at, NULL, "a list cannot end with a comma");
	if (parse_is(p, TOKEN_OPEN))
		hint = "lists have no braces: a, b, c";
	else if (parse_is(p, TOKEN_STRING))
		hint = "without quotes";
	else if (parse_is(p, TOKEN_WORD))
		hint = "this is a keyword";
	return parse_expected(p, domain->expected ? domain->expected : domain->item, hint);
}

static void fill_item(struct ast_item *item, enum ast_item_kind kind, const struct token *t)
{
	item->kind = (uint8_t)kind;
	item->word = t->text;
	item->as_address = kind == AST_WORD ? (uint8_t)ast_word_of(t->text) : 0;
	item->line = t->line;
	item->at = t->at;
}

static bool parse_host(struct parser *p, struct ast_item *item, bool allowed)
{
	const struct token *keyword = parse_next(p);

	if (!allowed)
		return parse_fail(p, keyword->at, NULL, "'host' is allowed only before host names");
	if (!parse_is(p, TOKEN_WORD) || keyword_is(p->at->text))
		return parse_expected(p, "a host name", NULL);
	fill_item(item, AST_HOST, parse_next(p));
	item->wide = parse_accept_word(p, "wide");
	return true;
}

static bool parse_word(struct parser *p, struct ast_item *item, bool addresses)
{
	fill_item(item, AST_WORD, parse_next(p));
	if (!addresses || !parse_is_word(p, "wide"))
		return true;
	if (item->as_address != AST_NAME)
		return parse_fail(p, p->at->at, NULL,
				  "'wide' is allowed only after host names and list files");
	parse_next(p);
	item->wide = true;
	return true;
}

static bool parse_geo(struct parser *p, struct ast_item *item, bool allowed)
{
	const struct token *keyword = parse_next(p);
	enum geo_kind kind = geo_keyword(keyword->text, strlen(keyword->text));

	if (!allowed)
		return parse_fail(p, keyword->at, NULL,
				  "'%s' is allowed only in lists of addresses", keyword->text);
	if (!parse_is(p, TOKEN_WORD) || keyword_is(p->at->text))
		return parse_expected(p,
				      kind == GEO_COUNTRY ? "a country code"
							  : "the number of an autonomous system",
				      NULL);
	fill_item(item, AST_GEO, parse_next(p));
	item->geo = (uint8_t)kind;
	return true;
}

// An item, after its "not".
static bool parse_item(struct parser *p, const struct domain *domain, bool behind_comma,
		       struct ast_item *item)
{
	bool addresses = domain == &domain_address || domain == &domain_define;

	if (parse_is(p, TOKEN_DEFINE))
		fill_item(item, AST_DEFINE, parse_next(p));
	else if (parse_is(p, TOKEN_SET))
		fill_item(item, AST_SET, parse_next(p));
	else if (parse_is_word(p, "host"))
		return parse_host(p, item, addresses);
	else if (parse_is_word(p, "country") || parse_is_word(p, "asn"))
		return parse_geo(p, item, addresses);
	else if (!at_value(p, domain))
		return expected_item(p, domain, behind_comma);
	else if (!parse_word(p, item, addresses))
		return false;
	// "A - B": the lexer cuts this into three words.
	if (parse_is(p, TOKEN_WORD) && p->at->text[0] == '-' && item->kind == AST_WORD)
		return parse_fail(p, parse_span(item->at, p->at->at),
				  "write FIRST-LAST without blanks", "unexpected blank in a range");
	return true;
}

bool parse_list(struct parser *p, const struct domain *domain, struct ast_list *ret)
{
	const struct token *first = p->at;
	bool behind_comma = false;

	ret->given = true;
	ret->negated = parse_accept_word(p, "not");
	do {
		struct ast_item item = {.negated = parse_is_word(p, "not")};
		const struct token *not = item.negated ? parse_next(p) : NULL;

		if (!parse_item(p, domain, behind_comma && !not, &item))
			return false;
		vec_push(&ret->items, item);
		ret->at = parse_span(first->at, p->at[-1].at);
		behind_comma = parse_accept(p, TOKEN_COMMA);
	} while (behind_comma);
	return true;
}

// ---- sets ---------------------------------------------------------------------------------------

// Options that files and feeds share. False: errors are queued. *ret_none: the next word is another
// one.
static bool parse_file_word(struct parser *p, struct ast_item *item, struct diag_at seen[3],
			    bool *ret_none)
{
	const char *const owner = item->kind == AST_URL ? "url" : "file";
	const struct token *t = p->at;
	uint64_t n;

	*ret_none = false;
	if (parse_accept_word(p, "min")) {
		if (!parse_once(p, &seen[0], t, owner) ||
		    !parse_count(p, "a number of lines", 0, UINT32_MAX, &n))
			return false;
		item->min = (uint32_t)n;
	} else if (parse_accept_word(p, "lax")) {
		item->lax = true;
		return parse_once(p, &seen[1], t, owner);
	} else if (parse_accept_word(p, "wide")) {
		item->wide = true;
		return parse_once(p, &seen[2], t, owner);
	} else {
		*ret_none = true;
	}
	return true;
}

static bool parse_file_words(struct parser *p, struct ast_item *item)
{
	struct diag_at seen[3] = {0};
	bool none = false;

	while (!none)
		if (!parse_file_word(p, item, seen, &none))
			return false;
	return true;
}

static bool parse_every(struct parser *p, uint64_t *ret)
{
	const struct token *t = p->at;

	if (!parse_time(p, "a time", ret))
		return false;
	if (*ret < FEED_EVERY_MIN_MS || *ret > FEED_EVERY_MAX_MS)
		return parse_fail(p, t->at, NULL, "'%s' is out of range (1s to 30d)", t->text);
	return true;
}

// One option that only feeds have.
static bool parse_url_word(struct parser *p, struct ast_url *url, struct diag_at seen[3],
			   bool *ret_none)
{
	const struct token *t = p->at, *text;

	*ret_none = false;
	if (parse_accept_word(p, "every"))
		return parse_once(p, &seen[0], t, "url") && parse_every(p, &url->every_ms);
	if (parse_accept_word(p, "sha256")) {
		if (!parse_once(p, &seen[1], t, "url") ||
		    !parse_string(p, "the digest of the text", &text))
			return false;
		url->sha256 = text->text;
	} else if (parse_accept_word(p, "ca")) {
		if (!parse_once(p, &seen[2], t, "url") ||
		    !parse_string(p, "the path of a file with certificates", &text))
			return false;
		url->ca = text->text;
	} else {
		*ret_none = true;
	}
	return true;
}

static bool parse_url_words(struct parser *p, struct ast_item *item)
{
	struct ast_url *url = arena_zalloc(&p->ast->strings, 1, sizeof(*url));
	struct diag_at seen[3] = {0}, own[3] = {0};
	bool none = false, none_own = false;

	url->every_ms = FEED_EVERY_MS;
	item->url = url;
	while (!none || !none_own)
		if (!parse_file_word(p, item, seen, &none) ||
		    !parse_url_word(p, url, own, &none_own))
			return false;
	return true;
}

// ADDRESS "port" SPAN
static bool parse_pair(struct parser *p, struct ast_item *item)
{
	struct ast_span span = {0};

	if (item->negated)
		return parse_fail(p, p->at[-1].at, "leave the pair out",
				  "a set of pairs has no exclusions");
	if (!at_value(p, &domain_address))
		return expected_item(p, &domain_pair, false);
	fill_item(item, AST_PAIR, parse_next(p));
	if (!parse_accept_word(p, "port"))
		return parse_expected(p, "port", "write ADDRESS port PORT");
	if (!parse_number_span(p, "a port", UINT16_MAX, &span))
		return false;
	item->port_first = (uint16_t)span.first;
	item->port_last = (uint16_t)span.last;
	return true;
}

static bool parse_element(struct parser *p, const struct domain *domain, struct ast_item *item)
{
	const struct token *name;
	bool url;

	item->negated = parse_accept_word(p, "not");
	if (domain == &domain_pair)
		return parse_pair(p, item);
	url = parse_is_word(p, "url");
	if (domain != &domain_address || (!url && !parse_is_word(p, "file")))
		return parse_item(p, domain, false, item);
	parse_next(p);
	if (!parse_string(p, url ? "the URL of a list" : "the path of a file", &name))
		return false;
	fill_item(item, url ? AST_URL : AST_FILE, name);
	return url ? parse_url_words(p, item) : parse_file_words(p, item);
}

static bool at_newline(const struct parser *p)
{
	return parse_is(p, TOKEN_END) && p->at->newline;
}

static bool at_element_end(const struct parser *p)
{
	return parse_is(p, TOKEN_COMMA) || parse_is(p, TOKEN_CLOSE) || parse_is(p, TOKEN_EOF) ||
	       at_newline(p);
}

// After an error: the next element may be valid.
static void skip_element(struct parser *p)
{
	while (!at_element_end(p) && !parse_starts_statement(p->at))
		parse_next(p);
}

static bool parse_one_element(struct parser *p, const struct domain *domain, struct ast_list *ret)
{
	struct ast_item item = {0};
	bool pair;

	if (!parse_element(p, domain, &item)) {
		skip_element(p);
		return false;
	}
	vec_push(&ret->items, item);
	if (at_element_end(p) || parse_starts_statement(p->at))
		return true;
	pair = domain == &domain_address && parse_is_word(p, "port");
	parse_expected(p, "',' or '}'", pair ? "write set NAME pairs { ADDRESS port PORT }" : NULL);
	skip_element(p);
	return false;
}

bool parse_elements(struct parser *p, const struct domain *domain, const struct token *open,
		    struct ast_list *ret, bool *ret_broken)
{
	ret->given = true;
	for (;;) {
		while (at_newline(p))
			parse_next(p);
		if (parse_accept(p, TOKEN_CLOSE))
			break;
		if (parse_is(p, TOKEN_EOF) || parse_starts_statement(p->at))
			return parse_fail(p, open->at, NULL, "unclosed '{'");
		if (!parse_one_element(p, domain, ret))
			*ret_broken = true;
		parse_accept(p, TOKEN_COMMA);
	}
	ret->at = parse_span(open->at, p->at[-1].at);
	return true;
}

// ---- flags --------------------------------------------------------------------------------------

// "fin,psh,urg/fin,psh": words hold the "/", so they are cut once more.
struct flags {
	struct parser *p;
	struct ast_list *now, *mask; // mask NULL: no "/" any more
	bool want;                   // a flag must follow
};

static bool add_flag(struct flags *f, const struct token *t, size_t from, size_t len)
{
	struct ast_item item = {.kind = AST_WORD, .line = t->line, .at = t->at};

	item.at.offset += (uint32_t)from;
	item.at.len = (uint32_t)len;
	item.word = arena_strndup(&f->p->ast->strings, t->text + from, len);
	if (keyword_is(item.word) && strcmp(item.word, "none") != 0)
		return parse_fail(f->p, item.at, NULL, "expected a TCP flag, found '%s'",
				  item.word);
	vec_push(&f->now->items, item);
	f->want = false;
	return true;
}

static bool add_slash(struct flags *f, const struct token *t)
{
	if (f->want || !f->mask)
		return parse_fail(f->p, t->at, "write SET or SET/MASK", "unexpected '/'");
	f->now = f->mask;
	f->now->given = true;
	f->mask = NULL;
	f->want = true;
	return true;
}

static bool parse_flag_word(struct flags *f, const struct token *t)
{
	for (size_t at = 0; t->text[at];) {
		size_t len = strcspn(t->text + at, "/");

		if (len && !add_flag(f, t, at, len))
			return false;
		at += len;
		if (!t->text[at])
			break;
		if (!add_slash(f, t))
			return false;
		at++;
	}
	return true;
}

bool parse_flags(struct parser *p, struct ast_list *set, struct ast_list *mask)
{
	struct flags f = {.p = p, .now = set, .mask = mask, .want = true};
	const struct token *first = p->at;

	set->given = true;
	while (f.want || (parse_is(p, TOKEN_WORD) && p->at->text[0] == '/')) {
		if (!parse_is(p, TOKEN_WORD) || parse_starts_statement(p->at))
			return p->at[-1].kind == TOKEN_COMMA
				       ? parse_fail(p, p->at[-1].at, NULL,
						    "a list cannot end with a comma")
				       : parse_expected(p, "a TCP flag", NULL);
		if (!parse_flag_word(&f, parse_next(p)))
			return false;
		if (!f.want && parse_accept(p, TOKEN_COMMA))
			f.want = true;
	}
	set->at = parse_span(first->at, p->at[-1].at);
	return true;
}
