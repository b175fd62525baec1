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

// A path of the API and its command.
struct api_route {
	const char *path;
	bool posts;   // POST, else GET
	bool text;    // the body goes to the command's standard input
	bool streams; // the answer is a line of JSON for each event, until the client leaves
	const char *command[3];     // first words
	const char *const *options; // keys of the body (POST) or of the query (GET); ended by NULL
	const char *const *words;   // keys whose values are words: strings, or arrays of strings
};

// All paths; the last one has no path.
extern const struct api_route api_routes[];

// The words of a request. body: an object, or NULL for none. A key that the route does not know, or
// a value of another type, is refused. 0, or -EINVAL with err set.
int api_words_make(const struct api_route *r, const struct json *body, struct api_words *ret,
		   struct err *err);
