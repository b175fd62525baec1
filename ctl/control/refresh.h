// SPDX-License-Identifier: GPL-2.0-only
// Resolves the names of entries and of the active policy again: new addresses are added, old ones
// stay for a grace time. One that returns in time stays. A name without an answer keeps what it
// has.
//
// Entries: an address that is not in the answer any more expires after the grace time, as with
// --for; so the kernel ends it, and whoever is killed in between loses nothing. Answers that change
// nothing take no lock. Places, the countries and autonomous systems of entries: they get the
// prefixes of the present databases at once.
// Policy: the record of its revision says until when an address stays. With other addresses the
// text of the record, not the file, is compiled and switched to (apply_same); the revision stays
// the same one. Where entries or the policy cannot be changed, their names keep what they have and
// are marked; the others are not held up.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"
#include "ctl/control/apply.h"
#include "ctl/control/entries/records.h"
#include "ctl/control/guard.h"
#include "ctl/net/dns.h"

// Bits: where names are.
enum refresh_where {
	REFRESH_ENTRIES = 1,
	REFRESH_POLICY = 2,
	REFRESH_PLACES = 4,
	REFRESH_ALL = 7,
};

struct refresh_name {
	char *name;
	bool entries, policy; // where it is
	bool place;           // in entries: a country or an autonomous system
	bool empty;           // only in a lax list of the policy, and without an address so far
	uint64_t since_s;     // time of its owner, or of its last answer; 0: not known
	uint32_t ttl_s;       // of the answer
	bool hosts;           // the answer is from /etc/hosts, which has no TTL
	int error;            // as in struct dns_answer; -EPERM: no address may be blocked
	char why[256];        // a sentence about it, "" without
	unsigned kept;        // bits: where the previous addresses stay although the answer is good
	// addresses of the answer that may be blocked; prefixes of a place
	size_t addresses;
	size_t added, leaving, back, released;
	uint64_t ends_s; // until the policy releases one of its addresses; UINT64_MAX: none leaves
};

struct refresh {
	struct refresh_name *at; // sorted by name
	size_t n, cap;
	size_t changed;      // references, and addresses of the policy
	struct records held; // the references of names of entries, when they were listed
	bool trial;          // one runs, so names of the policy are not resolved
	bool switched;       // to the policy with other addresses
};
void refresh_free(struct refresh *r);
#define CLEANUP_REFRESH CLEANUP(refresh_free)

// Addresses that must not be blocked. Collected only for an answer with a new address, since that
// may take long.
struct refresh_guard {
	const struct session *session; // NULL: none
	const struct dns_options *dns; // NULL: as this host asks
	bool collected;
	struct guard guard;
};
void refresh_guard_free(struct refresh_guard *g);
// 0 or -errno with err set.
int refresh_guard_get(struct refresh_guard *g, const struct guard **ret, struct err *err);

// The names that are meant; n 0: all.
struct refresh_wanted {
	const char **names; // sorted
	uint64_t *who;      // sorted; of owners with these names
	size_t n;
};
void refresh_wanted_make(const char *const *only, size_t n, struct refresh_wanted *ret);
void refresh_wanted_free(struct refresh_wanted *wanted);
bool refresh_is_wanted(const struct refresh_wanted *wanted, const char *name);
// Can an owner with this hash have such a name?
bool refresh_is_who(const struct refresh_wanted *wanted, uint64_t who);
struct refresh_name *refresh_find(const struct refresh *r, const char *name);
// The change by its answer cannot be made there.
void refresh_keep(struct refresh_name *name, enum refresh_where where, int code,
		  const struct err *why);
// Another command has the lock, or has begun a trial: a later look is early enough.
bool refresh_is_other_command(int code);

// The names of entries, policy or both (bits of enum refresh_where), each once; only the names in
// `only` if it has any. No lock is held afterwards. If the record of the policy cannot be read, its
// names are missing and *policy has the reason; this is not a failure.
int refresh_list(const char *instance, unsigned where, const char *const *only, size_t n,
		 struct refresh *ret, struct err *policy, struct err *err);
// Resolves the host names of entries, and reads the databases of countries, without a lock. All
// changes of entries are one commit. After a failure, names that would change are reported as kept.
int refresh_entries(const char *instance, const char *command, unsigned where,
		    const struct dns_options *dns, struct refresh_guard *guard, struct refresh *r,
		    struct err *err);
// Resolves the names of the policy, without a lock. Writes the record if an address leaves or
// returns; applies the policy if its addresses change. Unchanged answers write nothing. A failure
// is reported as above. c: made by candidate_new_replay(), for its findings.
int refresh_policy(struct candidate *c, const struct apply_options *options,
		   struct refresh_guard *guard, struct refresh *r, struct err *err);

// Why entries, or the policy, keep what they have; text "": they do not.
struct refresh_refused {
	struct err entries, policy;
};
// Resolves the names of `r` for the entries and for the policy, as `where` selects,
// and notes the answers. A failure of the entries does not delay the policy, and vice versa. If
// *refused has a refusal of the policy already, it is kept, and the policy is not resolved. An
// error concerns only the note: `weir status` then shows older answers.
int refresh_run(struct candidate *c, const struct apply_options *options, unsigned where,
		struct refresh *r, struct refresh_refused *refused, struct err *err);

// The answers for some of the names: answers[n] belongs to at[n].
struct refresh_answers {
	struct refresh_name **at;
	struct dns_answer *answers;
	size_t n, good;
};
// Errors of an answer are stored in its name.
int refresh_ask(struct refresh *r, enum refresh_where where, const struct dns_options *dns,
		struct refresh_answers *ret, struct err *err);
// All addresses of its answer are protected: no answer to follow.
void refresh_refuse(struct refresh_name *name);
void refresh_answers_free(struct refresh_answers *a);
#define CLEANUP_REFRESH_ANSWERS CLEANUP(refresh_answers_free)
// The names of the active policy.
int refresh_list_policy(const char *instance, const struct refresh_wanted *wanted,
			struct refresh *ret, struct err *err);

// refresh_follow.c: the future addresses of names. Pure: uses only memory.
struct geo_ranges;
struct refresh_wish { // an answer, or ranges
	struct refresh_name *name;
	const struct dns_answer *answer;
	const struct geo_ranges *ranges;
};
// Changes the references of the owners with these names (sorted). Changes are counted in the names;
// returns their sum. An answer that must not be followed does not change its name, which gets the
// reason.
size_t refresh_follow(struct records *records, const struct refresh_wish *wishes, size_t n,
		      const struct guard *guard, uint64_t now_s);
