// SPDX-License-Identifier: GPL-2.0-only
// Reads words, quotes, comments and braces.
#include "ctl/import/keepalived_read.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/text.h"

#define DEPTH 8

struct node_reader {
	const char *at, *end;
	unsigned line;
	struct arena *arena;
	struct err *err;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_comment(char c)
{
	return c == '#' || c == '!';
}

static void skip_quoted(struct node_reader *r)
{
	for (r->at++; r->at < r->end && *r->at != '"' && *r->at != '\n'; r->at++)
		;
}

// The next word of the line; NULL at its end.
static const char *read_word(struct node_reader *r)
{
	const char *start;

	while (r->at < r->end && is_blank(*r->at))
		r->at++;
	if (r->at < r->end && is_comment(*r->at))
		while (r->at < r->end && *r->at != '\n')
			r->at++;
	if (r->at == r->end || *r->at == '\n')
		return NULL;
	start = r->at;
	if (*start == '"') {
		const char *word;

		skip_quoted(r);
		word = arena_strndup(r->arena, start + 1, (size_t)(r->at - start - 1));
		r->at += r->at < r->end && *r->at == '"';
		return word;
	}
	for (r->at++; r->at < r->end && !is_blank(*r->at) && *r->at != '\n'; r->at++) {
		if (strchr("{}", *start) || strchr("{}", *r->at) || is_comment(*r->at))
			break;
		if (*r->at == '"')
			skip_quoted(r);
		if (r->at == r->end || *r->at == '\n')
			break;
	}
	return arena_strndup(r->arena, start, (size_t)(r->at - start));
}

static int read_block(struct node_reader *r, unsigned depth, struct nodes *ret);

static int open_block(struct node_reader *r, unsigned depth, struct node *n, struct nodes *ret)
{
	int code;

	// The brace may be on the next line.
	if (!n->n && ret->n && !ret->at[ret->n - 1].block)
		*n = ret->at[--ret->n];
	if (!n->n)
		return err_input(r->err, "line %u: '{' without a word before it", r->line);
	n->block = true;
	if (depth >= DEPTH)
		return err_input(r->err, "line %u: more than %d blocks in each other", r->line,
				 DEPTH);
	code = read_block(r, depth + 1, &n->inside);
	vec_push(ret, *n);
	*n = (struct node){.line = r->line};
	return code;
}

static int read_block(struct node_reader *r, unsigned depth, struct nodes *ret)
{
	struct node n = {.line = r->line};

	for (;;) {
		const char *word = read_word(r);
		int code = 0;

		if (!word || !strcmp(word, "}")) {
			if (n.n)
				vec_push(ret, n);
			if (word && !depth)
				return err_input(r->err, "line %u: '}' without '{'", r->line);
			if (word)
				return 0;
			if (r->at == r->end)
				return depth ? err_input(r->err, "line %u: '}' is missing", r->line)
					     : 0;
			r->at++; // the end of the line
			n = (struct node){.line = ++r->line};
		} else if (!strcmp(word, "{")) {
			code = open_block(r, depth, &n, ret);
		} else if (n.n < NODE_WORDS) {
			n.words[n.n++] = word;
		} else {
			n.cut = true;
		}
		if (code)
			return code;
	}
}

int nodes_read(const char *text, size_t len, struct arena *arena, struct nodes *ret,
	       struct err *err)
{
	struct node_reader r = {text, text + len, 1, arena, err};

	return read_block(&r, 0, ret);
}

void nodes_free(struct nodes *nodes)
{
	vec_each (nodes, n)
		nodes_free(&n->inside);
	vec_free(nodes);
}

static bool begins(const struct node *line, const char *keyword)
{
	return line->n && keyword && !strcmp(line->words[0], keyword);
}

const struct node *node_last(const struct node *n, const char *keyword, const char *other)
{
	const struct node *last = NULL;

	vec_each (&n->inside, line)
		if (begins(line, keyword) || begins(line, other))
			last = line;
	return last;
}

size_t node_count(const struct node *n, const char *keyword)
{
	size_t count = 0;

	vec_each (&n->inside, line)
		count += begins(line, keyword);
	return count;
}
