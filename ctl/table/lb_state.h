// SPDX-License-Identifier: GPL-2.0-only
// The load-balancer state: services, their backends and rings.
//
// The services of a policy are planned around the state that runs, so that no flow of a living
// backend moves. Drains, weights and failures change that state between two policies. Pure:
// ctl/datapath reads it from the kernel and writes it there.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service.h"
#include "ctl/base/diag.h"
#include "ctl/policy/resolved.h"
#include "ctl/table/ring.h"
#include "ctl/table/ring_step.h"

#define LB_NAME 32  // name of a service, with the final NUL
#define LB_RAMP 16u // steps from a recovery to the whole weight

// A backend of a service, perhaps one that the policy has dropped while slots or pins still name
// it. It is in a pinned array: WEIR_LAYOUT covers its layout.
struct lb_member {
	uint8_t addr[16]; // network order, IPv4 in the first four
	uint8_t family;   // 4 or 6; 0: `here`
	uint8_t backup;
	uint8_t gone;     // the policy no longer names it: it drains
	uint8_t health;   // enum backend_state, by the checks
	uint8_t override; // enum backend_state, by an operator; BACKEND_UP: no override
	uint8_t weighed;  // an operator has set override_weight
	uint16_t port;    // host order, 0: the packet's
	uint16_t id;      // its number in slots, pins and the array of backends
	// sixteenths of the weight that it does not have yet, after a recovery (`ramp`)
	uint8_t missing;
	uint8_t cut; // its link is dead
	// when the checks found it up for the last time, in tenths of a second; 0: it never failed
	uint32_t failed;
	uint32_t weight; // of the policy
	uint32_t override_weight;
	uint64_t until_s; // wall clock, end of `override`; 0: not by itself
	// jiffies64: until then it gets no new flows before its first check; 0: it does not wait
	uint64_t waits;
};
_Static_assert(sizeof(struct lb_member) == 56, "layout");

// A service; in a pinned array too.
struct lb_service {
	char name[LB_NAME];
	struct hash_key key;
	uint32_t size;         // slots
	uint32_t first_slot;   // in balancer.slots
	uint32_t buckets;      // of pins
	uint32_t first_member; // in balancer.members
	uint32_t n_members;
	uint32_t hold;               // 1 … SERVICE_HOLD_MAX
	uint32_t idle_tcp, idle_udp; // jiffies; 0: the service has no such protocol. tcp: sctp too
	uint16_t id;                 // index of its counters, in the range of backends
	uint16_t keep;               // parts of 10,000 of the weight that checks cannot take out
	uint8_t mode;                // enum service_mode
	uint8_t hash;                // enum service_hash
	uint8_t protocols;           // SERVICE_TCP | …
	uint8_t udp_move;
	uint8_t checked; // the policy has `check`
	// 1: a command is changing its ring, or was killed while it did: the ring is to be written
	// again
	uint8_t torn;
	uint8_t pad[6];
	uint64_t pushed;    // living pins pushed out, at the last visit (ring_hold)
	uint64_t pushed_at; // jiffies64 of the last visit that found more
};
_Static_assert(sizeof(struct lb_service) == 112, "layout");

struct lb_state {
	struct lb_service *services; // in the order of the policy
	size_t n_services;
	// The members of a service are adjacent: first the members in the policy, in its order,
	// then those removed from it.
	struct lb_member *members;
	size_t n_members;
	uint64_t *slots;
	size_t n_slots;
};

void lb_state_free(struct lb_state *b);
void lb_state_cleanup(struct lb_state **b);
#define CLEANUP_LB_STATE CLEANUP(lb_state_cleanup)

// A bit for each number of a backend.
struct lb_ids {
	uint64_t bits[SERVICE_BACKENDS / 64];
};
bool lb_ids_has(const struct lb_ids *ids, uint32_t id);
void lb_ids_add(struct lb_ids *ids, uint32_t id);
// Both add to `ids`, which begins as zeros: all numbers that members, services and slots name (the
// owner, and the former owner of slots that are not stable).
void lb_ids_of(const struct lb_state *b, struct lb_ids *ids);
// All numbers that living pins name; frees no pin.
void lb_ids_of_pins(const struct ring_pins *pins, struct lb_ids *ids);

