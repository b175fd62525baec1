// SPDX-License-Identifier: GPL-2.0-only
// Copies the words of a line; a copy is never longer than the line.
#include "ctl/base/split.h"

#include <string.h>

#include "ctl/base/lines.h"

struct splitting {
	const char *at, *end; // the rest of the line
	char *to;             // end of the words so far
	struct err *err;
};

// A quoted part, without its quotes.
static int take_quoted(struct splitting *s, char quote)
{
	for (s->at++; s->at < s->end && *s->at != quote; s->at++) {
		bool escapes = quote == '"' && *s->at == '\\' && s->at + 1 < s->end &&
			       (s->at[1] == '"' || s->at[1] == '\\');

		s->at += escapes;
		*s->to++ = *s->at;
	}
	if (s->at == s->end)
		return err_input(s->err, "missing closing quote %c", quote);
	s->at++;
	return 0;
}

static int take_escaped(struct splitting *s)
{
	if (s->at + 1 == s->end) {
		err_input(s->err, "backslash at the end of the line");
		return err_hint(s->err, "a command is one line");
	}
	*s->to++ = s->at[1];
	s->at += 2;
	return 0;
}

// A character, or a quoted string.
static int take_part(struct splitting *s)
{
	if (*s->at == '"' || *s->at == '\'')
		return take_quoted(s, *s->at);
	if (*s->at == '\\')
		return take_escaped(s);
	*s->to++ = *s->at++;
	return 0;
}

static int take_word(struct splitting *s)
{
	while (s->at < s->end && !lines_blank(*s->at)) {
		int code = take_part(s);

		if (code)
			return code;
	}
	*s->to++ = '\0';
	return 0;
}

int split_line(const char *line, size_t len, struct split *ret, struct err *err)
{
	struct splitting s = {.at = line, .end = line + len, .err = err};

	if (memchr(line, '\0', len)) {
		err_input(err, "NUL byte in the line");
		return err_hint(err, "is this a text file?");
	}
	ret->text = s.to = mem_zalloc(len + 1, 1);
	for (;;) {
		int code;

		while (s.at < s.end && lines_blank(*s.at))
			s.at++;
		if (s.at == s.end || *s.at == '#')
			return 0;
		vec_push(&ret->words, s.to);
		if ((code = take_word(&s)))
			return code;
	}
}

void split_free(struct split *s)
{
	vec_free(&s->words);
	free(s->text);
	*s = (struct split){0};
}
