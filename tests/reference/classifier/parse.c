// SPDX-License-Identifier: GPL-2.0-only
// Reads a policy text into a policy, or reports the first line that it does not support.
#include "parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

bool parse_fail(struct parser *parser, unsigned int line, const char *format, ...)
{
	va_list args;
	int len;

	if (parser->failed || parser->msg_size == 0)
		return false;
	parser->failed = true;
	len = snprintf(parser->msg, parser->msg_size, "unsupported: %s:%u: ", parser->file, line);
	if (len < 0 || (size_t)len >= parser->msg_size)
		return false;
	va_start(args, format);
	vsnprintf(parser->msg + len, parser->msg_size - (size_t)len, format, args);
	va_end(args);
	return false;
}

const struct token *parse_peek(const struct parser *parser)
{
	return &parser->tokens[parser->at];
}

const struct token *parse_take(struct parser *parser)
{
	const struct token *token = parse_peek(parser);

	if (token->kind != TOKEN_EOF && token->kind != TOKEN_BAD)
		parser->at++;
	return token;
}

bool parse_at_end(const struct parser *parser)
{
	enum token_kind kind = parse_peek(parser)->kind;

	return kind == TOKEN_NEWLINE || kind == TOKEN_SEMICOLON || kind == TOKEN_EOF;
}

bool parse_is(const struct parser *parser, const char *keyword)
{
	const struct token *token = parse_peek(parser);

	return token->kind == TOKEN_WORD && !strcmp(token->text, keyword);
}

bool parse_accept(struct parser *parser, const char *keyword)
{
	if (!parse_is(parser, keyword))
		return false;
	parser->at++;
	return true;
}

bool parse_accept_kind(struct parser *parser, enum token_kind kind)
{
	if (parse_peek(parser)->kind != kind)
		return false;
	parse_take(parser);
	return true;
}

bool parse_word(struct parser *parser, const char **ret_word)
{
	const struct token *token = parse_peek(parser);

	if (token->kind != TOKEN_WORD)
		return parse_fail(parser, token->line, "'%s' instead of a word", token->text);
	*ret_word = parse_take(parser)->text;
	return true;
}

struct set *policy_set(const struct ref_policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->sets.len; i++) {
		if (!strcmp(policy->sets.v[i]->name, name))
			return policy->sets.v[i];
	}
	return NULL;
}

/* First pass: the names of defines and sets, because their order does not matter. */

static bool declare_define(struct parser *parser)
{
	unsigned int line = parse_peek(parser)->line;
	struct define define = {.line = line};

	if (!parse_word(parser, &define.name))
		return false;
	if (!parse_accept_kind(parser, TOKEN_EQUAL))
		return parse_fail(parser, line, "define '%s' without =", define.name);
	for (size_t i = 0; i < parser->defines.len; i++) {
		if (!strcmp(parser->defines.v[i].name, define.name))
			return parse_fail(parser, line, "duplicate define '%s'", define.name);
	}
	define.at = parser->at;
	*vec_add(parser->pool, &parser->defines) = define;
	return true;
}

static bool declare_set(struct parser *parser)
{
	struct set *set = pool_alloc(parser->pool, sizeof(*set));

	set->line = parse_peek(parser)->line;
	set->mask_len[0] = 32;
	set->mask_len[1] = 128;
	if (!parse_word(parser, &set->name))
		return false;
	if (policy_set(parser->policy, set->name))
		return parse_fail(parser, set->line, "duplicate set '%s'", set->name);
	set->dynamic = parse_is(parser, "dynamic");
	set->ports = parse_accept(parser, "ports");
	set->macs = !set->ports && parse_accept(parser, "macs");
	set->pairs = !set->ports && !set->macs && parse_accept(parser, "pairs");
	set->at = parser->at + 1;
	*vec_add(parser->pool, &parser->policy->sets) = set;
	return true;
}

/* To the end of the statement, over newlines in braces. */
static void skip_statement(struct parser *parser)
{
	int depth = 0;

	while (parse_peek(parser)->kind != TOKEN_EOF && (depth > 0 || !parse_at_end(parser))) {
		if (parse_peek(parser)->kind == TOKEN_OPEN)
			depth++;
		if (parse_peek(parser)->kind == TOKEN_CLOSE)
			depth--;
		if (parse_peek(parser)->kind == TOKEN_BAD)
			return;
		parser->at++;
	}
}

