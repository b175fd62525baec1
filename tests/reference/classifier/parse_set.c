// SPDX-License-Identifier: GPL-2.0-only
// Reads sets, their elements and the files that hold elements.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "parse.h"

struct file_options {
	const char *path;
	unsigned int line;
	bool negative;
	uint64_t min;
	bool lax;
	bool wide;
};

static void put_prefixes(struct parser *parser, const struct prefix *prefixes, int count,
			 bool negative, struct addresses *addresses)
{
	for (int i = 0; i < count; i++)
		addresses_add(parser->pool, addresses, &prefixes[i], negative);
}

/* Reading 6: any is 0/0 of both families. */
static void put_any(struct parser *parser, bool negative, struct addresses *addresses)
{
	const struct prefix any[] = {{.addr = {.family = 4}}, {.addr = {.family = 6}}};

	put_prefixes(parser, any, 2, negative, addresses);
}

bool set_add_word(struct parser *parser, const char *word, unsigned int line, bool negative,
		  struct addresses *addresses)
{
	struct prefix prefixes[PREFIXES_MAX];
	int count;

	if (!strcmp(word, "any")) {
		put_any(parser, negative, addresses);
		return true;
	}
	count = prefixes_parse(word, prefixes);
	if (count < 0)
		return parse_fail(parser, line, "'%s' is no address, prefix or range", word);
	put_prefixes(parser, prefixes, count, negative, addresses);
	return true;
}

bool set_add_ref(struct parser *parser, const struct item *item, struct addresses *addresses)
{
	struct set *set = policy_set(parser->policy, item->text);

	if (!set)
		return parse_fail(parser, item->line, "unknown set '@%s'", item->text);
	if (set->dynamic)
		return parse_fail(parser, item->line, "'@%s' is dynamic and not the only item",
				  item->text);
	*vec_add(parser->pool, &addresses->refs) =
		(struct address_ref){.addresses = &set->addresses, .negative = item->negative};
	return true;
}

/* Cuts comments and blanks off; NULL if nothing is left. */
static char *list_line(char *line)
{
	size_t len;

	line[strcspn(line, "#;\n")] = '\0';
	line += strspn(line, " \t\r");
	len = strlen(line);
	while (len && strchr(" \t\r", line[len - 1]))
		line[--len] = '\0';
	return len ? line : NULL;
}

/* Without `wide` no short prefix and no loopback. */
static bool too_wide(const struct prefix *prefix)
{
	if (prefix->addr.family == 4)
		return prefix->len < 8 || prefix->addr.value >> 120 == 127;
	return prefix->len < 16 || (prefix->len == 128 && prefix->addr.value == 1);
}

static bool put_line(struct parser *parser, const struct file_options *options, char *word,
		     unsigned int number, struct addresses *addresses)
{
	struct prefix prefixes[PREFIXES_MAX];
	int count = prefixes_parse(word, prefixes);

	if (count < 0 && options->lax)
		return true;
	if (count < 0)
		return parse_fail(parser, options->line, "'%s' line %u: '%s'", options->path,
				  number, word);
	for (int i = 0; i < count && !options->wide; i++) {
		if (too_wide(&prefixes[i]))
			return parse_fail(parser, options->line, "'%s' line %u: '%s' without wide",
					  options->path, number, word);
	}
	put_prefixes(parser, prefixes, count, options->negative, addresses);
	return true;
}

static bool put_lines(struct parser *parser, const struct file_options *options, char *text,
		      struct addresses *addresses)
{
	uint64_t entries = 0;
	unsigned int number = 1;

	if (!strncmp(text, "\xef\xbb\xbf", 3))
		text += 3;
	for (char *line = text; line; number++) {
		char *next = strchr(line, '\n');
		char *word;

		if (next)
			*next++ = '\0';
		word = list_line(line);
		line = next;
		if (!word)
			continue;
		entries++;
		if (!put_line(parser, options, word, number, addresses))
			return false;
	}
	if (entries < options->min)
		return parse_fail(parser, options->line, "'%s' is below its min", options->path);
	return true;
}

static bool put_file(struct parser *parser, const struct file_options *options,
		     struct addresses *addresses)
{
	const char *path = options->path;
	size_t len;
	char *text;
	bool done;

