// SPDX-License-Identifier: GPL-2.0-only
// The load-balancer state in kernel maps: what a generation is loaded with, and what runs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service.h"
#include "ctl/datapath/instance.h"
#include "ctl/table/lb_state.h"

#define LB_PINS_FOLDER "flows" // of a generation: one file a service

struct generation;
struct policy_bpf;
struct lb_maps; // a balancer that runs, of a generation with pins

// What a generation's balancer is loaded with.
struct lb_load {
	const struct lb_state *lb;
	const struct backend *rows; // SERVICE_BACKENDS of them, by number
	// Whose backends it shares or copies: their devices are allowed too. NULL: none.
	const struct lb_maps *running;
	// New numbers: their backends are written at once, their counters begin at 0, pins that name them are
	// freed.
	struct lb_ids fresh;
	uint32_t hz;
};

// Before the load: sets the sizes of its maps, and reuses those of generation folder `previous` (NULL: none).
int lb_load_prepare(struct policy_bpf *skel, const struct lb_load *b, const char *previous,
		    struct err *err);
// After the load: services, rings, pins, next hops of new backends, the second program. What packets see of the
// previous generation does not change. 0 or -errno with err set.
int lb_load_fill(struct generation *g, const struct lb_load *b, const char *previous,
		 struct err *err);

// -ENOENT without err set: the generation has no services. 0 or -errno with err set.
int lb_maps_open(const struct instance *i, uint32_t generation, struct lb_maps **ret,
		 struct err *err);
void lb_maps_close(struct lb_maps *l);
void lb_maps_cleanup(struct lb_maps **l);
#define CLEANUP_LB_MAPS CLEANUP(lb_maps_cleanup)

// A copy of the state at the time of opening, to be changed and written back; belongs to l.
struct lb_state *lb_maps_state(struct lb_maps *l);
// Writes states and the slots that differ, each with one store, then holds, and members last: after a kill
// before that the next command repeats the work. 0 or -errno with err set.
int lb_maps_write(struct lb_maps *l, uint32_t hz, struct err *err);
// The number of elements of the array of backends.
uint32_t lb_maps_backends(const struct lb_maps *l);
// Writes a backend, except its path MTU, which belongs to the datapath as long as the address stays; false: the
// number is out of range.
bool lb_maps_set_backend(struct lb_maps *l, uint32_t id, const struct backend *row);
const struct backend *lb_maps_backend(const struct lb_maps *l, uint32_t id);
// Only its state, with one store.
void lb_maps_set_state(struct lb_maps *l, uint32_t id, enum backend_state state);
// Allows redirects to a device. 0 or -errno with err set.
int lb_maps_add_device(struct lb_maps *l, uint32_t ifindex, struct err *err);

// The pins of a service, by its place in the policy: mapped as long as l is open.
int lb_maps_pins(struct lb_maps *l, size_t service, uint64_t **ret_words, size_t *ret_n,
		 struct err *err);

// The counters of a number, over all CPUs.
int lb_maps_counter(const struct lb_maps *l, uint32_t row, struct service_counter *ret,
		    struct err *err);
