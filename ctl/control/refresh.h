// SPDX-License-Identifier: GPL-2.0-only
// Looks again at the names of entries and of the policy in force: new addresses are added, old ones stay for a grace
// time. One that comes back in time stays. A name without an answer keeps what it has.
//
// Entries: an address that is not in the answer any more expires after the grace time, as with --for; so the kernel ends
// it, and whoever is killed in between loses nothing.
// Policy: the record of its revision says until when an address stays. With other addresses the text of the record, not
// the file, is compiled and switched to (apply_answers); the revision stays the same one.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"
#include "ctl/control/apply.h"
#include "ctl/control/guard.h"
#include "ctl/net/dns.h"

#define REFRESH_GRACE_S 60 // at least; twice the TTL if that is more

struct refresh_name {
	char *name;
	bool entries, policy; // where it is
	uint64_t since_s;     // of its owner, or of its answer in the policy; 0: not known
	uint32_t ttl_s;       // of the answer; 0: from /etc/hosts
	int error;            // as in struct dns_answer
	char why[256];        // a sentence about it, "" without
	size_t addresses;     // of the answer, those that must not be blocked left out
	size_t added, leaving, back, released;
	uint64_t ends_s; // until the policy releases an address of it; UINT64_MAX: none leaves
};

struct refresh {
	struct refresh_name *at;
	size_t n, cap;
	size_t changed;    // references, and addresses of the policy
	VEC(uint64_t) who; // journal_who of their owners
	bool trial;        // one runs, so names of the policy are not looked at
	bool switched;     // to the policy with other addresses
};
void refresh_free(struct refresh *r);
#define CLEANUP_REFRESH CLEANUP(refresh_free)

enum refresh_where { REFRESH_ENTRIES = 1, REFRESH_POLICY = 2 };

// The names of entries, of the policy in force, or of both (bits of enum refresh_where), each once, sorted; those of
// `only` if it has any. No lock is held afterwards.
int refresh_list(const char *instance, unsigned where, const char *const *only, size_t n,
		 struct refresh *ret, struct err *err);
// Asks for those of entries, without a lock, then changes their entries in one commit. guard: what must not be blocked.
int refresh_names(const char *instance, const char *command, const struct dns_options *dns,
		  const struct guard *guard, struct refresh *r, struct err *err);
// Asks for those of the policy, without a lock. Writes the record if an address leaves or comes back; if the addresses
// in force change, it is an apply. Unchanged answers write nothing. c: made by candidate_new_replay(), for its findings.
int refresh_policy(struct candidate *c, const struct apply_options *options, struct refresh *r,
		   struct err *err);

// The answers for some of the names: answers[n] is that of at[n].
struct refresh_answers {
	struct refresh_name **at;
	struct dns_answer *answers;
	size_t n, good;
};
// What is wrong with an answer goes into its name.
int refresh_ask(struct refresh *r, enum refresh_where where, const struct dns_options *dns,
		struct refresh_answers *ret, struct err *err);
void refresh_answers_free(struct refresh_answers *a);
#define CLEANUP_REFRESH_ANSWERS CLEANUP(refresh_answers_free)
// The names of the policy in force.
int refresh_list_policy(const char *instance, const char *const *only, size_t n,
			struct refresh *ret, struct err *err);
bool refresh_is_wanted(const char *name, const char *const *only, size_t n);
