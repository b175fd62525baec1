// SPDX-License-Identifier: GPL-2.0-only
// Generations in bpffs: pinned, opened, changed.
#include "ctl/datapath/generation.h"

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/parts.h"

struct generation *generation_new(void)
{
	struct generation *g = mem_new(struct generation);

	for (int p = 0; p < PARTS; p++)
		g->fd[p] = -1;
	for (int m = 0; m < NAT_MAPS; m++)
		g->nat[m] = -1;
	return g;
}

void generation_free(struct generation *g)
{
	if (!g)
		return;
	for (int p = 0; p < PARTS; p++)
		fd_close(g->fd[p]);
	for (int m = 0; m < NAT_MAPS; m++)
		fd_close(g->nat[m]);
	parts_keeps_free(&g->sets);
	parts_keeps_free(&g->pins);
	parts_keeps_free(&g->rates);
	free(g);
}

void generation_cleanup(struct generation **g)
{
	generation_free(*g);
}

int generation_program(const struct generation *g)
{
	return g->fd[PART_PROGRAM];
}

void generation_own_nat(const struct generation *g, struct instance *ret)
{
	ret->nat = g->nat[NAT_TABLE];
	ret->nat4 = g->nat[NAT_BLOCKS4];
	ret->nat6 = g->nat[NAT_BLOCKS6];
}

int generation_program_of(const struct generation *g, enum generation_program program)
{
	int general = g->fd[PART_GENERAL], answers = g->fd[PART_NAT_ANSWER];
	bool begins_with_answers = g->fd[PART_NAT] >= 0 && answers < 0;

	switch (program) {
	case GENERATION_SHORT:
		return general >= 0 && !begins_with_answers ? g->fd[PART_PROGRAM] : -1;
	case GENERATION_GENERAL:
		return general >= 0 ? general : g->fd[PART_PROGRAM];
	case GENERATION_BALANCE:
		return g->fd[PART_LB_PROGRAM];
	case GENERATION_NAT_ANSWER:
		return begins_with_answers ? g->fd[PART_PROGRAM] : answers;
	case GENERATION_NAT:
		return g->fd[PART_NAT];
	case GENERATION_NAT_ANY:
		return g->fd[PART_NAT_ANY];
	case GENERATION_NAT_ANSWER_ANY:
		return g->fd[PART_NAT_ANSWER_ANY];
	default:
		return -1;
	}
}

// ---- in bpffs -----------------------------------------------------------------------------------

static int pin_all(const char *folder, const struct generation *g,
		   const struct generation_about *about, struct err *err)
{
	int code;

	for (int p = 0; p < PARTS; p++) {
		code = g->fd[p] < 0 ? 0 : bpffs_put(folder, part_name((enum part)p), g->fd[p], err);
		if (code)
			return code;
	}
	if ((code = parts_pin(folder, SETS_FOLDER, &g->sets, err)) ||
	    (code = parts_pin(folder, LB_PINS_FOLDER, &g->pins, err)) ||
	    (code = parts_pin(folder, RATES_FOLDER, &g->rates, err)))
		return code;
	return generation_about_pin(folder, about, err);
}

int generation_pin(const char *instance_folder, struct generation *g, uint32_t number,
		   const struct generation_about *about, struct err *err)
{
	CLEANUP_FREE char *folder = generation_folder(instance_folder, number);
	int code = file_remove_tree(folder, err);

	if (code)
		return code;
	if ((code = file_mkdirs(folder, 0700, err)) || (code = pin_all(folder, g, about, err)))
		file_remove_tree(folder, NULL);
	return code;
}

void generation_unpin(const char *instance_folder, uint32_t number)
{
	CLEANUP_FREE char *folder = generation_folder(instance_folder, number);

	file_remove_tree(folder, NULL);
}

int generation_open(const struct instance *i, uint32_t number, struct generation **ret,
		    struct err *err)
{
	CLEANUP_GENERATION struct generation *g = generation_new();
	CLEANUP_FREE char *folder = generation_folder(i->folder, number);

