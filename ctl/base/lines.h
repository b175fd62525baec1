// SPDX-License-Identifier: GPL-2.0-only
// Lists that people write: one item a line, '#' or ';' begins a comment.
//
// CRLF, a byte order mark and blanks are allowed. Nothing is copied: words point into the text.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct word {
	const char *at;
	size_t len;
};

struct lines {
	const char *next, *text_end; // the lines that follow
	unsigned number;             // number of this line, from 1; 0 before the first
	const char *at, *end;        // the rest of this line
};

struct lines lines_of(const char *text, size_t len);
// Goes to the next line with something in it but blanks and a comment; `at` is there then.
bool lines_next(struct lines *l);

static inline bool lines_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static inline bool lines_comment(char c)
{
	return c == '#' || c == ';';
}

// Takes the next word of the line, which ends at a blank or a comment; empty at the end of the
// line.
struct word lines_word(struct lines *l);

static inline bool word_is(struct word w, const char *text)
{
	return w.len == strlen(text) && !memcmp(w.at, text, w.len);
}

static inline bool word_begins(struct word w, const char *text)
{
	return w.len >= strlen(text) && !memcmp(w.at, text, strlen(text));
}

bool word_is_one_of(struct word w, const char *const *texts, size_t n);
