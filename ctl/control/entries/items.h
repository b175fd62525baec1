// SPDX-License-Identifier: GPL-2.0-only
// Items to block, as text: words of the command line and lines of `block -f FILE`.
//
// A line is: WHAT [for TIME] [to|both] [note "TEXT"], with the options in any order. WHAT is an
// address, prefix, range A-B, host name, "country DE" or "asn 64500". TEXT is 1 to 255 printable
// bytes except '"'. '#' or ';' begins a comment. CRLF, a BOM and blanks are allowed. `list --plain`
// prints this format.
#pragma once

#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"

#define ITEMS_NAMES_MAX  10000
#define ITEMS_GEOS_MAX   4096
#define ITEMS_MAX        (4u << 20) // a short line can be a range of 254 prefixes
#define ITEMS_BYTES_MAX  (256u << 20)
#define ITEMS_ERRORS_MAX 100
#define ITEMS_NOTE_MAX   255                           // bytes, as a STRING of the policy language
#define ITEMS_FOR_MAX_MS (36525ull * 24 * 3600 * 1000) // a century: sums with the clock stay small

struct item {
	struct prefix prefix; // family 0 inside: a name
	const char *name;     // in lower case, or "country DE" (geo_is_name); NULL: a prefix
	unsigned line;        // 0: from the command line
	uint64_t for_ms;      // 0: not given on this line
	bool to, both;        // direction given on this line
	const char *note;     // NULL: none on this line
};

struct items_error {
	const char *file; // NULL; for callers that read several
	unsigned line;
	char text[256]; // sentence with its hint
};

struct items {
	VEC(struct item) items;         // a range gives several
	VEC(struct items_error) errors; // in order of lines; at most ITEMS_ERRORS_MAX kept
	size_t error_count;             // all prefixes
	size_t names, geos;
	size_t mapped;                 // "::ffff:1.2.3.4" read as IPv4
	bool mask;                     // set by the caller: host bits are cleared, not refused
	struct items_strings *strings; // owns the names and notes
};

// Reads an item (WHAT) from the first of n words of the command line; "country DE" may be two
// words. Wide prefixes are accepted (the guard judges them). Returns how many words the item has.
size_t items_add_words(struct items *b, const char *const *words, size_t n);
// Reads a whole list, which need not outlive the call. Every bad line becomes one error, and the
// other lines are read. Hosts files, ipset save, nft, CSV, JSON and HTML are recognised by their
// first line: one error names the format, and nothing is read. Prefixes shorter than /8 (IPv4) or
// /16 (IPv6), loopback and unspecified addresses are refused unless `wide`.
void items_add_text(struct items *b, const char *text, size_t len, bool wide);
void items_free(struct items *b);
// Does a list need `wide` for this prefix? NULL: no; else the reason: "is loopback".
const char *items_wide_problem(const struct prefix *p);
// Adds the note in a form that a list can have: '"' becomes "'", a tab a blank, unprintable or
// invalid UTF-8 '?', and the note is cut off at ITEMS_NOTE_MAX bytes. True: the note is unchanged.
bool items_add_note(struct text *t, const char *note);