	for (int p = 0; p < PARTS; p++) {
		int code = bpffs_get(folder, part_name((enum part)p), &g->fd[p], err);

		if (code == -ENOENT && p >= PARTS_NEEDED)
			continue;
		if (code == -ENOENT)
			return err_stated(err, ENOENT, "'%s' of generation %u is not in bpffs",
					  part_name((enum part)p), number);
		if (code)
			return code;
	}
	*ret = TAKE_PTR(g);
	return 0;
}

// ---- all generations ----------------------------------------------------------------------------

int generation_list(const struct instance *i, struct generation_numbers *ret, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/gen", i->folder);
	struct dirent *file;
	uint32_t number;
	DIR *dir;

	if (!i->name[0]) // a private instance has no pins
		return 0;
	dir = opendir(folder);
	if (!dir)
		return err_system(err, errno, "cannot read '%s'", folder);
	while ((file = readdir(dir)))
		if (!num_parse_u32(file->d_name, strlen(file->d_name), 1, UINT32_MAX, &number))
			vec_push(ret, number);
	closedir(dir);
	return 0;
}

void generation_numbers_free(struct generation_numbers *numbers)
{
	vec_free(numbers);
}

static int mark_counters(int rules, uint8_t used[WEIR_RULE_COUNTERS], struct err *err)
{
	CLEANUP_FREE struct policy_rule *all = NULL;
	uint32_t n;
	int code = mapping_entries(rules, &n, err);

	if (code)
		return code;
	all = mem_zalloc(n, sizeof(*all));
	if ((code = percpu_read(rules, 0, n, all)))
		return err_system(err, -code, "cannot read the rules of a generation");
	for (uint32_t r = 0; r < n; r++)
		if (all[r].counter < WEIR_RULE_COUNTERS)
			used[all[r].counter] = 1;
	return 0;
}

int generation_counters(const struct instance *i, uint8_t ret_used[WEIR_RULE_COUNTERS],
			struct err *err)
{
	CLEANUP_NUMBERS struct generation_numbers numbers = {0};
	int code = generation_list(i, &numbers, err);

	if (code)
		return code;
	vec_each (&numbers, number) {
		CLEANUP_FREE char *folder = generation_folder(i->folder, *number);
		CLEANUP_FD int rules = -1;

		code = bpffs_get(folder, part_name(PART_RULES), &rules, err);
		if (code ==
		    -ENOENT) // a killed command pinned only a part: it is in no program array
			continue;
		if (code || (code = mark_counters(rules, ret_used, err)))
			return code;
	}
	return 0;
}

int generation_set_iface(const struct generation *g, uint32_t number, uint8_t class,
			 struct err *err)
{
	struct policy_ifclass classes;
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(g->fd[PART_IFCLASS], &zero, &classes))
		return err_system(err, errno, "cannot read the policy's interfaces");
	classes.class[iface_index(number)] = class;
	if (bpf_map_update_elem(g->fd[PART_IFCLASS], &zero, &classes, BPF_ANY))
		return err_system(err, errno, "cannot write the policy's interfaces");
	return 0;
}

int generation_reach(const struct generation *g, uint32_t ifindex, struct err *err)
{
	return g->fd[PART_NAT] < 0 ? 0 : parts_add_device(g, ifindex, err);
}

static int introduce_to(const struct instance *i, uint32_t generation, uint32_t number,
			const char *device, struct err *err)
{
	CLEANUP_GENERATION struct generation *g = NULL;
	struct generation_about about;
	int code = generation_read_about(i, generation, &about, err);

	if (code || (code = generation_open(i, generation, &g, err)))
		return code;
	code = generation_set_iface(g, number, generation_class(&about, device), err);
	return code ? code : generation_reach(g, if_nametoindex(device), err);
}

int generation_introduce(const struct instance *i, uint32_t number, const char *device,
			 struct err *err)
{
	CLEANUP_NUMBERS struct generation_numbers numbers = {0};
	int code = generation_list(i, &numbers, err);

	if (code)
		return code;
	vec_each (&numbers, generation)
		if ((code = introduce_to(i, *generation, number, device, err)))
			return code;
	return 0;
}
