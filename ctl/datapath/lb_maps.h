// SPDX-License-Identifier: GPL-2.0-only
// The running balancer: its state in the maps of a generation, read and changed under traffic.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/maps.h"
#include "ctl/table/lb_state.h"

struct lb_maps; // folder of a generation in bpffs

// The services whose slots the state has.
enum lb_slots {
	LB_SLOTS_ALL,
	LB_SLOTS_USED, // that lb_maps_use() takes; the other slots are zeros and not written
};

// The maps of the generation with this number. *ret NULL: the number is 0, or the generation has no
// services. 0 or -errno with err set.
int lb_maps_open(const struct instance *i, uint32_t generation, enum lb_slots slots,
		 struct lb_maps **ret, struct err *err);
// Takes the slots of a service, by its index in the policy, into the state. 0 or -errno with err
// set.
int lb_maps_use(struct lb_maps *l, size_t service, struct err *err);
bool lb_maps_uses(const struct lb_maps *l, size_t service);
void lb_maps_close(struct lb_maps *l);
void lb_maps_cleanup(struct lb_maps **l);
#define CLEANUP_LB_MAPS CLEANUP(lb_maps_cleanup)

// The state when it was opened, to be changed and written back; belongs to l.
struct lb_state *lb_maps_state(struct lb_maps *l);
// Writes backend states and the slots that differ, each with one store, then holds. Members are
// last; until then a service whose ring changes is `torn`, so the next command repeats what a
// killed one did not finish. 0 or -errno with err set.
int lb_maps_write(struct lb_maps *l, uint32_t hz, struct err *err);
// The same for the previous policy during a trial: the backend states belong to the policy on
// trial, and are not written.
int lb_maps_write_before(struct lb_maps *l, uint32_t hz, struct err *err);
// For how many numbers of backends there is room.
uint32_t lb_maps_backends(const struct lb_maps *l);
// Writes a backend, except the path MTU, which the datapath has learned and which stays as long as
// the address does;
// false: the number is out of range.
bool lb_maps_set_backend(struct lb_maps *l, uint32_t id, const struct backend *backend);
const struct backend *lb_maps_backend(const struct lb_maps *l, uint32_t id);
// Only the state, with one store.
void lb_maps_set_state(struct lb_maps *l, uint32_t id, enum backend_state state);
// Redirected frames may leave by the device. 0 or -errno with err set.
int lb_maps_add_device(struct lb_maps *l, uint32_t ifindex, struct err *err);

// The pins of a service, by its index in the policy: *ret_n words. The caller closes the mapping.
int lb_maps_pins(const struct lb_maps *l, size_t service, struct mapping *ret, size_t *ret_n,
		 struct err *err);

// The counters of a backend or a service, by number, over all CPUs.
int lb_maps_counter(const struct lb_maps *l, uint32_t id, struct service_counter *ret,
		    struct err *err);
