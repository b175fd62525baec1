// SPDX-License-Identifier: GPL-2.0-only
// The parts of a generation: descriptors of its programs and maps, each pinned under its name.
//
// For the files of ctl/datapath that load, fill and read generations.
#pragma once

#include <stdint.h>

#include "common/policy.h"
#include "ctl/base/err.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/instance.h"
#include "xdp/policy.skel.h"

enum part {
	PART_RODATA,
	PART_FIELDS,
	PART_NODES,
	PART_LINES,
	PART_ROWS,
	PART_RULES,
	PART_METERS,
	PART_BUCKETS,
	PART_LOGPACE,
	PART_BUDGETS,
	PART_IFCLASS,
	PART_SETS,
	PART_DEVICES,
	PART_SERVICES,
	PART_RINGS,
	PART_BACKENDS,
	PART_BALANCED,
	PART_PINS,
	PART_TUNNELS,
	PART_EGRESS,
	PART_STAGES,
	PART_PROGRAM,
	PARTS_NEEDED, // the others are only there with services
	PART_BALANCE = PARTS_NEEDED,
	PART_KEPT_SERVICES, // struct lb_service
	PART_KEPT_MEMBERS,  // struct lb_member
	PARTS,
};

// A map that lives on in the next generation that names it: a dynamic set, the pins of a service.
struct part_kept {
	char *name;
	int fd;
};

struct part_keeps {
	struct part_kept *at;
	size_t n, cap;
};

struct generation {
	int fd[PARTS];
	struct part_keeps sets,
		pins; // of one that was loaded here; one opened from its pins has none
};

const char *part_name(enum part part);
// NULL for what is no map of the program.
struct bpf_map *part_map(const struct policy_bpf *skel, enum part part);
struct generation *generation_new(void);
// INSTANCE_FOLDER/gen/NUMBER; the caller frees it.
char *generation_folder(const char *instance_folder, uint32_t number);
void parts_keep(struct part_keeps *list, const char *name, int fd);
// Pins the maps of a list in GENERATION_FOLDER/KIND/.
int parts_pin(const char *generation_folder, const char *kind, const struct part_keeps *list,
	      struct err *err);
// Uses the maps of the instance in place of the program's own.
int parts_share(struct policy_bpf *skel, const struct instance *i);
// Type, fragment support and attach type, as the instance's progs array requires.
void parts_fit(const struct policy_bpf *skel, const struct instance *i);
// Allows redirects to a device; one that no longer exists is skipped without an error.
int parts_add_device(const struct generation *g, uint32_t ifindex, struct err *err);
