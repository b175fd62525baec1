// SPDX-License-Identifier: GPL-2.0-only
// A policy with services in a rig: from its text into the kernel, with given next hops; its
// counters.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/answer.h"
#include "common/service.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/test_program.h"
#include "tests/datapath/rig.h"

// Devices of the rig: frames arrive on `in`; `out` is another device; `lost` is in no device map.
#define BALANCE_OUT  9001
#define BALANCE_LOST 9002

struct balance_rig {
	struct rig *rig;
	struct candidate *c;
	struct test_program *general; // a test program over the same tables, without the short one
	struct generation_cost cost;
	uint32_t ids;                              // number of counters of services and backends
	struct service_counter *counts;            // after the last balance_rig_moved
	struct counter reasons[WEIR_REASON_COUNT]; // after the last balance_rig_reasons
	struct mapping backends;                   // struct backend, by number
	struct mapping budgets;                    // of answers
	struct mapping votes;                      // for small path MTUs
	struct answer_key awaited;                 // by balance_rig_await
};

// Compiles a policy. Prints its errors and exits if it is refused.
void balance_rig_compile(struct candidate *c, const char *policy);
// Do the rules of policies that are loaded from now on log each packet, whatever their rate?
void balance_rig_log_all(bool yes);
// Have the services of policies that are loaded from now on left nat and fullnat for dr? Their
// connections continue, and no other begins.
void balance_rig_leave_nat(bool yes);
// Loads the policy and makes it the active one of the rig, whose frames arrive on RIG_IFACE from
// now on. Exits if it is refused.
struct balance_rig *balance_rig_new(struct rig *rig, const char *policy);
// Restores the rig's own policy.
void balance_rig_free(struct balance_rig *b);

// Sets the path to a backend: words as described in balance.c. false: no such backend or word.
bool balance_rig_hop(struct balance_rig *b, char *text);

// Pins the flow with this hash of its tuple to the backend of the service, and forgets all such
// pins and what notices about their flows said. false: no such backend.
bool balance_rig_pin(struct balance_rig *b, const char *service, const char *address,
		     uint64_t hash);
void balance_rig_unpin(struct balance_rig *b);

// The known path MTU to a backend; 0: unknown.
uint32_t balance_rig_path(const struct balance_rig *b, uint32_t id);

// Counters of the service, or of its backend at this address ("here" too). false: not found.
bool balance_rig_id(const struct balance_rig *b, const char *service, const char *address,
		    uint32_t *ret);
const char *balance_rig_name(const struct balance_rig *b, uint32_t id, char *buf, size_t size);
// The b->ids counters since the last call, valid until the next call.
const struct service_counter *balance_rig_moved(struct balance_rig *b);

// The reasons with which packets of the rig's interface were counted since the last call, into
// o->moved. (The counters of all interfaces, which rig_send reads, are too many for thousands of
// frames.)
void balance_rig_reasons(struct balance_rig *b, struct outcome *o);

// Resets the limit on answers.
void balance_rig_forget_answers(struct balance_rig *b);

// The addresses of this host and the broadcast addresses of its subnets, separated by blanks.
// false: one is invalid.
bool balance_rig_own(struct balance_rig *b, const char *text);
// The number of answers that were not sent as others got them.
uint64_t balance_rig_limited(const struct balance_rig *b);

// The MAC addresses of the rig's interface, separated by blanks; "": any. false: an address is
// invalid.
bool balance_rig_stations(struct balance_rig *b, const char *text);
// The number of packets to services and reject rules in frames to other stations.
uint64_t balance_rig_foreign(const struct balance_rig *b);

// Awaits an answer to a check via path, as the agent does: "PROTO SOURCE PORT DEST PORT MS". false:
// a word is invalid.
bool balance_rig_await(struct balance_rig *b, char *text);
void balance_rig_await_nothing(struct balance_rig *b);

// Asks the test program about the frame.
struct test_result balance_rig_ask(struct balance_rig *b, const struct frame *f);
// The same for the general program by itself.
struct test_result balance_rig_ask_general(struct balance_rig *b, const struct frame *f);
// The difference between both for one frame; NULL: no difference.
const char *balance_rig_difference(const struct test_result *test,
				   const struct test_result *general);
