// SPDX-License-Identifier: GPL-2.0-only
// The parts of a generation by name, and what a policy and its test program have in common.
#include "ctl/datapath/parts.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/sharing.h"

static const char *const names[PARTS] = {
	[PART_RODATA] = "rodata",
	[PART_FIELDS] = "fields",
	[PART_NODES] = "nodes",
	[PART_LINES] = "lines",
	[PART_ROWS] = "rows",
	[PART_RULES] = "rules",
	[PART_METERS] = "meters",
	[PART_BUCKETS] = "buckets",
	[PART_LOGPACE] = "logpace",
	[PART_BUDGETS] = "budgets",
	[PART_IFCLASS] = "ifclass",
	[PART_SETS] = "sets",
	[PART_DEVICES] = "devices",
	[PART_SERVICES] = "services",
	[PART_RINGS] = "rings",
	[PART_BACKENDS] = "backends",
	[PART_BALANCED] = "balanced",
	[PART_PINS] = "pins",
	[PART_TUNNELS] = "tunnels",
	[PART_EGRESS] = "egress",
	[PART_STAGES] = "stages",
	[PART_PROGRAM] = "program",
	[PART_BALANCE] = "balance",
	[PART_KEPT_SERVICES] = "kept-services",
	[PART_KEPT_MEMBERS] = "kept-members",
};

const char *part_name(enum part part)
{
	return names[part];
}

struct bpf_map *part_map(const struct policy_bpf *skel, enum part part)
{
	struct bpf_map *const maps[PARTS] = {
		[PART_RODATA] = skel->maps.rodata,     [PART_FIELDS] = skel->maps.fields,
		[PART_NODES] = skel->maps.nodes,       [PART_LINES] = skel->maps.lines,
		[PART_ROWS] = skel->maps.rows,         [PART_RULES] = skel->maps.rules,
		[PART_METERS] = skel->maps.meters,     [PART_BUCKETS] = skel->maps.buckets,
		[PART_LOGPACE] = skel->maps.logpace,   [PART_IFCLASS] = skel->maps.ifclass,
		[PART_SETS] = skel->maps.sets,         [PART_DEVICES] = skel->maps.devices,
		[PART_SERVICES] = skel->maps.services, [PART_RINGS] = skel->maps.rings,
		[PART_BACKENDS] = skel->maps.backends, [PART_BALANCED] = skel->maps.balanced,
		[PART_PINS] = skel->maps.pins,         [PART_EGRESS] = skel->maps.egress,
		[PART_STAGES] = skel->maps.stages,     [PART_BUDGETS] = skel->maps.budgets,
		[PART_TUNNELS] = skel->maps.tunnels,
	};

	return maps[part];
}

struct generation *generation_new(void)
{
	struct generation *g = mem_new(struct generation);

	for (int p = 0; p < PARTS; p++)
		g->fd[p] = -1;
	return g;
}

static void keeps_free(struct part_keeps *list)
{
	vec_each (list, kept) {
		fd_close(kept->fd);
		free(kept->name);
	}
	vec_free(list);
}

void generation_free(struct generation *g)
{
	if (!g)
		return;
	for (int p = 0; p < PARTS; p++)
		fd_close(g->fd[p]);
	keeps_free(&g->sets);
	keeps_free(&g->pins);
	free(g);
}

void generation_cleanup(struct generation **g)
{
	generation_free(*g);
}

char *generation_folder(const char *instance_folder, uint32_t number)
{
	return mem_printf("%s/gen/%u", instance_folder, number);
}

void parts_keep(struct part_keeps *list, const char *name, int fd)
{
	vec_push(list, ((struct part_kept){mem_strdup(name), fd}));
}

int parts_pin(const char *generation_folder, const char *kind, const struct part_keeps *list,
	      struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", generation_folder, kind);
	int code = list->n ? file_mkdirs(folder, 0700, err) : 0;

	for (size_t n = 0; !code && n < list->n; n++)
		code = bpffs_put(folder, list->at[n].name, list->at[n].fd, err);
	return code;
}

// By their place in both structures.
int parts_share(struct policy_bpf *skel, const struct instance *i)
{
	const struct {
		struct bpf_map *map;
		int fd;
	} shared[] = {
		{skel->maps.data_knobs, i->knobs_fd},
		{skel->maps.progs, i->progs},
		{skel->maps.counters, i->counters},
		{skel->maps.events, i->events},
		{skel->maps.hosts4, i->hosts4},
		{skel->maps.hosts6, i->hosts6},
		{skel->maps.nets4, i->nets4},
		{skel->maps.nets6, i->nets6},
		{skel->maps.rulecounters, i->rulecounters},
		{skel->maps.stations, i->stations},
	};
	int code = 0;

	for (size_t m = 0; !code && m < ARRAY_SIZE(shared); m++)
		code = bpf_map__reuse_fd(shared[m].map, shared[m].fd);
	return code;
}

// A program array accepts only programs of one type, fragment support and expected attach type; under
// libxdp's dispatcher entry is an extension, whose expected attach type is 0, so all have that.
void parts_fit(const struct policy_bpf *skel, const struct instance *i)
{
	struct bpf_program *const programs[] = {skel->progs.weir_policy, skel->progs.weir_balance};

	for (size_t p = 0; p < ARRAY_SIZE(programs); p++) {
		bpf_program__set_expected_attach_type(programs[p], 0);
		bpf_program__set_flags(programs[p], sharing_flags(i));
	}
}

int parts_add_device(const struct generation *g, uint32_t ifindex, struct err *err)
{
	if (!bpf_map_update_elem(g->fd[PART_EGRESS], &ifindex, &ifindex, BPF_ANY) ||
	    errno == EINVAL) // the kernel's word for a device that is not there
		return 0;
	return err_system(err, errno, "cannot send to backends by interface %u", ifindex);
}