static bool declare(struct parser *parser)
{
	if (parse_accept(parser, "define"))
		return declare_define(parser);
	return !parse_accept(parser, "set") || declare_set(parser);
}

static bool declare_all(struct parser *parser)
{
	for (;;) {
		const struct token *token = parse_peek(parser);

		if (token->kind == TOKEN_EOF)
			return true;
		if (token->kind == TOKEN_BAD)
			return parse_fail(parser, token->line, "%s", token->text);
		if (parse_at_end(parser)) {
			parser->at++;
			continue;
		}
		if (!declare(parser))
			return false;
		skip_statement(parser);
	}
}

/* Second pass: everything. */

static bool take_iface(struct parser *parser)
{
	const char *name = NULL;

	if (!parse_word(parser, &name))
		return false;
	if (strchr(name, '*'))
		return parse_fail(parser, parse_peek(parser)->line, "interface pattern '%s'", name);
	*vec_add(parser->pool, &parser->policy->ifaces) = name;
	return true;
}

static bool parse_interface(struct parser *parser)
{
	const char *mode;

	do {
		if (!take_iface(parser))
			return false;
	} while (parse_accept_kind(parser, TOKEN_COMMA));
	if (parse_accept(parser, "mode") && !parse_word(parser, &mode))
		return false;
	parse_accept(parser, "optional");
	return true;
}

static bool parse_define(struct parser *parser)
{
	skip_statement(parser);
	return true;
}

static bool parse_set_statement(struct parser *parser)
{
	const char *name = NULL;
	struct set *set;

	if (!parse_word(parser, &name))
		return false;
	set = policy_set(parser->policy, name);
	if (set->ports || set->macs || set->pairs) /* read where it is used */
		skip_statement(parser);
	return set->ports || set->macs || set->pairs || parse_set(parser, set);
}

static bool pass_or(struct parser *parser, const char *other, bool *ret_other)
{
	*ret_other = parse_accept(parser, other);
	if (*ret_other || parse_accept(parser, "pass"))
		return true;
	return parse_fail(parser, parse_peek(parser)->line, "'%s'", parse_peek(parser)->text);
}

static bool parse_default(struct parser *parser)
{
	struct default_on entry;

	if (!pass_or(parser, "drop", &entry.drop))
		return false;
	if (!parse_accept(parser, "on")) {
		parser->policy->default_drop = entry.drop;
		return true;
	}
	do {
		if (!parse_word(parser, &entry.iface))
			return false;
		*vec_add(parser->pool, &parser->policy->defaults) = entry;
	} while (parse_accept_kind(parser, TOKEN_COMMA));
	return true;
}

static bool parse_malformed(struct parser *parser)
{
	bool drop;

	if (!pass_or(parser, "drop", &drop))
		return false;
	parser->policy->malformed_pass = !drop;
	return true;
}

static bool parse_essentials(struct parser *parser)
{
	return pass_or(parser, "filter", &parser->policy->essentials_filter);
}

static bool parse_fragments(struct parser *parser)
{
	struct ref_policy *policy = parser->policy;
	unsigned int line = parse_peek(parser)->line;

	if (parser->fragments_seen)
		return parse_fail(parser, line, "fragments twice");
	parser->fragments_seen = true;
	if (parse_accept(parser, "drop"))
		policy->fragments = FRAGMENTS_DROP;
	else if (parse_accept(parser, "pass"))
		policy->fragments = FRAGMENTS_PASS;
	else if (!parse_accept(parser, "filter"))
		return parse_fail(parser, line, "fragments '%s'", parse_peek(parser)->text);
	return !parse_accept(parser, "proto") ||
	       parse_field(parser, NUMBER_PROTO, &policy->fragments_proto);
}

static bool parse_version(struct parser *parser)
{
	uint64_t version;

	return parse_number(parser, 1, &version);
}

static bool parse_skipped(struct parser *parser)
{
	skip_statement(parser);
	return true;
}

static bool parse_unknown(struct parser *parser)
{
	const struct token *token = &parser->tokens[parser->at - 1];

	return parse_fail(parser, token->line, "'%s'", token->text);
}

