// SPDX-License-Identifier: GPL-2.0-only
// Reads the interfaces of a policy from the read-only data and the tables of its program.
#include "ctl/datapath/reach.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/parts.h"

static int read_parts(const struct generation *g, struct reach *ret, struct err *err)
{
	size_t size;
	CLEANUP_FREE struct policy_bpf__rodata *rodata = parts_rodata(g, &size);
	const struct policy_config *config = rodata ? &rodata->policy : NULL;
	uint32_t zero = 0;

	if (!rodata || bpf_map_lookup_elem(g->fd[PART_IFCLASS], &zero, &ret->classes))
		return err_system(err, errno, "cannot read which interfaces the policy applies to");
	ret->empty =
		!config->rules && !config->services && !config->default_drop && !config->fragments;
	ret->named = config->named;
	return 0;
}

int reach_read(const struct instance *i, uint32_t generation, struct reach *ret, struct err *err)
{
	CLEANUP_GENERATION struct generation *g = NULL;
	struct reach reach = {.generation = generation};
	int code = generation_open(i, generation, &g, err);

	if (code || (code = read_parts(g, &reach, err)))
		return code;
	*ret = reach;
	return 0;
}

static int read_now(const struct instance *i, struct reach *ret, struct err *err)
{
	struct commit_state state;
	uint32_t number;
	int code = commit_in_force(i, &state, &number, err);

	if (code || (code = reach_read(i, number, ret, err)))
		return code;
	if (state.expired)
		ret->over = state.brought;
	return 0;
}

int reach_in_force(const struct instance *i, struct reach *ret, struct err *err)
{
	int code = -ENOENT;

	// Without the lock, an apply may remove the generation in between.
	for (int tries = 0; code == -ENOENT && tries < 3; tries++) {
		err_clear(err);
		code = read_now(i, ret, err);
	}
	return code;
}

enum reach_what reach_what(const struct reach *r, uint32_t number)
{
	if (r->over & iface_bit(number))
		return REACH_NOTHING;
	if (r->empty || (r->named && !r->classes.class[iface_index(number)]))
		return REACH_ENTRIES;
	return REACH_POLICY;
}

bool reach_holds(const struct reach *r, uint32_t number)
{
	return reach_what(r, number) == REACH_POLICY;
}

bool reach_is_by_name(const struct reach *r, const struct generation_about *about, uint32_t number,
		      const char *device)
{
	return r->classes.class[iface_index(number)] == generation_class(about, device);
}
