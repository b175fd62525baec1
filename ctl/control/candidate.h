// SPDX-License-Identifier: GPL-2.0-only
// A policy on its way into the kernel: read, resolved, compiled, loaded, proved.
//
// `check` does this without an instance, `apply` with one, `explain` and the restore at attach from
// a record.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/diag.h"
#include "ctl/control/environment.h"
#include "ctl/control/lb_apply.h"
#include "ctl/control/quick.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/identities.h"
#include "ctl/datapath/test_program.h"
#include "ctl/policy/resolved.h"
#include "ctl/table/image.h"

// An expect line that holds without the quick rules only.
struct candidate_broken {
	const struct resolved_expect *expect;
	const struct quick_rule *by;
	char *what; // "expect at edge.weir:9: got …, expected …"
};

struct candidate {
	struct diag *diag; // its errors and warnings
	bool dumped;       // image_dump() follows; set before candidate_compile()
	struct environment environment;
	struct quick_rules quick; // in front of its rules; filled before candidate_compile()
	struct resolved *resolved;
	struct image *image;
	struct generation *generation;
	struct test_program *test;
	struct generation_cost cost;
	struct candidate *plain; // without quick rules; NULL: not needed so far
	struct candidate *after; // candidate_after(), and of which time
	uint64_t after_s;
	VEC(struct candidate_broken) broken; // found by prove_expects()
	const char *path;                    // of the last compile; both belong to the caller
	const char *const *ifaces;
	size_t n_ifaces;
	bool general_only;  // loaded without the short program: tests compare the two ways
	struct lb_apply lb; // of its `service` blocks
	struct identities identities; // what its counters change in the instance's maps
};

// An empty candidate with the live environment, or with a record (then fill c->environment with
// environment_load).
struct candidate *candidate_new(const struct dns_options *dns, const struct environment *last);
struct candidate *candidate_new_replay(void);
void candidate_free(struct candidate *c);
void candidate_cleanup(struct candidate **c);
#define CLEANUP_CANDIDATE CLEANUP(candidate_cleanup)

// For a policy that is empty or has no record: the path of an empty text.
const char *candidate_no_policy(struct candidate *c);

// Only from text to values, like candidate_compile.
int candidate_resolve(struct candidate *c, const char *path, const char *const *ifaces, size_t n);
// Text to tables. ifaces: of -i, in place of the policy's (n 0: the policy's). 0, or -EINVAL with
// errors in c->diag.
int candidate_compile(struct candidate *c, const char *path, const char *const *ifaces, size_t n);
// From text to values and names, without tables: for commands that only read an active policy. Like
// candidate_compile.
int candidate_name(struct candidate *c, const char *path, const char *const *ifaces, size_t n);
// Plans its services around the services of generation `running` (i NULL or 0: none run).
// candidate_load does it if necessary. 0, or -errno with err set and errors in c->diag.
int candidate_plan(struct candidate *c, const struct instance *i, uint32_t running,
		   struct err *err);
// Tables to a loaded program, with the counters of the rules' identities where there is an
// instance; what that changes in the instance's maps is only planned: identities_enter does it,
// before the switch. 0 or -errno with err set; a refusal that a rule caused is an error in c->diag
// as well.
int candidate_load(struct candidate *c, const struct instance *i, struct err *err);
// Is the rule of this number one that the command brings: with `quick`, where only quick rules
// change, a new quick rule, else a rule of the policy?
bool candidate_brings(const struct candidate *c, size_t rule, bool quick);
// The first rule that asks connection tracking; NULL if there is no such rule.
const struct image_rule *candidate_tracks(const struct candidate *c);
// Refuses a rule that the command brings, with `established` or `not established`, if connection
// tracking is idle; names the nft lines that start it.
int candidate_check_tracking(const struct candidate *c, bool quick, struct err *err);
// The same for `unroutable`, if the loopback device does not forward; names the sysctl command.
int candidate_check_unroutable(const struct candidate *c, bool quick, struct err *err);
// The policy's interfaces, for the generation's own record.
void candidate_about(const struct candidate *c, struct generation_about *ret);
// The quick rule that has decided; NULL: none has.
const struct quick_rule *candidate_quick(const struct candidate *c, const struct test_result *r);
// The same policy without quick rules. *ret belongs to c. 0 or -errno with err set.
int candidate_plain(struct candidate *c, struct candidate **ret, struct err *err);
// The same policy without the quick rules that have ended at this time. *ret belongs to c and is
// valid until the next call. 0 or -errno with err set.
int candidate_after(struct candidate *c, uint64_t time_s, struct candidate **ret, struct err *err);
// Asks the test program about one packet.
int candidate_ask(struct candidate *c, const struct resolved_packet *p, bool live,
		  struct test_result *ret, struct err *err);