	if (path[0] != '/')
		path = pool_printf(parser->pool, "%s/%s", parser->dir, path);
	text = file_read(path, &len);
	if (!text)
		return parse_fail(parser, options->line, "cannot read '%s'", path);
	if (strlen(text) == len)
		done = put_lines(parser, options, text, addresses);
	else
		done = parse_fail(parser, options->line, "'%s' is no text", path);
	free(text);
	return done;
}

static bool parse_file(struct parser *parser, bool negative, struct addresses *addresses)
{
	struct file_options options = {.negative = negative};
	const struct token *token = parse_take(parser);

	if (token->kind != TOKEN_STRING)
		return parse_fail(parser, token->line, "file without a path");
	options.path = token->text;
	options.line = token->line;
	for (;;) {
		if (parse_accept(parser, "lax"))
			options.lax = true;
		else if (parse_accept(parser, "wide"))
			options.wide = true;
		else if (!parse_accept(parser, "min"))
			break;
		else if (!parse_number(parser, UINT32_MAX, &options.min))
			return false;
	}
	return put_file(parser, &options, addresses);
}

/* A define in a set: its items, each with its own `not`. */
static bool put_define(struct parser *parser, const struct token *token, bool negative,
		       struct addresses *addresses)
{
	struct list list = {0};

	if (!list_put_define(parser, token, negative, true, &list))
		return false;
	if (list.negated)
		return parse_fail(parser, token->line, "'$%s' is negated", token->text);
	for (size_t i = 0; i < list.items.len; i++) {
		const struct item *item = &list.items.v[i];

		if (item->is_set ? !set_add_ref(parser, item, addresses)
				 : !set_add_word(parser, item->text, item->line, item->negative,
						 addresses))
			return false;
	}
	return true;
}

static bool parse_element(struct parser *parser, struct addresses *addresses)
{
	bool negative = parse_accept(parser, "not");
	const struct token *token = parse_peek(parser);
	struct item item = {.is_set = true, .negative = negative, .line = token->line};

	if (parse_accept(parser, "file"))
		return parse_file(parser, negative, addresses);
	parse_take(parser);
	if (token->kind == TOKEN_DEFINE)
		return put_define(parser, token, negative, addresses);
	item.text = token->text;
	if (token->kind == TOKEN_SET)
		return set_add_ref(parser, &item, addresses);
	if (token->kind != TOKEN_WORD)
		return parse_fail(parser, token->line, "'%s' in a set", token->text);
	return set_add_word(parser, token->text, token->line, negative, addresses);
}

/* In braces a newline stands for a comma. */
static bool accept_separator(struct parser *parser)
{
	return parse_accept_kind(parser, TOKEN_COMMA) || parse_accept_kind(parser, TOKEN_NEWLINE);
}

static bool parse_static(struct parser *parser, struct addresses *addresses)
{
	while (accept_separator(parser))
		;
	while (!parse_accept_kind(parser, TOKEN_CLOSE)) {
		if (!parse_element(parser, addresses))
			return false;
		if (parse_peek(parser)->kind != TOKEN_CLOSE && !accept_separator(parser))
			return parse_fail(parser, parse_peek(parser)->line, "'%s' in a set",
					  parse_peek(parser)->text);
		while (accept_separator(parser))
			;
	}
	return true;
}

static bool parse_dynamic(struct parser *parser, struct set *set)
{
	while (!parse_at_end(parser)) {
		const struct token *token = parse_peek(parser);
		bool done;

		if (parse_accept(parser, "max"))
			done = parse_count(parser);
		else if (parse_accept(parser, "expire"))
			done = parse_time(parser);
		else if (parse_accept(parser, "mask"))
			done = parse_mask(parser, set->mask_len);
		else if (parse_accept(parser, "count"))
			done = true;
		else
			done = parse_fail(parser, token->line, "'%s' in a set", token->text);
		if (!done)
			return false;
	}
	return true;
}

bool parse_set(struct parser *parser, struct set *set)
{
	if (parse_accept(parser, "dynamic"))
		return parse_dynamic(parser, set);
	if (!parse_accept_kind(parser, TOKEN_OPEN))
		return parse_fail(parser, set->line, "set '%s'", set->name);
	*vec_add(parser->pool, &parser->lists) = &set->addresses;
	return parse_static(parser, &set->addresses);
}
