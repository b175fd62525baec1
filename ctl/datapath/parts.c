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
#define X(symbol, name) [PART_##symbol] = #name,
	PART_MAPS(X)
#undef X
#define X(symbol, name) [PART_##symbol] = (name),
		PART_OTHERS(X)
#undef X
};

const char *part_name(enum part part)
{
	return names[part];
}

struct bpf_map *part_map(const struct policy_bpf *skel, enum part part)
{
	struct bpf_map *const maps[PARTS] = {
#define X(symbol, name) [PART_##symbol] = skel->maps.name,
		PART_MAPS(X)
#undef X
	};

	return maps[part];
}

void parts_keeps_free(struct part_keeps *list)
{
	vec_each (list, kept) {
		fd_close(kept->fd);
		free(kept->name);
	}
	vec_free(list);
}

char *generation_folder(const char *instance_folder, uint32_t number)
{
	return mem_printf("%s/gen/%u", instance_folder, number);
}

void parts_keep(struct part_keeps *list, const char *name, int fd)
{
	vec_push(list, ((struct part_kept){.name = mem_strdup(name), .fd = fd}));
}

int parts_pin(const char *generation_folder, const char *kind, const struct part_keeps *list,
	      struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", generation_folder, kind);
	int code = list->n ? file_mkdirs(folder, 0700, err) : 0;

	if (code)
		return code;
	vec_each (list, kept)
		if ((code = bpffs_put(folder, kept->name, kept->fd, err)))
			return code;
	return 0;
}

// A program array accepts only programs of one type, fragment support and expected attach type.
// Under libxdp's dispatcher the root program is an extension with expected attach type 0, so all
// programs have that.
void parts_fit(const struct policy_bpf *skel, const struct instance *i)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, skel->obj)
	{
		bpf_program__set_expected_attach_type(program, 0);
		bpf_program__set_flags(program, sharing_flags(i));
	}
}

struct bpf_program *parts_short(const struct policy_bpf *skel)
{
	if (bpf_program__autoload(skel->progs.weir_short))
		return skel->progs.weir_short;
	return bpf_program__autoload(skel->progs.weir_short_nat) ? skel->progs.weir_short_nat
								 : skel->progs.weir_short_balance;
}

bool parts_is_short(const struct policy_bpf *skel, const struct bpf_program *program)
{
	return program == skel->progs.weir_short || program == skel->progs.weir_short_balance ||
	       program == skel->progs.weir_short_nat;
}

void parts_choose(const struct policy_bpf *skel, struct parts_wanted wanted)
{
	bool balances = wanted.balances;

	bpf_program__set_autoload(skel->progs.weir_short,
				  wanted.has_short && !balances && !wanted.translates);
	bpf_program__set_autoload(skel->progs.weir_short_balance,
				  wanted.has_short && balances && !wanted.translates);
	bpf_program__set_autoload(skel->progs.weir_short_nat,
				  wanted.has_short && wanted.translates);
	bpf_program__set_autoload(skel->progs.weir_balance, balances);
	bpf_program__set_autoload(skel->progs.weir_nat_answer, wanted.translates);
	bpf_program__set_autoload(skel->progs.weir_nat, wanted.translates);
	bpf_program__set_autoload(skel->progs.weir_nat_any, wanted.translates);
	bpf_program__set_autoload(skel->progs.weir_nat_answer_any, wanted.translates);
}

int parts_first_program(const struct policy_bpf *skel)
{
	int fd = bpf_program__fd(parts_short(skel));

	if (fd < 0)
		fd = bpf_program__fd(skel->progs.weir_nat_answer);
	return fd >= 0 ? fd : bpf_program__fd(skel->progs.weir_policy);
}

int parts_link(const struct policy_bpf *skel)
{
	const int answers = bpf_program__fd(skel->progs.weir_nat_answer);
	const int general = bpf_program__fd(skel->progs.weir_policy);
	const int programs[STAGES] = {
		[STAGE_BALANCE] = bpf_program__fd(skel->progs.weir_balance),
		[STAGE_GENERAL] = answers >= 0 ? answers : general,
		[STAGE_POLICY] = general,
		[STAGE_NAT] = bpf_program__fd(skel->progs.weir_nat),
		[STAGE_NAT_ANY] = bpf_program__fd(skel->progs.weir_nat_any),
		[STAGE_NAT_ANSWER_ANY] = bpf_program__fd(skel->progs.weir_nat_answer_any),
	};

	for (uint32_t stage = 0; stage < STAGES; stage++)
		if (programs[stage] >= 0 && bpf_map_update_elem(bpf_map__fd(skel->maps.stages),
								&stage, &programs[stage], BPF_ANY))
			return -errno;
	return 0;
}

struct policy_bpf__rodata *parts_rodata(const struct generation *g, size_t *ret_size)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info), zero = 0;
	CLEANUP_FREE struct policy_bpf__rodata *rodata = NULL;

	if (bpf_obj_get_info_by_fd(g->fd[PART_RODATA], &info, &size))
		return NULL;
	rodata = mem_zalloc(1, info.value_size);
	if (bpf_map_lookup_elem(g->fd[PART_RODATA], &zero, rodata))
		return NULL;
	*ret_size = info.value_size;
	return TAKE_PTR(rodata);
}

int parts_add_device(const struct generation *g, uint32_t ifindex, struct err *err)
{
	if (!bpf_map_update_elem(g->fd[PART_EGRESS], &ifindex, &ifindex, BPF_ANY) ||
	    errno == EINVAL) // the kernel returns it for a device that does not exist
		return 0;
	return err_system(err, errno, "cannot redirect to backends by interface %u", ifindex);
}
