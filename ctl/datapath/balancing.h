// SPDX-License-Identifier: GPL-2.0-only
// The balancer's state in the kernel: what a generation is loaded with, and what runs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service.h"
#include "ctl/datapath/instance.h"
#include "ctl/table/balancer.h"

#define BALANCING_PINS_FOLDER "flows" // of a generation: one file a service

struct generation;
struct policy_bpf;
struct balancing_live; // a balancer that runs, of a generation with pins

// What a generation's balancer is loaded with.
struct balancing {
	const struct balancer *balancer;
	const struct backend *rows; // SERVICE_BACKENDS of them, by number
	// Whose rows it shares, or copies: their devices are let through as well. NULL: nobody's.
	const struct balancing_live *running;
	// Numbers that nobody had before: their rows are written at once, their counters begin at 0, pins that
	// name them are freed.
	struct balancer_ids fresh;
	uint32_t hz;
};

// Before the load: sizes of its maps, and those that generation folder `heir_of` (NULL: none) hands on.
int balancing_prepare(struct policy_bpf *skel, const struct balancing *b, const char *heir_of,
		      struct err *err);
// After it: services, rings, pins, next hops of new backends, the second program. What the generation before
// shows to packets is left as it is. 0 or -errno with err set.
int balancing_fill(struct generation *g, const struct balancing *b, const char *heir_of,
		   struct err *err);

// -ENOENT without err set: the generation has no services. 0 or -errno with err set.
int balancing_open(const struct instance *i, uint32_t generation, struct balancing_live **ret,
		   struct err *err);
void balancing_close(struct balancing_live *l);
void balancing_cleanup(struct balancing_live **l);
#define CLEANUP_BALANCING CLEANUP(balancing_cleanup)

// A copy of what it was when it was opened, to be changed and written back; belongs to l.
struct balancer *balancing_state(struct balancing_live *l);
// States and the slots that differ, each with one store, then holds; what members are last: a command that
// is killed before has left to do what it was to do. 0 or -errno with err set.
int balancing_write(struct balancing_live *l, uint32_t hz, struct err *err);
// How many rows of backends there are.
uint32_t balancing_rows(const struct balancing_live *l);
// Writes the row of a backend, but for what routers have said of the way there, which is the datapath's as long as
// the address stays; false: the number is out of range.
bool balancing_set_row(struct balancing_live *l, uint32_t id, const struct backend *row);
const struct backend *balancing_row(const struct balancing_live *l, uint32_t id);
// State alone, with one store.
void balancing_set_state(struct balancing_live *l, uint32_t id, enum backend_state state);
// Lets redirected frames leave by a device. 0 or -errno with err set.
int balancing_add_device(struct balancing_live *l, uint32_t ifindex, struct err *err);

// The pins of a service, by its place in the policy: mapped as long as l is open.
int balancing_pins(struct balancing_live *l, size_t service, uint64_t **ret_words, size_t *ret_n,
		   struct err *err);

// The counters of a number, over all CPUs.
int balancing_counter(const struct balancing_live *l, uint32_t row, struct service_counter *ret,
		      struct err *err);