// An override from the state folder, for services that do not run yet (after a reboot).
struct lb_override {
	char service[LB_NAME];
	struct addr addr; // family 0: here
	uint16_t port;
	uint8_t state; // enum backend_state
	bool weighed;
	uint32_t weight;
	uint64_t until_s;
};

struct lb_plan_options {
	const struct lb_state *running; // state of the active generation; NULL: none
	// Numbers that living pins and the previous ring name; NULL: none. They are not reused, and
	// are kept as gone members of a service that continues.
	const struct lb_ids *busy;
	const bool *pinned; // by running service: one of its pins may live. NULL: none does
	const struct lb_override *overrides; // for members that `running` does not have
	size_t n_overrides;
	struct hash_key key; // seed of services, unless the policy has `seed`
	uint64_t now;        // jiffies64
	uint64_t wall_s;     // overrides until then have expired
	uint32_t hz;
	bool agent; // one runs: new backends wait for their first check
	// Allow changes that move every connection: the service starts again, with new numbers and
	// stable slots, since nothing is pinned to these. Overrides and health of its backends
	// continue.
	bool force;
	// The running ring stays beside the new one: all its members stay, at least as `gone`, and
	// its number of pins, so that both rings use the same pins.
	bool trial;
	// During a trial, the bound of numbers; 0: SERVICE_BACKENDS.
	uint32_t room;
};

// Plans the balancer of a policy. A service that runs under its name keeps its numbers, overrides
// and slots; ring_step() changes its slots to the ring of the backends that count now (BACKEND_NONE
// in every slot: no backend has ever counted). Members are the same if address and port are.
// Members that the policy drops stay as `gone` while slots or busy pins name them. Refused without
// `force`, with an error in d at the service's location: another seed, hash, size or mode of a
// running service. (control/unchanged checks for a VIP that goes to another service.) Warnings: a
// share that is off by more than SERVICE_SHARE_WARN parts of a million; another number of pins
// while `pinned`, not stable or on trial (the old number stays); a service without a backend that
// counts (the current ring stays in use). 0, or -EINVAL with errors queued, also if numbers run
// out.
int lb_plan(const struct resolved *r, const struct lb_plan_options *o, struct diag *d,
	    struct lb_state **ret);

// The numbers that `b` uses and `running` (may be NULL) does not: pins that name them must be freed
// first.
void lb_ids_new(const struct lb_state *b, const struct lb_state *running, struct lb_ids *ret);

// The state of a member. Precedence: down by command, drain by command, the checks, the policy. A
// drained one whose checks fail is BACKEND_FAILING: its flows stay, as the command says, and it
// gets no new ones by a reused port either. Considers only the member: others of its service may
// keep it (lb_service_keep).
enum backend_state lb_member_state(const struct lb_member *m);

// Does it wait for its first check? It is new, and nothing else keeps new flows from it.
bool lb_member_waits(const struct lb_member *m);

// Where the new flows of a service go.
enum lb_flows {
	LB_FLOWS_UP, // to backends that are up, and to those that `keep` keeps
	// to the owners in the last ring, until backends that are new have been checked
	LB_FLOWS_WAIT,
	LB_FLOWS_OPEN, // to all that only their checks take out: no other is left
	LB_FLOWS_LAST, // to the owners in the last ring: no backend accepts new flows
};
// Which members of a service are kept: they get new flows although their checks fail. The only
// function that decides it. A check is evidence, perhaps wrong; commands, a dead link and weight 0
// are not, so they always count.
// - While a backup is up, no member is kept.
// - While another member is up, so many are kept that the share `keep` of the weight stays. Those
//   that failed last are kept first. Backups, and members that a command or a dead link has taken
//   out, are no part of that weight.
// - While none is up and some wait for their first check (lb_member.waits), none is kept.
// - Where none is up, all are kept that only their checks take out (fail open); backups only if
//   there is no other. One that recovers is then the only one again.
// ret[i]: of the i-th member of the service.
enum lb_flows lb_service_keep(const struct lb_state *b, const struct lb_service *s, bool *ret);

