// SPDX-License-Identifier: GPL-2.0-only
// The switch: progs[], the deadline, and the removal of generations that are not in use.
#include "ctl/datapath/commit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/trace.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/maps.h"

// The ID of a generation's program; 0: a killed command has pinned only a part. A failure is
// returned, so that the generation is not mistaken for one that is not in use.
static int program_of(const struct instance *i, uint32_t number, uint32_t *ret, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/gen/%u", i->folder, number);
	CLEANUP_FD int fd = -1;
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int code = bpffs_get(folder, "program", &fd, err);

	if (code && code != -ENOENT)
		return code;
	if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size))
		return err_system(err, errno, "cannot read the program of generation %u", number);
	*ret = info.id;
	return 0;
}

static const char *which_name(enum weir_prog which)
{
	return which == PROG_ACTIVE ? "active" : "previous";
}

// The id of the active or previous program; 0: there is no program.
static int program_at(const struct instance *i, enum weir_prog which, uint32_t *ret,
		      struct err *err)
{
	uint32_t index = which;

	*ret = 0;
	if (bpf_map_lookup_elem(i->progs, &index, ret) && errno != ENOENT)
		return err_system(err, errno, "cannot read the %s program of instance '%s'",
				  which_name(which), i->name);
	return 0;
}

static int find_programs(const struct instance *i, const struct generation_numbers *numbers,
			 struct commit_state *state, uint32_t ret_ids[2], struct err *err)
{
	uint32_t id = 0;
	int code = program_at(i, PROG_ACTIVE, &ret_ids[PROG_ACTIVE], err);

	if (code || (code = program_at(i, PROG_PREVIOUS, &ret_ids[PROG_PREVIOUS], err)))
		return code;
	vec_each (numbers, number) {
		if ((code = program_of(i, *number, &id, err)))
			return code;
		if (id && id == ret_ids[PROG_ACTIVE])
			state->active = *number;
		if (id && id == ret_ids[PROG_PREVIOUS])
			state->previous = *number;
	}
	return 0;
}

bool commit_tries_interfaces(const struct commit_state *state)
{
	return state->deadline && state->active == state->previous;
}

int commit_read(const struct instance *i, struct commit_state *ret, struct err *err)
{
	struct commit_state state = {.deadline = i->knobs->deadline, .brought = i->knobs->brought};
	CLEANUP_NUMBERS struct generation_numbers numbers = {0};
	uint32_t ids[] = {[PROG_ACTIVE] = 0, [PROG_PREVIOUS] = 0};
	struct clock now;
	int code = generation_list(i, &numbers, err);

	if (code || (code = instance_clock(i, &now, err)) ||
	    (code = find_programs(i, &numbers, &state, ids, err)))
		return code;
	// A trial of interfaces also ends when all these interfaces are detached.
	state.expired = state.deadline && (now.jiffies > state.deadline ||
					   (commit_tries_interfaces(&state) && !state.brought));
	state.in_force = state.expired ? state.previous : state.active;
	state.program = ids[state.expired ? PROG_PREVIOUS : PROG_ACTIVE];
	*ret = state;
	return 0;
}

int commit_in_force(const struct instance *i, struct commit_state *ret, uint32_t *ret_number,
		    struct err *err)
{
	struct commit_state state;
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	if (!state.in_force)
		return err_stated(err, ENOENT,
				  "the active policy of instance '%s' is no longer in bpffs",
				  i->name);
	*ret = state;
	*ret_number = state.in_force;
	return 0;
}

int commit_next_number(const struct instance *i, uint32_t *ret, struct err *err)
{
	CLEANUP_NUMBERS struct generation_numbers numbers = {0};
	uint32_t highest = 0;
	int code = generation_list(i, &numbers, err);

	if (code)
		return code;
	vec_each (&numbers, number)
		highest = *number > highest ? *number : highest;
	*ret = highest + 1;
	return 0;
}

static int write_program(const struct instance *i, enum weir_prog which, int program,
			 struct err *err)
{
	uint32_t index = which;

	if (bpf_map_update_elem(i->progs, &index, &program, BPF_ANY))
		return err_system(err, errno, "cannot switch the policy of instance '%s'", i->name);
	return 0;
}

