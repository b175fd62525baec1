// SPDX-License-Identifier: GPL-2.0-only
// The parts of a generation: descriptors of its programs and maps, each pinned under its name.
//
// For the files of ctl/datapath that load, fill and read generations.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/overlay.h"
#include "common/policy.h"
#include "ctl/base/err.h"
#include "ctl/datapath/instance.h"
#include "xdp/policy.skel.h"

// The maps of the policy program that belong to a generation: X(SYMBOL, its name in xdp/ and in
// bpffs). The test program has its own first and last one, and shares the others.
/* clang-format off */
#define PART_MAPS(X) \
	X(RODATA, rodata) \
	X(TABLES, tables) \
	X(RULES, rules) \
	X(BUCKETS, buckets) \
	X(IFCLASS, ifclass) \
	X(SETS, sets) \
	X(DEVICES, devices) \
	X(SERVICES, services) \
	X(RINGS, rings) \
	X(BACKENDS, backends) \
	X(BACKEND_COUNTERS, balanced) \
	X(PINS, pins) \
	X(TUNNELS, tunnels) \
	X(EGRESS, egress) \
	X(NAT_USES, nat_uses) \
	X(STAGES, stages) \
	X(CONNECTIONS, connections)

// Programs, and maps that only commands use: X(SYMBOL, "name in bpffs"). All after the first two
// exist only in some generations: `general` if the first program is another one, `accepted`,
// `released` and `found` with rules for numbers of connections, `nat` with services in nat or
// fullnat, and then `nat-answer` too, unless it is the first program; the others with services.
#define PART_OTHERS(X) \
	X(PROGRAM, "program") /* that root jumps to */ \
	X(MARKERS, "markers") /* the values of ctl/datapath/markers.h */ \
	X(GENERAL, "general") \
	X(LB_PROGRAM, "balance") \
	X(NAT_ANSWER, "nat-answer") \
	X(NAT, "nat") \
	X(NAT_ANY, "nat-any") \
	X(NAT_ANSWER_ANY, "nat-answer-any") \
	X(ACCEPTED, "accepted") /* links of ctl/datapath/connections.h */ \
	X(RELEASED, "released") \
	X(FOUND, "found") \
	X(KEPT_NAT, "kept-nat")           /* struct nat_wish, with services in nat or fullnat */ \
	X(KEPT_SERVICES, "kept-services") /* struct lb_service */ \
	X(KEPT_MEMBERS, "kept-members")   /* struct lb_member */
/* clang-format on */

enum part {
#define X(symbol, name) PART_##symbol,
	PART_MAPS(X) PART_OTHERS(X)
#undef X
		PARTS,
	PARTS_NEEDED = PART_MARKERS + 1,
};

// A map that outlives the generation if the next one names it too: a dynamic set, the pins of a
// service, the table of a rate.
struct part_kept {
	char *name;
	int fd;
};

struct part_keeps {
	struct part_kept *at;
	size_t n, cap;
};

enum nat_map { NAT_TABLE, NAT_BLOCKS4, NAT_BLOCKS6, NAT_MAPS };

struct generation {
	int fd[PARTS];
	// The table of connections and its blocks, if there is no instance. -1: the instance has
	// them, or no service needs them.
	int nat[NAT_MAPS];
	// Parts of a generation that was loaded here; empty if it was opened.
	struct part_keeps sets, pins, rates;
};

// Folders of a generation with one file for each: its dynamic sets, the tables of its rates, the
// pins of its services.
#define SETS_FOLDER    "dynamic"
#define RATES_FOLDER   "rates"
#define LB_PINS_FOLDER "flows"

const char *part_name(enum part part);
// NULL if the part is not a map of the program.
struct bpf_map *part_map(const struct policy_bpf *skel, enum part part);
// INSTANCE_FOLDER/gen/NUMBER; the caller frees it.
char *generation_folder(const char *instance_folder, uint32_t number);
// The list owns the descriptor afterwards.
void parts_keep(struct part_keeps *list, const char *name, int fd);
void parts_keeps_free(struct part_keeps *list);
// Pins the maps of a list in GENERATION_FOLDER/KIND/.
int parts_pin(const char *generation_folder, const char *kind, const struct part_keeps *list,
	      struct err *err);
// Sets attach type and fragment support of the programs as the program array of the instance
// requires them.
void parts_fit(const struct policy_bpf *skel, const struct instance *i);
// The programs to load besides the general one.
struct parts_wanted {
	bool has_short;
	bool balances;
	// With programs of nat and fullnat. A policy on trial without services sends answers too.
	bool translates;
};
void parts_choose(const struct policy_bpf *skel, struct parts_wanted wanted);
bool parts_is_short(const struct policy_bpf *skel, const struct bpf_program *program);
// The short program. With services it is another one, of which a policy without them need not know.
struct bpf_program *parts_short(const struct policy_bpf *skel);
// The program that packets meet first: the short one if it is loaded, else weir_nat_answer if that
// is.
int parts_first_program(const struct policy_bpf *skel);
// After the load: makes the programs reach each other. 0 or -errno.
int parts_link(const struct policy_bpf *skel);
// The read-only data of its programs, of *ret_size bytes: after the struct, the map has constants
// of the compiler. The caller frees it. NULL with errno set.
struct policy_bpf__rodata *parts_rodata(const struct generation *g, size_t *ret_size);
// Redirected frames may leave by the device. It is not an error if the device no longer exists.
int parts_add_device(const struct generation *g, uint32_t ifindex, struct err *err);