static bool parse_statement(struct parser *parser)
{
	static const struct {
		const char *keyword;
		bool (*parse)(struct parser *parser);
	} statements[] = {
		{"interface", parse_interface}, {"define", parse_define},
		{"set", parse_set_statement},   {"default", parse_default},
		{"malformed", parse_malformed}, {"essentials", parse_essentials},
		{"fragments", parse_fragments}, {"version", parse_version},
		{"seed", parse_skipped},        {"expect", parse_skipped},
		{"service", parse_unknown},     {"include", parse_unknown},
	};

	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		if (parse_accept(parser, statements[i].keyword))
			return statements[i].parse(parser);
	}
	return parse_rule(parser);
}

static bool parse_all(struct parser *parser)
{
	while (parse_peek(parser)->kind != TOKEN_EOF) {
		if (parse_at_end(parser)) {
			parser->at++;
			continue;
		}
		if (!parse_statement(parser))
			return false;
		if (!parse_at_end(parser))
			return parse_fail(parser, parse_peek(parser)->line, "'%s'",
					  parse_peek(parser)->text);
	}
	return true;
}

/* Last: loops of sets, and empty lists. */

static bool has_loop(struct addresses *addresses)
{
	bool loop = addresses->walking;

	addresses->walking = true;
	for (size_t i = 0; i < addresses->refs.len && !loop; i++)
		loop = has_loop(addresses->refs.v[i].addresses);
	addresses->walking = false;
	return loop;
}

static bool holds_something(const struct addresses *addresses)
{
	for (size_t i = 0; i < addresses->items.len; i++) {
		if (!addresses->items.v[i].negative)
			return true;
	}
	for (size_t i = 0; i < addresses->refs.len; i++) {
		const struct address_ref *ref = &addresses->refs.v[i];

		if (!ref->negative && holds_something(ref->addresses))
			return true;
	}
	return false;
}

static bool finish_lists(struct parser *parser)
{
	for (size_t i = 0; i < parser->lists.len; i++) {
		if (has_loop(parser->lists.v[i]))
			return parse_fail(parser, 0, "a set that contains itself");
	}
	for (size_t i = 0; i < parser->lists.len; i++) {
		struct addresses *list = parser->lists.v[i];

		addresses_finish(parser->pool, list, list->items.len > ADDRESSES_LINEAR);
		list->never = !holds_something(list);
	}
	return true;
}

static int policy_parse(const char *text, size_t len, const char *file, const char *dir,
			struct ref_policy **ret_policy, char *msg, size_t msg_size)
{
	struct ref_policy *policy = calloc(1, sizeof(*policy));
	struct parser parser = {
		.policy = policy,
		.file = file,
		.dir = dir,
		.msg = msg,
		.msg_size = msg_size,
	};

	if (!policy) {
		snprintf(msg, msg_size, "out of memory");
		return -1;
	}
	parser.pool = &policy->pool;
	parser.tokens = lex(parser.pool, text, len);
	if (declare_all(&parser)) {
		parser.at = 0;
		if (parse_all(&parser) && finish_lists(&parser)) {
			*ret_policy = policy;
			return 0;
		}
	}
	ref_policy_free(policy);
	return -1;
}

int ref_policy_parse(const char *text, size_t len, const char *dir, struct ref_policy **ret_policy,
		     char *msg, size_t msg_size)
{
	return policy_parse(text, len, "policy", dir, ret_policy, msg, msg_size);
}

int ref_policy_read(const char *path, struct ref_policy **ret_policy, char *msg, size_t msg_size)
{
	const char *slash = strrchr(path, '/');
	struct pool pool = {0};
	size_t len;
	char *text = file_read(path, &len);
	char *dir;
	int ret;

	if (!text) {
		snprintf(msg, msg_size, "cannot read '%s': %s", path, strerror(errno));
		return -1;
	}
	dir = slash ? pool_text(&pool, path, (size_t)(slash - path) + 1) : pool_text(&pool, ".", 1);
	ret = policy_parse(text, len, path, dir, ret_policy, msg, msg_size);
	pool_free(&pool);
	free(text);
	return ret;
}

void ref_policy_free(struct ref_policy *policy)
{
	struct pool pool;

	if (!policy)
		return;
	pool = policy->pool;
	free(policy);
	pool_free(&pool);
}

const char *ref_policy_iface(const struct ref_policy *policy)
{
	return policy->ifaces.len ? policy->ifaces.v[0] : "";
}