// The states of the members of a service for the datapath, in their order: a member that is kept is
// up, and one that is up is drained if it gets no new flows, because its weight is 0 or it is a
// backup that is not needed.
void lb_member_states(const struct lb_state *b, const struct lb_service *s, uint8_t *ret);
uint32_t lb_member_weight(const struct lb_member *m); // from the command, else the policy
// Sixteenths of that weight which count: fewer than LB_RAMP after a recovery, unless a command has
// set the weight.
uint32_t lb_member_ramp(const struct lb_member *m);
void lb_member_address(const struct lb_member *m, struct addr *ret); // family 0: here

// Ends overrides of states that have expired at `wall_s`; overrides of weights do not expire.
// Return whether the member changed, and how many did.
bool lb_member_expire(struct lb_member *m, uint64_t wall_s);
// Must its ring be written again, independently of the command? An override or a wait has ended, or
// the ring is torn.
bool lb_service_is_due(const struct lb_state *b, const struct lb_service *s, uint64_t now,
		       uint64_t wall_s);
size_t lb_state_expire(struct lb_state *b, uint64_t wall_s);
// Members that have waited for their first check until `now`, in jiffies64, count without one.
// Returns how many; sets ret_services[i] of their services, unless it is NULL.
size_t lb_state_end_waits(struct lb_state *b, uint64_t now, bool *ret_services);

struct ring_rules lb_service_rules(const struct lb_service *s, uint64_t now, uint32_t hz);

// Changes the slots of a service to the ring of its present members. Returns how many changed. If
// no member counts, the last ring stays, and *ret_no_backend is set.
size_t lb_service_change(struct lb_state *b, size_t service, uint64_t now, uint32_t hz,
			 bool *ret_no_backend);

// Writes into the element of a backend what the datapath would otherwise compute for each packet;
// when all other fields are there.
void lb_backend_complete(struct backend *b);

// The service as the datapath sees it.
void lb_service_value(const struct lb_service *s, uint32_t hz, struct service *ret);

// Sets the override of a member, which has none, from a list, unless it has expired at `wall_s`.
void lb_member_take_override(struct lb_member *m, const char *service,
			     const struct lb_override *overrides, size_t n, uint64_t wall_s);

// Connections that a service would lose if it started again with its present members.
struct lb_service_loss {
	uint32_t unsettled; // slots that are not stable: their flows are pinned
	uint32_t other;     // stable slots that would have another owner, or none
	uint64_t jiffies;   // how long slots stay changing in any case
};
void lb_service_loss(const struct lb_state *b, const struct lb_service *s, uint64_t now,
		     uint32_t hz, struct lb_service_loss *ret);

// Find a service by name, a member by address and port (port 0 fits any; NULL address: here). NULL:
// not found.
struct lb_service *lb_state_find(const struct lb_state *b, const char *name);
struct lb_member *lb_state_find_member(const struct lb_state *b, const struct lb_service *s,
				       const struct addr *addr, uint16_t port);

// Bytes of the pins of all services.
uint64_t lb_state_pin_bytes(const struct lb_state *b);

// Figures of a service's ring.
struct lb_service_figures {
	uint32_t stable, changing, pins_only; // slots by phase
	uint64_t fingerprint;                 // ring_fingerprint of members that are not gone
	uint64_t configuration; // the same with the weights of the policy, and all members up
	uint64_t share_error;   // parts of a million, of those that count
};
void lb_service_figures(const struct lb_state *b, const struct lb_service *s, uint64_t now,
			uint32_t hz, struct lb_service_figures *ret);
// Slots by owner: ret[id] has SERVICE_BACKENDS elements.
void lb_service_owned(const struct lb_state *b, const struct lb_service *s, uint32_t *ret);
