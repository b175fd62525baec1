// SPDX-License-Identifier: GPL-2.0-only
// Turns a request to the API into the words of a command.
#pragma once

#include "ctl/base/err.h"
#include "ctl/base/json.h"
#include "ctl/base/vec.h"

struct api_words {
	VEC(char *) list; // ended by NULL
};
void api_words_free(struct api_words *w);

enum api_method { API_GET, API_POST, API_DELETE };

// A path of the API with a method, and its command. The options and words of a POST are in its
// body, of others in their query.
struct api_route {
	const char *path;
	enum api_method method;
	bool text;                  // the body goes to the command's standard input
	const char *command[3];     // first words
	const char *const *options; // keys, "for=" of one with a value; ended by NULL
	const char *const *words;   // keys whose values are words: strings, or arrays of strings
};

// All paths, with a line for each method; the last one has no path.
extern const struct api_route api_routes[];

// The words of a request. body: an object, or NULL for none. A key that the route does not know, or
// a value of another type, is refused. 0, or -EINVAL with err set.
int api_words_make(const struct api_route *r, const struct json *body, struct api_words *ret,
		   struct err *err);
