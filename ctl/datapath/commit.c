// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes progs[] and the deadline, and removes generations that are not in use.
#include "ctl/datapath/commit.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/bpffs.h"

struct numbers {
	uint32_t *at;
	size_t n, cap;
};

static int list_numbers(const struct instance *i, struct numbers *ret, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/gen", i->folder);
	DIR *dir = opendir(folder);
	struct dirent *file;
	uint32_t number;

	if (!dir)
		return err_system(err, errno, "cannot read '%s'", folder);
	while ((file = readdir(dir)))
		if (!num_parse_u32(file->d_name, strlen(file->d_name), 1, UINT32_MAX, &number))
			vec_push(ret, number);
	closedir(dir);
	return 0;
}

// The id of a generation's program; 0: it is half pinned, by a killed command. A failure must not make it
// look like another one.
static int program_of(const struct instance *i, uint32_t number, uint32_t *ret, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/gen/%u", i->folder, number);
	CLEANUP_FD int fd = -1;
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int code = bpffs_get(folder, "program", &fd, err);

	if (code && code != -ENOENT)
		return code;
	if (!code && bpf_obj_get_info_by_fd(fd, &info, &size))
		return err_system(err, errno, "cannot look at the program of generation %u",
				  number);
	*ret = info.id;
	return 0;
}

// The id of a program; 0: the element is empty.
static int program_at(const struct instance *i, uint32_t which, uint32_t *ret, struct err *err)
{
	*ret = 0;
	if (bpf_map_lookup_elem(i->progs, &which, ret) && errno != ENOENT)
		return err_system(err, errno, "cannot read policy program %u", which);
	return 0;
}

static int find_programs(const struct instance *i, const struct numbers *numbers,
			 struct commit_state *state, struct err *err)
{
	uint32_t active, previous = 0, id = 0;
	int code = program_at(i, PROG_ACTIVE, &active, err);

	if (!code)
		code = program_at(i, PROG_PREVIOUS, &previous, err);
	for (size_t n = 0; !code && n < numbers->n; n++) {
		code = program_of(i, numbers->at[n], &id, err);
		if (!code && id && id == active)
			state->active = numbers->at[n];
		if (!code && id && id == previous)
			state->previous = numbers->at[n];
	}
	return code;
}

bool commit_tries_interfaces(const struct commit_state *state)
{
	return state->deadline && state->active == state->previous;
}

int commit_read(const struct instance *i, struct commit_state *ret, struct err *err)
{
	struct commit_state state = {.deadline = i->knobs->deadline, .brought = i->knobs->brought};
	struct numbers numbers = {0};
	struct clock now;
	int code = list_numbers(i, &numbers, err);

	if (!code)
		code = instance_clock(i, &now, err);
	if (!code)
		code = find_programs(i, &numbers, &state, err);
	vec_free(&numbers);
	if (code)
		return code;
	// A trial of interfaces that are all detached again has nothing left to try.
	state.expired = state.deadline && (now.jiffies > state.deadline ||
					   (commit_tries_interfaces(&state) && !state.brought));
	state.in_force = state.expired ? state.previous : state.active;
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
		return err_system(err, ENOENT,
				  "the policy in force has lost its pins, in instance '%s'",
				  i->name);
	*ret = state;
	*ret_number = state.in_force;
	return 0;
}

int commit_next_number(const struct instance *i, uint32_t *ret, struct err *err)
{
	struct numbers numbers = {0};
	uint32_t highest = 0;
	int code = list_numbers(i, &numbers, err);

	vec_each (&numbers, number)
		highest = *number > highest ? *number : highest;
	vec_free(&numbers);
	if (!code)
		*ret = highest + 1;
	return code;
}

static int write_program(const struct instance *i, uint32_t which, int program, struct err *err)
{
	if (bpf_map_update_elem(i->progs, &which, &program, BPF_ANY))
		return err_system(err, errno, "cannot switch the policy of instance '%s'", i->name);
	return 0;
}

static int copy_program(const struct instance *i, uint32_t from, uint32_t to, struct err *err)
{
	CLEANUP_FD int fd = -1;
	uint32_t id;
	int code = program_at(i, from, &id, err);

	if (code)
		return code;
	fd = bpf_prog_get_fd_by_id(id);
	if (fd < 0)
		return err_system(err, -fd, "cannot find the policy program %u", from);
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
	set_brought(i, i->knobs->brought | 1ull << (number & (WEIR_IFACES - 1)));
}

void commit_unbring(const struct instance *i, uint32_t number)
{
	set_brought(i, i->knobs->brought & ~(1ull << (number & (WEIR_IFACES - 1))));
}

// Afterwards active and previous are both the running policy, and no interface is on trial.
static int begin_switch(const struct instance *i, struct clock *ret_now, struct err *err)
{
	int code = instance_clock(i, ret_now, err);

	if (!code)
		code = copy_program(i, PROG_ACTIVE, PROG_PREVIOUS, err);
	if (!code)
		set_brought(i, 0);
	return code;
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
	// Active and previous are both the running policy here, so a deadline has no effect before the switch.
	set_deadline(i, trial_ms ? clock_after_ms(&now, trial_ms) : 0);
	code = write_program(i, PROG_ACTIVE, generation_program(g), err);
	if (code)
		set_deadline(i, 0);
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
		return err_refused(err, "there is no trial to confirm");
	set_deadline(i, 0);
	// It may have expired between the two: then packets have met the old policy.
	code = instance_clock(i, &now, err);
	if (!code && now.jiffies <= deadline) {
		set_brought(i, 0);
		return 0;
	}
	set_deadline(i, deadline);
	return code ? code : err_refused(err, "the trial has run out: the old policy is in force");
}

int commit_back(const struct instance *i, struct err *err)
{
	int code = copy_program(i, PROG_PREVIOUS, PROG_ACTIVE, err);

	if (!code) {
		set_deadline(i, 0);
		set_brought(i, 0);
	}
	return code;
}

static void remove_unused(const struct instance *i, const struct commit_state *state)
{
	struct numbers numbers = {0};

	if (state->active && state->previous && !list_numbers(i, &numbers, NULL))
		vec_each (&numbers, number)
			if (*number != state->active && *number != state->previous) {
				CLEANUP_FREE char *folder =
					mem_printf("%s/gen/%u", i->folder, *number);

				file_remove_tree(folder, NULL);
			}
	vec_free(&numbers);
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
