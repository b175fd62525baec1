// SPDX-License-Identifier: GPL-2.0-only
// JSON documents, read, built and printed; no other file includes jansson.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"

struct json; // one value; a parent owns a child as soon as it is added

// jansson exports functions of these four names, and its own calls would reach ours.
#define json_object json_new_object
#define json_array  json_new_array
#define json_string json_new_string
#define json_real   json_new_real

struct json *json_object(void);
struct json *json_array(void);
struct json *json_string(const char *s); // invalid UTF-8 is replaced by U+FFFD, never refused
struct json *json_u64(uint64_t n);       // above 2^63-1: clamped
struct json *json_i64(int64_t n);
struct json *json_real(double n); // infinite or not a number: null
struct json *json_bool(bool b);
struct json *json_nothing(void);

// Add a child; the parent owns it now. A key that is there already is replaced.
void json_set(struct json *object, const char *key, struct json *child);
void json_append(struct json *array, struct json *child);
void json_remove(struct json *object, const char *key); // which may be absent

// Adds it to a text: one line, or indented where pretty; a newline at the end.
void json_print(const struct json *j, bool pretty, struct text *ret);
void json_free(struct json *j);
#define CLEANUP_JSON CLEANUP(json_cleanup)
void json_cleanup(struct json **j);

// Reading back (tests, state): NULL, 0 or false if it is absent or of another type. A duplicate key
// in one object is an error. On failure ret_error (may be NULL) has the position and the reason.
struct json *json_parse(const char *text, size_t len, char *ret_error, size_t error_size);
struct json *json_get(const struct json *object, const char *key);
const char *json_get_string(const struct json *object, const char *key);
char *json_get_copy(const struct json *object,
		    const char *key); // "" if absent; the caller frees it
uint64_t json_get_u64(const struct json *object, const char *key);
double json_get_real(const struct json *object, const char *key); // of any number
const char *json_text(const struct json *string);
size_t json_length(const struct json *array);
struct json *json_at(const struct json *array, size_t i);

enum json_kind {
	JSON_IS_NOTHING, // null, and NULL
	JSON_IS_OBJECT,
	JSON_IS_ARRAY,
	JSON_IS_STRING,
	JSON_IS_NUMBER, // whole and not negative
	JSON_IS_BOOL,
	JSON_IS_OTHER,
};
enum json_kind json_kind(const struct json *j);
bool json_is_yes(const struct json *j);
uint64_t json_number(const struct json *j);
// The values of an object in the order in which they were set.
void json_each(const struct json *object,
	       void (*visit)(void *ctx, const char *key, const struct json *value), void *ctx);

// ---- written value by value, without a tree in memory; with the text of json_print --------------

#define JSON_WRITE_DEPTH 16

struct json_writer {
	struct text text;              // written, and not yet taken away by the caller
	bool pretty;                   // indented
	unsigned depth;                // open objects and arrays
	char ends[JSON_WRITE_DEPTH];   // the bracket that closes each
	bool filled[JSON_WRITE_DEPTH]; // whether it has a value
};

void json_writer_free(struct json_writer *w);

// key: of a value in the open object, which must not have it yet; NULL in an array, and for the
// document itself.
void json_write_string(struct json_writer *w, const char *key, const char *s); // as json_string
void json_write_u64(struct json_writer *w, const char *key, uint64_t n);       // as json_u64
// With three decimals at most, or with four digits; what is not a finite number: null.
void json_write_real(struct json_writer *w, const char *key, double n);
void json_write_rough(struct json_writer *w, const char *key, double n);
void json_write_bool(struct json_writer *w, const char *key, bool b);
void json_write_nothing(struct json_writer *w, const char *key);
void json_write_object(struct json_writer *w, const char *key);
void json_write_array(struct json_writer *w, const char *key);
// Closes the innermost open object or array; a newline follows the last one.
void json_write_end(struct json_writer *w);
