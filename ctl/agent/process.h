// SPDX-License-Identifier: GPL-2.0-only
// A process of the agent, for what takes long or waits: a command of weir, or a function in a copy
// of the agent (fork). The loop feeds it and reads its output.
//
// A command has the instance, the network namespace and the databases of the agent, and refuses
// what it would refuse for a person without --force. The next step of the agent depends on its exit
// status and document (-j), never on the words of a message. A function has the agent's memory as
// it was at the start; only its output reaches the agent.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/base/text.h"

struct agent;
struct evbuffer;
struct json;
struct agent_process;

// In the environment of a command:
#define PROCESS_WITHOUT_LOGIN "WEIR_WITHOUT_LOGIN" // the agent has no login
#define PROCESS_FOR           "WEIR_FOR"           // who asked, if the agent prints the messages
#define PROCESS_BY            "WEIR_BY"            // the author of what it changes: "agent (file)"
#define PROCESS_TELLS         "WEIR_TELLS"         // with -j, its lines go to standard error
#define PROCESS_RESOLVER      "WEIR_RESOLVER" // --resolver and --resolver-timeout of the agent,
#define PROCESS_TIMEOUT       "WEIR_TIMEOUT"  // unless the command has its own

// The author of a line of batch --each precedes the line, between two of these.
#define BATCH_AUTHOR "\001"

// The authors of changes without a more exact one.
#define PROCESS_AGENT     "agent"
#define PROCESS_AGENT_API "agent (api)"

// A process that has ended.
struct process_result {
	// Exit status of a command; 0 or -errno of a function, which has set err; -1: killed.
	int status;
	struct err err;
	struct evbuffer *output;     // may be emptied
	const struct json *document; // the output; NULL: it is no JSON document, or not asked for
	const char *said;            // with `tells`
};

struct process_request {
	// One of the two: a command and its arguments, ended by NULL; or a function, which appends
	// to the output and returns 0 or -errno with err set.
	const char *const *args;
	int (*run)(void *ctx, struct text *output, struct err *err);
	const char *input; // for the standard input of a command; NULL: none
	size_t input_len;
	size_t output_max;  // bytes; who prints more is killed; 0: no bound
	unsigned timeout_s; // until it is killed; 0: never
	const char *by;     // the author of what a command changes; NULL: PROCESS_AGENT
	bool reads;         // the input continues with process_send()
	bool silent;        // the messages of a command are not the agent's
	bool tells;         // its messages and lines, with -j, come as text with `done`
	bool modest;        // it leaves the processor to the loop and to other commands
	bool plain;         // its output is no document
	// A piece of the output, immediately; NULL: `done` gets the whole output.
	void (*part)(void *ctx, const char *output, size_t len);
	// It has ended; it is forgotten by itself. Not called by process_stop().
	void (*done)(void *ctx, const struct process_result *result);
	void *ctx;
};

// Arguments and input are copied. 0 or -errno with err set.
int process_start(struct agent *a, const struct process_request *request,
		  struct agent_process **ret, struct err *err);
void process_send(struct agent_process *p, const char *input, size_t len);
bool process_reads(const struct agent_process *p); // else its input is closed
// Bytes of its input that its pipe has not taken.
size_t process_unsent(const struct agent_process *p);
// Kills it and forgets it; a killed command leaves the old or the new state. NULL is allowed.
void process_stop(struct agent_process *p);
// Its pipe takes what was sent, 1 MiB at most, although it does not read.
void process_flush(struct agent_process *p);
// Ends its input, after process_flush(), and forgets it; it ends by itself. NULL is allowed.
void process_leave(struct agent_process *p);

// The reason of its failure: its error, or the error in its document, "SENTENCE (HINT)". `what`:
// its words, if it has no document.
void process_failure(const struct process_result *r, const char *what, struct err *ret);
// Takes `len` bytes from the output of a function. True: it has as many.
bool process_take(const struct process_result *r, void *to, size_t len);
// Logs what a command has said, line by line, or only its last line, which is the result, by one of
// the functions of base/log.h; "weir: " is left out.
void process_log(const struct process_result *r, bool last_line, void (*log)(const char *fmt, ...));
