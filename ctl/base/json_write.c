// SPDX-License-Identifier: GPL-2.0-only
// Writes JSON in order. Keys and strings are made valid and harmless on the way, as in json.c.
#include "ctl/base/json_write.h"

#include <assert.h>
#include <string.h>

#include "ctl/base/num.h"

#define REPLACEMENT "\xef\xbf\xbd" // U+FFFD
#define INDENT      2

void json_writer_free(struct json_writer *w)
{
	text_free(&w->text);
	*w = (struct json_writer){.pretty = w->pretty};
}

static void new_line(struct json_writer *w)
{
	if (!w->pretty)
		return;
	text_addc(&w->text, '\n');
	for (unsigned blank = 0; blank < w->depth * INDENT; blank++)
		text_addc(&w->text, ' ');
}

// A byte that JSON does not escape, and that does not control a terminal.
static bool is_plain(char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

// Writes the escaped form of the character at the start of s; returns the length of the character.
static size_t add_escaped(struct text *t, const char *s, size_t len)
{
	static const char letters[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
				       ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\'};
	size_t n = text_utf8(s, len), byte = (unsigned char)s[0];

	if (byte < sizeof(letters) && letters[byte])
		text_addf(t, "\\%c", letters[byte]);
	else if (byte < ' ')
		text_addf(t, "\\u%04X", (unsigned)byte);
	else if (!n)
		text_add(t, REPLACEMENT);
	else if (!text_shown(s, len))
		text_addf(t, "\\u%04x", text_code_point(s, len));
	else
		text_addn(t, s, n);
	return n ? n : 1;
}

static void add_string(struct text *t, const char *s)
{
	size_t len = strlen(s), at = 0;

	text_addc(t, '"');
	while (at < len) {
		size_t plain = at;

		while (plain < len && is_plain(s[plain]))
			plain++;
		text_addn(t, s + at, plain - at);
		at = plain;
		if (at < len)
			at += add_escaped(t, s + at, len - at);
	}
	text_addc(t, '"');
}

// Writes the comma after the previous value, the line break and the key.
static void begin_value(struct json_writer *w, const char *key)
{
	if (!w->depth)
		return;
	if (w->filled[w->depth - 1])
		text_addc(&w->text, ',');
	w->filled[w->depth - 1] = true;
	new_line(w);
	if (!key)
		return;
	add_string(&w->text, key);
	text_add(&w->text, w->pretty ? ": " : ":");
}

void json_write_string(struct json_writer *w, const char *key, const char *s)
{
	begin_value(w, key);
	add_string(&w->text, s);
}

void json_write_u64(struct json_writer *w, const char *key, uint64_t n)
{
	num_text digits;

	begin_value(w, key);
	text_add(&w->text, num_format(n > INT64_MAX ? INT64_MAX : n, digits));
}

void json_write_bool(struct json_writer *w, const char *key, bool b)
{
	begin_value(w, key);
	text_add(&w->text, b ? "true" : "false");
}

void json_write_nothing(struct json_writer *w, const char *key)
{
	begin_value(w, key);
	text_add(&w->text, "null");
}

static void open_value(struct json_writer *w, const char *key, char begin, char end)
{
	assert(w->depth < JSON_WRITE_DEPTH);
	begin_value(w, key);
	text_addc(&w->text, begin);
	w->ends[w->depth] = end;
	w->filled[w->depth++] = false;
}

void json_write_object(struct json_writer *w, const char *key)
{
	open_value(w, key, '{', '}');
}

void json_write_array(struct json_writer *w, const char *key)
{
	open_value(w, key, '[', ']');
}

void json_write_end(struct json_writer *w)
{
	assert(w->depth);
	w->depth--;
	if (w->filled[w->depth])
		new_line(w);
	text_addc(&w->text, w->ends[w->depth]);
	if (!w->depth)
		text_addc(&w->text, '\n');
}
