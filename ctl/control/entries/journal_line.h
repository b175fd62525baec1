// SPDX-License-Identifier: GPL-2.0-only
// One line of the journal, printed and parsed. Pure: memory and text.
//
//   holder 0 since 1790000000 origin "" list "" name "" note "abuse 4711" by "root"
//   holder 1 since 1790000300 fleeting origin "fail2ban" list "" name "" note "" by "root"
//   holder 2 since 1790000400 group 5 origin "sshd" list "" name "" note "" by "root"
//   block from 203.0.113.7 by 0 until never
//   block from 203.0.113.7 by 1 until 1790000900
//   remove block from 203.0.113.7 by 1
//
// Owners are numbered in the order of the file, and precede the lines that name them. A reference
// is known by prefix, kind and owner: the same once more has a new end. Strings are quoted with \"
// \\ \xHH.
#pragma once

#include "ctl/base/text.h"
#include "ctl/control/entries/records.h"

#define JOURNAL_OWNERS_MAX (UINT32_MAX - 1)

struct journal_line {
	enum {
		JOURNAL_OWNER,
		JOURNAL_ADD,
		JOURNAL_REMOVE,
	} what;
	struct reference reference; // only its owner: JOURNAL_OWNER; no end: JOURNAL_REMOVE
	struct owner owner;         // only JOURNAL_OWNER; its strings are in the caller's `spare`
};

// Parses a line without its newline. spare has room for `len` bytes, or is NULL where owners are
// not expected. Returns NULL, or what is wrong.
const char *journal_line_parse(const char *line, size_t len, char *spare, struct journal_line *ret);

void journal_print_owner(struct text *t, uint32_t number, const struct owner *owner);
// Prints a reference whose owner has this number in the journal.
void journal_print_add(struct text *t, const struct reference *r, uint32_t number);
void journal_print_remove(struct text *t, const struct reference *r, uint32_t number);

// Prints the clock in the head of a frame: " wall 1790000400 up 86400 boot 8f0c2b6e-…"; nothing if
// the clock is not known.
void journal_print_clock(struct text *t, const struct records_clock *clock);
// Parses the rest of a head, from *at. The clock may be absent: then *ret is not changed. Returns
// NULL, or what is wrong.
const char *journal_parse_clock(const char **at, const char *end, struct records_clock *ret);
