// SPDX-License-Identifier: GPL-2.0-only
// A string that grows.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ctl/base/mem.h"

struct text {
	char *at; // NUL-terminated once anything was added; NULL before
	size_t len, cap;
};

__attribute__((format(printf, 2, 3))) void text_addf(struct text *t, const char *fmt, ...);
void text_vaddf(struct text *t, const char *fmt, va_list ap);
void text_add(struct text *t, const char *s);
void text_addn(struct text *t, const char *s, size_t len);
void text_addc(struct text *t, char c);
// The content, "" when nothing was added; stays owned by t.
const char *text_get(const struct text *t);
// Returns the content, which the caller frees; t is empty afterwards. Never NULL.
char *text_take(struct text *t);
void text_free(struct text *t);
#define CLEANUP_TEXT CLEANUP(text_free)

// Whether two texts are equal; none, NULL, is equal to an empty one.
static inline bool text_same(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

// Bytes of the UTF-8 code point that s[0..len) starts with, 1 to 4; 0 when it starts with none
// (RFC 3629: no overlong forms, no surrogates).
size_t text_utf8(const char *s, size_t len);
// Its value; 0 also when s starts with none.
uint32_t text_code_point(const char *s, size_t len);
// Like text_utf8, but also 0 for characters that must not reach a terminal: control characters (C0,
// DEL, C1), line separators and bidirectional marks.
size_t text_shown(const char *s, size_t len);
// Adds s[0..len) fit for a terminal: what text_shown refuses becomes '?', only tabs are kept.
void text_add_shown(struct text *t, const char *s, size_t len);
// The same into `size` bytes, with "..." where the text is longer, never within a code point.
void text_put_shown(char *ret, size_t size, const char *text);
