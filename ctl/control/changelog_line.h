// SPDX-License-Identifier: GPL-2.0-only
// A change as a line of JSON, without files.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Text of a change is cut to these sizes, and has no control characters. Users, passwords and
// queries of URLs are left out.
#define CHANGELOG_TEXT 512
#define CHANGELOG_WORD 160
#define CHANGELOG_LINE 4096 // bytes; more than a line

#define CHANGELOG_DONE "done" // a result

struct changelog_change {
	uint64_t at_ms;          // wall clock
	uint64_t uid;            // of the process
	bool entries;            // block, allow, unblock, unallow
	char *verb;              // "block"
	char *command;           // the arguments of the command
	char *by;                // "root (ssh 198.51.100.9)", "agent (feeds)"
	char *origin, *list;     // of entries; "" without
	char *result;            // "done", "refused", "failed"
	char *about;             // backends: "web 10.0.0.11; api 10.0.0.11; "; ""
	char *text;              // why it was refused or failed; ""
	uint64_t added, removed; // entries
	uint64_t changes;        // combined in this one; 0: 1
	size_t place;            // in the order in which they were read
};
void changelog_free_change(struct changelog_change *c);

// Prints a line with its newline, which the caller frees; parses one without its
// newline. -EBADMSG: it is not valid.
char *changelog_print(const struct changelog_change *c, uint64_t number);
int changelog_parse(const char *line, size_t len, struct changelog_change *ret);
