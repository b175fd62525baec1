// SPDX-License-Identifier: GPL-2.0-only
// A command of weir as a process of its own (child.h), with input and output of any size.
//
// What the agent does next depends on exit status and document (-j), never on the words of a
// message.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"

struct agent;
struct evbuffer;
struct exchange;
struct json;

// A command that has ended.
struct exchange_result {
	int status;                  // its exit status; -1: it was killed
	const struct json *document; // its output; NULL: it is no JSON document
	const char *said;            // with `tells`
};

struct exchange_request {
	const char *const *args; // the command and its arguments, ended by NULL
	const char *input;       // for its standard input; NULL: none
	size_t input_len;
	size_t output_max;  // bytes; a command that prints more is killed
	unsigned timeout_s; // until it is killed; 0: never
	const char *by;     // the author of what it changes (child.h)
	bool silent;        // its messages are not the agent's
	bool tells;         // its messages and lines, with -j, come as text with `done`
	bool modest;        // it leaves the processor to the loop and to other commands
	// A part of its output, at once; NULL: all of it comes with `done`.
	void (*part)(void *ctx, const char *output, size_t len);
	// It has ended. Not called by exchange_stop(). One of the two is set; the second gets the
	// output as it is, and may take it out of the buffer.
	void (*done)(void *ctx, const struct exchange_result *result);
	void (*done_all)(void *ctx, int status, struct evbuffer *output);
	void *ctx;
};

// Arguments and input are copied. 0 or -errno with err set.
int exchange_start(struct agent *a, const struct exchange_request *request, struct exchange **ret,
		   struct err *err);
// Kills it and forgets it; a killed command leaves the old or the new state. From `done` on a child
// is forgotten by itself. NULL is allowed.
void exchange_stop(struct exchange *c);

// Why a command has failed, by its document: "SENTENCE (HINT)". `what`: its words, for one that has
// left none.
void exchange_failure(const struct exchange_result *r, const char *what, struct err *ret);
// Logs what a command has said, line by line, or only its last line, which is the result, by one of
// the functions of base/log.h; "weir: " is left out.
void exchange_log(const struct exchange_result *r, bool last_line,
		  void (*log)(const char *fmt, ...));
