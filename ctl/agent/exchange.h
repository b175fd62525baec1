// SPDX-License-Identifier: GPL-2.0-only
// A command of weir as a process of its own (child.h), with input and output of any size.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"

struct agent;
struct evbuffer;
struct exchange;

struct exchange_request {
	const char *const *args; // the command and its arguments, ended by NULL
	const char *input;       // for its standard input; NULL: none
	size_t input_len;
	size_t output_max;  // bytes; a command that prints more is killed
	unsigned timeout_s; // until it is killed; 0: never
	bool silent;        // its errors and warnings are not the agent's
	bool modest;        // it leaves the processor to the loop and to other commands
	// A part of its output, at once; NULL: all of it comes with `done`.
	void (*part)(void *ctx, const char *output, size_t len);
	// It has ended with this exit status, -1: it was killed. Not called by exchange_stop(). One of the two is set;
	// the second may take the output out of the buffer.
	void (*done)(void *ctx, int status, const char *output, size_t len);
	void (*done_all)(void *ctx, int status, struct evbuffer *output);
	void *ctx;
};

// Arguments and input are copied. 0 or -errno with err set.
int exchange_start(struct agent *a, const struct exchange_request *request, struct exchange **ret,
		   struct err *err);
// Kills it and forgets it. From `done` on a child is forgotten by itself.
void exchange_stop(struct exchange *c);
