// SPDX-License-Identifier: GPL-2.0-only
// A JSON document written value by value, without a tree in memory; the text is the same as from
// json_print.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/text.h"

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
void json_write_bool(struct json_writer *w, const char *key, bool b);
void json_write_nothing(struct json_writer *w, const char *key);
void json_write_object(struct json_writer *w, const char *key);
void json_write_array(struct json_writer *w, const char *key);
// Closes the innermost open object or array; a newline follows the last one.
void json_write_end(struct json_writer *w);