static int copy_program(const struct instance *i, enum weir_prog from, enum weir_prog to,
			struct err *err)
{
	CLEANUP_FD int fd = -1;
	uint32_t id;
	int code = program_at(i, from, &id, err);

	if (code)
		return code;
	fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0)
		return err_system(err, -fd, "cannot open the %s program of instance '%s'",
				  which_name(from), i->name);
	return write_program(i, to, fd, err);
}

static void set_deadline(const struct instance *i, uint64_t jiffies)
{
	__atomic_store_n(&i->knobs->deadline, jiffies, __ATOMIC_SEQ_CST);
}

static void set_brought(const struct instance *i, uint64_t bits)
{
	__atomic_store_n(&i->knobs->brought, bits, __ATOMIC_SEQ_CST);
}

void commit_bring(const struct instance *i, uint32_t number)
{
	set_brought(i, i->knobs->brought | iface_bit(number));
}

void commit_unbring(const struct instance *i, uint32_t number)
{
	set_brought(i, i->knobs->brought & ~iface_bit(number));
}

// Afterwards active and previous are both the running policy, and no interface is on trial.
static int begin_switch(const struct instance *i, struct clock *ret_now, struct err *err)
{
	int code = instance_clock(i, ret_now, err);

	if (code || (code = copy_program(i, PROG_ACTIVE, PROG_PREVIOUS, err)))
		return code;
	set_brought(i, 0);
	return 0;
}

int commit_try_interfaces(const struct instance *i, uint64_t trial_ms, struct err *err)
{
	struct clock now;
	int code = begin_switch(i, &now, err);

	if (code)
		return code;
	set_deadline(i, clock_after_ms(&now, trial_ms));
	return 0;
}

int commit_switch(const struct instance *i, const struct generation *g, uint64_t trial_ms,
		  struct err *err)
{
	struct clock now;
	int code = begin_switch(i, &now, err);

	if (code)
		return code;
	// Active and previous are the same program here, so the deadline has no effect before the
	// switch.
	set_deadline(i, trial_ms ? clock_after_ms(&now, trial_ms) : 0);
	code = write_program(i, PROG_ACTIVE, generation_program(g), err);
	if (code)
		set_deadline(i, 0);
	trace(switch, i->name, trial_ms, code);
	return code;
}

int commit_confirm(const struct instance *i, struct err *err)
{
	uint64_t deadline = i->knobs->deadline;
	struct clock now;
	int code = instance_clock(i, &now, err);

	if (code)
		return code;
	if (!deadline)
		return err_refused(err, "no trial is running");
	set_deadline(i, 0);
	// The trial may have expired before the store: then packets have met the previous policy.
	code = instance_clock(i, &now, err);
	if (code || now.jiffies > deadline) {
		set_deadline(i, deadline);
		return code ? code
			    : err_refused(err,
					  "the trial has expired: the previous policy is active");
	}
	set_brought(i, 0);
	return 0;
}

int commit_back(const struct instance *i, struct err *err)
{
	int code = copy_program(i, PROG_PREVIOUS, PROG_ACTIVE, err);

	if (code)
		return code;
	set_deadline(i, 0);
	set_brought(i, 0);
	return 0;
}

static bool is_used(const struct commit_state *state, uint32_t number)
{
	return number == state->active || number == state->previous;
}

// The kernel empties the program array of a generation when its pin goes, and a packet that has met
// the first program may still need the next one: so the pins go after a grace period.
static void remove_unused(const struct instance *i, const struct commit_state *state)
{
	CLEANUP_NUMBERS struct generation_numbers numbers = {0};
	size_t unused = 0;

	if (!state->active || !state->previous || generation_list(i, &numbers, NULL))
		return;
	vec_each (&numbers, number)
		unused += !is_used(state, *number);
	if (!unused || grace_wait(NULL))
		return;
	vec_each (&numbers, number)
		if (!is_used(state, *number))
			generation_unpin(i->folder, *number);
}

int commit_recover(const struct instance *i, bool *ret_reverted, struct err *err)
{
	struct commit_state state;
	bool reverted;
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	reverted = state.expired;
	if (reverted && ((code = commit_back(i, err)) || (code = commit_read(i, &state, err))))
		return code;
	remove_unused(i, &state);
	if (ret_reverted)
		*ret_reverted = reverted;
	return 0;
}
