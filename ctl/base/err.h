// SPDX-License-Identifier: GPL-2.0-only
// A failure: one sentence for the user, and the exit status.
//
// A function that can fail for a reason worth telling takes `struct err *err` last and returns 0 or
// a negative errno. On failure it has called one of the err_* functions exactly once. Inner layers
// write the message; only ctl/cmd and main print it. A message is lower case, with the object in
// single quotes and the cause in words last, then a hint: "cannot open 'x': it does not exist (is
// it mounted?)". If the errno has several causes, its name is in parentheses: "cannot link 'x'
// (EINVAL)".
#pragma once

#include <stdbool.h>

enum err_kind {
	ERR_NONE = 0,
	ERR_INPUT = 1,  // exit 1: what the user gave is wrong
	ERR_SYSTEM = 2, // exit 2: the kernel or the system refused
	ERR_REFUSED =
		3, // exit 3: understood and possible, but refused, without effect or different
};

struct err {
	enum err_kind kind;
	int code;        // positive errno, 0 without one
	char text[1024]; // "" when nothing failed
	char hint[512];  // the next step; may be ""
};

// Each returns a negative errno to return: -EINVAL, -code, -EPERM. err may be NULL. fmt is the
// sentence; err_system appends the cause that the errno has, or its name.
__attribute__((format(printf, 2, 3))) int err_input(struct err *err, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) int err_system(struct err *err, int code, const char *fmt,
						     ...);
// The same for a sentence that includes the cause.
__attribute__((format(printf, 3, 4))) int err_stated(struct err *err, int code, const char *fmt,
						     ...);
__attribute__((format(printf, 2, 3))) int err_refused(struct err *err, const char *fmt, ...);
// Sets the hint of an error that is already set. Returns -err->code, or -EINVAL.
__attribute__((format(printf, 2, 3))) int err_hint(struct err *err, const char *fmt, ...);
// The hint where a privilege is missing.
int err_hint_root(struct err *err);
// Puts "WHAT: " before the sentence.
__attribute__((format(printf, 2, 3))) void err_prefix(struct err *err, const char *fmt, ...);
void err_clear(struct err *err);

// "SENTENCE (HINT)", or "SENTENCE" without a hint. Returns buf.
typedef char err_full_text[sizeof(((struct err *)0)->text) + sizeof(((struct err *)0)->hint) + 3];
const char *err_full(const struct err *err, err_full_text buf);

// "ENOENT" for ENOENT or -ENOENT; "errno 4711" when it has no name. Static storage.
const char *err_name(int code);
// "it does not exist" for ENOENT or -ENOENT, or its name where it has many causes.
const char *err_why(int code);
// The same as err_name, of a positive code where the C library has no names; NULL: not one that
// Weir meets.
const char *err_name_of(int code);
