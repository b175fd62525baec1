// SPDX-License-Identifier: GPL-2.0-only
// Input of resolve besides the text: files, quick rules, answers for host names, own addresses.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"
#include "ctl/base/geo.h"
#include "ctl/policy/source.h"

// Uses of the addresses of a name; a greater one includes the others.
enum policy_use {
	POLICY_WHOLE,    // anything else than the following
	POLICY_EXPECTED, // packets of `expect drop` and `expect reject` lines
	// a drop or reject rule: an answer that leaves it no address counts as a failure
	POLICY_DROPPED,
};

struct policy_question {
	const char *name; // in normal form
	enum policy_use use;
};

// An address of an answer that drop and reject rules must not have.
struct policy_left_out {
	struct addr addr;
	char why[96]; // "a private address"; "": of a record, whose maker has reported it
};

struct policy_answer {      // to one name
	struct addr *addrs; // allocated by the callback, freed by resolve
	size_t n;
	uint32_t ttl_s;
	int error;     // 0, or -errno: no address at all
	char why[512]; // then: the reason, "'x.com': no such name (NXDOMAIN)"
	bool stale;    // the last good answer, since there is no new one; `why` has the reason
	bool v4_missing, v6_missing; // the name has no address of that family
	bool v4_failed, v6_failed;   // unknown: the query for that family failed
	struct policy_left_out
		*left_out; // from `addrs`; freed like these. Only POLICY_WHOLE has none
	size_t n_left_out;
};

// A list file that is fetched.
struct policy_url {
	const char *url, *sha256, *ca; // the latter two NULL: absent
	uint64_t every_ms;
	uint32_t min;
	bool lax, wide;
};

// The prefixes of a country or an autonomous system. n 0: `why` has the reason.
struct policy_ranges {
	struct prefix *prefixes; // allocated by the callback, freed by resolve
	size_t n;
	char why[512];
	bool stale; // the last good answer, since there is no new one; `why` has the reason
};

struct resolved_addresses;

// The addresses of lists with files in them, as an earlier resolve of the same texts has found
// them.
struct policy_known {
	// NULL: not known. file and offset: where the list is written.
	const struct resolved_addresses *(*find)(const struct policy_known *known, uint16_t file,
						 uint32_t offset);
};

// A rule that is put in front of the policy's rules, after those with `always`.
struct policy_quick {
	const char *label; // "quick 3": its location in messages, and its name without `name`
	const char *name;  // NULL: none
	const char *text;  // of a rule without a name
};

// Callbacks for the input of resolve. They may be NULL where noted.
struct policy_env {
	void *ctx;
	const struct source_reader *files; // NULL: the file system
	const char *services;              // NULL: /etc/services
	// All names of the policy at once (n > 0, each once), under one deadline. 0, or -errno with
	// err set when nothing could be asked.
	int (*resolve)(void *ctx, const struct policy_question *questions, size_t n,
		       struct policy_answer *answers, struct err *err);
	// Fetches all lists of the policy at once (n > 0, each once): `files` then reads them by
	// their URL, or has the reason why not. NULL: only `files` knows.
	void (*fetch)(void *ctx, const struct policy_url *urls, size_t n);
	// All countries and autonomous systems of the policy at once (n > 0, each once). 0, or
	// -errno with err set where there is no database. NULL: none.
	int (*ranges)(void *ctx, const struct geo *wanted, size_t n, struct policy_ranges *answers,
		      struct err *err);
	// Addresses of this host, for `self`. Allocates *ret. NULL: no addresses.
	int (*addresses)(void *ctx, struct addr **ret, size_t *ret_n, struct err *err);
	// The last good content of a list file that is now refused; -ENOENT: none. NULL: never.
	int (*last_list)(void *ctx, const char *path, char **ret_text, size_t *ret_len);
	// Then list files are not read, and there are no warnings: these were printed the first
	// time. A list that is not known is an error. NULL: list files are read.
	const struct policy_known *known;
	const struct policy_quick *quick; // in the order in which they are evaluated
	size_t n_quick;
	// a policy without rule, default and service is not an error: it was accepted before
	bool may_be_empty;
	bool names_may_fail; // a name without any answer is a warning, not an error
};
