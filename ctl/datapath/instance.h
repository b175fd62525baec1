// SPDX-License-Identifier: GPL-2.0-only
// An instance: the maps and programs that all generations share, which each command finds by their
// names.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/abi.h"
#include "common/config.h"
#include "ctl/base/err.h"
#include "ctl/datapath/clock.h"

struct bpf_object;

// Shared objects: X(member of struct instance, name in bpffs, how it is made). A new map is a line
// here, and its definition in xdp/ if programs use it; each program that has a map of the name
// `.map` then uses the shared one.
//
//   .map, .size                                 made with the program of the first generation, as xdp/ defines it;
//                                               .size: for as many entries as the instance has room
//                                               for, or for shards that have counters for the CPUs
//                                               that are online
//   .type, .key_size, .value_size, .max_entries made without a program; .max_entries 0: for as many
//               entries as the instance has room for
//   neither                                     a program
/* clang-format off */
#define INSTANCE_OBJECTS(X) \
	X(knobs_fd, "knobs", .map = ".data.knobs") \
	X(progs, WEIR_PROGS, .map = "progs") \
	X(ifaces, "ifaces", .type = BPF_MAP_TYPE_ARRAY, .key_size = sizeof(uint32_t), \
	  .value_size = sizeof(struct iface), .max_entries = WEIR_IFACES) \
	X(counters, "counters", .map = "counters") \
	X(events, "events", .map = "events") \
	X(samples, "samples", .map = "samples") \
	X(captured, "captured", .map = "captured") \
	X(logs, "logs", .map = "logs") \
	X(loghead, "loghead", .map = "loghead") \
	X(hosts4, "hosts4", .map = "hosts4", .size = SIZE_SHARDS4) \
	X(hosts6, "hosts6", .map = "hosts6", .size = SIZE_SHARDS6) \
	X(times4, "times4", .map = "times4") \
	X(times6, "times6", .map = "times6") \
	X(near, "near", .map = ".data.near") \
	X(nets4, "nets4", .map = "nets4", .size = SIZE_NETS) \
	X(nets6, "nets6", .map = "nets6", .size = SIZE_NETS) \
	X(out4, "out4", .map = "out4", .type = BPF_MAP_TYPE_LPM_TRIE, .flags = BPF_F_NO_PREALLOC, \
	  .key_size = sizeof(struct overlay_net4_key), .value_size = sizeof(struct overlay_net)) \
	X(out6, "out6", .map = "out6", .type = BPF_MAP_TYPE_LPM_TRIE, .flags = BPF_F_NO_PREALLOC, \
	  .key_size = sizeof(struct overlay_net6_key), .value_size = sizeof(struct overlay_net)) \
	X(rulecounters, "rulecounters", .map = "rulecounters") \
	X(meters, "meters", .map = "meters") \
	X(logpace, "logpace", .map = "logpace") \
	X(budgets, "budgets", .map = "budgets") \
	X(own, "own", .map = "own") \
	X(pathvotes, "pathvotes", .map = "pathvotes") \
	X(stations, "stations", .map = "stations") \
	X(routed, "routed", .map = "routed") \
	X(answers, "answers", .map = "answers") \
	X(identities, "identities", .type = BPF_MAP_TYPE_HASH, .key_size = sizeof(struct identity_key), \
	  .value_size = sizeof(uint32_t), .max_entries = WEIR_RULE_COUNTERS) \
	X(nat, "nat", .map = "nat_table") \
	X(nat4, "nat4", .map = "nat4") \
	X(nat6, "nat6", .map = "nat6") \
	X(clock_prog, "clock")
/* clang-format on */

struct instance {
	char name[WEIR_NAME_MAX];
	char *folder; // /sys/fs/bpf/weir/NAME
	struct meta meta;
	struct knobs *knobs; // mapped, shared with the programs
#define X(member, ...) int member;
	INSTANCE_OBJECTS(X) // descriptors
#undef X
	uint32_t progs_id; // map id: root programs of the instance are recognised by it
};

// Opens an instance. -ENOENT with err set (ERR_INPUT) when it does not exist, ERR_REFUSED when its
// layout version is another one or it belongs to another network namespace; both name a command
// that helps. 0 or -errno.
int instance_open(const char *name, struct instance **ret, struct err *err);

// The inode of its network namespace. 0 or -errno; err may be NULL.
int instance_home(const char *name, __u64 *ret_inode, struct err *err);

void instance_free(struct instance *i);
#define CLEANUP_INSTANCE CLEANUP(instance_cleanup)
void instance_cleanup(struct instance **i);

// For instance_create: one without maps; the maps that the loaded object of the first generation
// has made, and the others; the knobs; then all objects in a folder of bpffs.
struct instance *instance_new(const char *name);
int instance_size_maps(struct instance *i, const struct bpf_object *obj, struct err *err);
int instance_take_maps(struct instance *i, const struct bpf_object *obj, struct err *err);
int instance_make_maps(struct instance *i, struct err *err);
int instance_map_knobs(struct instance *i, struct err *err);
int instance_pin(const struct instance *i, const char *folder, struct err *err);
// Cookie and inode of the present network namespace. 0 or -errno with err set.
int instance_netns(__u64 *ret_cookie, __u64 *ret_inode, struct err *err);

// An object that is not loaded yet uses the maps of the instance in place of its own. 0 or -errno.
int instance_share_maps(const struct instance *i, const struct bpf_object *obj);

// One reading of the clocks.
int instance_clock(const struct instance *i, struct clock *ret, struct err *err);

// Elements of the interface table, 1 … WEIR_IFACES - 1, as they were written. instance_iface() in
// device.h has the present name of the device. 0 or -errno with err set.
int instance_iface_stored(const struct instance *i, uint32_t number, struct iface *ret,
			  struct err *err);
// All elements in one call; element 0 is not used.
int instance_ifaces_stored(const struct instance *i, struct iface ret[WEIR_IFACES],
			   struct err *err);
int instance_set_iface(const struct instance *i, uint32_t number, const struct iface *iface,
		       struct err *err);
// Are there interfaces that are not free, or that cannot be read?
bool instance_has_ifaces(const struct instance *i);
// The same; 0, or -errno with err set if that cannot be read.
int instance_find_any_iface(const struct instance *i, bool *ret, struct err *err);
