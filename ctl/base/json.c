// SPDX-License-Identifier: GPL-2.0-only
// JSON over jansson: struct json is json_t of jansson under another name.
#include <jansson.h>

// After jansson.h, whose names it renames; so here json_pack() makes what those would.
#include "ctl/base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/base/text.h"

#define REPLACEMENT "\xef\xbf\xbd" // U+FFFD
// 17 digits would print 1.1 as 1.1000000000000001.
#define PRINT_FLAGS (JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))

static json_t *inside(const struct json *j)
{
	return (json_t *)j;
}

// jansson gives NULL for lack of memory only, once the arguments are right.
static struct json *made(json_t *j)
{
	if (!j)
		mem_exhausted();
	return (struct json *)j;
}

static char *valid_utf8(const char *s)
{
	struct text t = {0};
	size_t len = strlen(s), n;

	for (size_t i = 0; i < len; i += n ? n : 1) {
		n = text_utf8(s + i, len - i);
		if (n)
			text_addn(&t, s + i, n);
		else
			text_add(&t, REPLACEMENT);
	}
	return text_take(&t);
}

struct json *json_object(void)
{
	return made(json_pack("{}"));
}

struct json *json_array(void)
{
	return made(json_pack("[]"));
}

struct json *json_string(const char *s)
{
	CLEANUP_FREE char *valid = valid_utf8(s);

	return made(json_stringn_nocheck(valid, strlen(valid)));
}

struct json *json_u64(uint64_t n)
{
	return json_i64(n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

struct json *json_i64(int64_t n)
{
	return made(json_integer(n));
}

struct json *json_real(double n)
{
	return isfinite(n) ? made(json_pack("f", n)) : json_nothing();
}

struct json *json_bool(bool b)
{
	return made(json_boolean(b));
}

struct json *json_nothing(void)
{
	return made(json_null());
}

static json_t *child_of(struct json *child)
{
	return child ? inside(child) : json_null();
}

void json_set(struct json *object, const char *key, struct json *child)
{
	CLEANUP_FREE char *valid = valid_utf8(key);

	assert(json_is_object(inside(object)) && child != object);
	if (json_object_set_new_nocheck(inside(object), valid, child_of(child)) < 0)
		mem_exhausted();
}

void json_remove(struct json *object, const char *key)
{
	json_object_del(inside(object), key);
}

void json_append(struct json *array, struct json *child)
{
	assert(json_is_array(inside(array)) && child != array);
	if (json_array_append_new(inside(array), child_of(child)) < 0)
		mem_exhausted();
}

// jansson escapes only C0; other characters that control a terminal are escaped here. All are
// inside of strings and below U+10000, and jansson passes whole code points.
static int print_part(const char *part, size_t len, void *text)
{
	for (size_t i = 0, plain; i < len;) {
		for (plain = i; i < len; i += text_utf8(part + i, len - i))
			if (part[i] != '\n' && !text_shown(part + i, len - i))
				break;
		text_addn(text, part + plain, i - plain);
		if (i == len)
			break;
		text_addf(text, "\\u%04x", text_code_point(part + i, len - i));
		i += text_utf8(part + i, len - i);
	}
	return 0;
}

void json_print(const struct json *j, bool pretty, struct text *ret)
{
	size_t flags = PRINT_FLAGS | (pretty ? JSON_INDENT(2) : JSON_COMPACT);

	if (json_dump_callback(inside(j), print_part, ret, flags) < 0)
		mem_exhausted();
	text_addc(ret, '\n');
}

void json_free(struct json *j)
{
	json_decref(inside(j));
}

void json_cleanup(struct json **j)
{
	json_free(*j);
}

struct json *json_parse(const char *text, size_t len, char *ret_error, size_t error_size)
{
	json_error_t error;
	json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);

	if (!j && ret_error && error_size)
		snprintf(ret_error, error_size, "line %d: %s", error.line, error.text);
	return (struct json *)j;
}

struct json *json_get(const struct json *object, const char *key)
{
	return (struct json *)json_object_get(inside(object), key);
}

const char *json_get_string(const struct json *object, const char *key)
{
	return json_string_value(json_object_get(inside(object), key));
}

char *json_get_copy(const struct json *object, const char *key)
{
	const char *text = json_get_string(object, key);

	return mem_strdup(text ? text : "");
}

uint64_t json_get_u64(const struct json *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(inside(object), key));

	return n > 0 ? (uint64_t)n : 0;
}

double json_get_real(const struct json *object, const char *key)
{
	return json_number_value(json_object_get(inside(object), key));
}

size_t json_length(const struct json *array)
{
	return json_array_size(inside(array));
}

struct json *json_at(const struct json *array, size_t i)
{
	return (struct json *)json_array_get(inside(array), i);
}

const char *json_text(const struct json *string)
{
	return string ? json_string_value((const json_t *)string) : NULL;
}

enum json_kind json_kind(const struct json *j)
{
	const json_t *t = (const json_t *)j;

	if (!t || json_is_null(t))
		return JSON_IS_NOTHING;
	if (json_is_object(t))
		return JSON_IS_OBJECT;
	if (json_is_array(t))
		return JSON_IS_ARRAY;
	if (json_is_string(t))
		return JSON_IS_STRING;
	if (json_is_boolean(t))
		return JSON_IS_BOOL;
	return json_is_integer(t) && json_integer_value(t) >= 0 ? JSON_IS_NUMBER : JSON_IS_OTHER;
}

bool json_is_yes(const struct json *j)
{
	return j && json_is_true((const json_t *)j);
}

uint64_t json_number(const struct json *j)
{
	return json_kind(j) == JSON_IS_NUMBER ? (uint64_t)json_integer_value((const json_t *)j) : 0;
}

void json_each(const struct json *object,
	       void (*visit)(void *ctx, const char *key, const struct json *value), void *ctx)
{
	json_t *o = inside(object);

	for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at))
		visit(ctx, json_object_iter_key(at), (struct json *)json_object_iter_value(at));
}

#define INDENT 2

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

void json_write_real(struct json_writer *w, const char *key, double n)
{
	char digits[400]; // DBL_MAX has 309 before the point
	size_t len;

	if (!isfinite(n)) {
		json_write_nothing(w, key);
		return;
	}
	begin_value(w, key);
	len = (size_t)snprintf(digits, sizeof(digits), "%.3f", n);
	while (digits[len - 1] == '0')
		len--;
	text_addn(&w->text, digits, digits[len - 1] == '.' ? len - 1 : len);
}

void json_write_rough(struct json_writer *w, const char *key, double n)
{
	if (!isfinite(n)) {
		json_write_nothing(w, key);
		return;
	}
	begin_value(w, key);
	text_addf(&w->text, "%.4g", n);
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
