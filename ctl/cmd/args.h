// SPDX-License-Identifier: GPL-2.0-only
// Command lines: tables of options, used for parsing, error messages and --help.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"

struct args_option {
	const char *name; // without dashes
	char letter;      // 0: none
	const char *arg;  // name of its argument, for --help: "TIME"; NULL: a switch
	const char *help;
	bool repeated; // may be given more than once
	bool optional; // its argument may be left out (only as --name=ARG)
};

// An option of similar tools that this command does not have, with a hint what to use instead.
struct args_foreign {
	const char *name;
	char letter;
	const char *hint;
};

struct args_given {
	const struct args_option *option;
	const char *value; // NULL for a switch
};

struct args {
	VEC(const char *) words; // arguments that are not options
	VEC(struct args_given) given;
	const struct args_option *tables[2]; // options of the command, of all commands
	const struct args_foreign *foreign;  // the last one has no name; NULL: no list
	const char *command;                 // its name, for hints; NULL: not known yet
};

// Reads argv[0..n). Stops at the first word if `until_word` and returns its index in *ret_used (n:
// no word). "--" ends the options. Returns 0, or -EINVAL with err set and a "did you mean" hint.
int args_parse(struct args *args, char **argv, size_t n, bool until_word, size_t *ret_used,
	       struct err *err);
void args_free(struct args *args);

// True for an option of the command itself, false for one of all commands.
bool args_knows(const struct args *args, const char *name);
// The option must be in one of the tables. args_value returns the last value given, or NULL.
bool args_has(const struct args *args, const char *name);
const char *args_value(const struct args *args, const char *name);
// The value, or else the value of an environment variable; NULL: neither is set.
const char *args_value_or(const struct args *args, const char *name, const char *variable);
size_t args_values(const struct args *args, const char *name, const char **ret, size_t max);

// Fails unless there are min..max words; `what` names the missing one: "missing %s".
int args_expect_words(const struct args *args, size_t min, size_t max, const char *what,
		      struct err *err);

// Fails if an option of the command is given that is not among `options`, words that are separated
// by blanks. `word` is the word of the command line that has these only.
int args_expect_options(const struct args *args, const char *word, const char *options,
			struct err *err);
