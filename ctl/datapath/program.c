// SPDX-License-Identifier: GPL-2.0-only
// Loading: map sizes, shared maps, flags; the programs themselves are in xdp/.
#include "ctl/datapath/program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdlib.h>

#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/instance.h"
#include "xdp/entry.skel.h"
#include "xdp/policy.skel.h"

static void cleanup_policy(struct policy_bpf **skel)
{
	policy_bpf__destroy(*skel);
}

// A program array accepts only programs of one type, fragment support and expected attach type; under
// libxdp's dispatcher entry is an extension, whose expected attach type is 0, so all have that.
static void prepare(struct bpf_program *prog)
{
	bpf_program__set_expected_attach_type(prog, 0);
	bpf_program__set_flags(prog, BPF_F_XDP_HAS_FRAGS);
}

static int size_overlay(struct policy_bpf *skel, uint32_t max_entries)
{
	int code = bpf_map__set_max_entries(skel->maps.hosts4, max_entries);

	if (!code)
		code = bpf_map__set_max_entries(skel->maps.hosts6, max_entries);
	// One more than is ever used: kernels before 6.13 refuse to replace an entry in a full trie.
	if (!code)
		code = bpf_map__set_max_entries(skel->maps.nets4, max_entries + 1);
	if (!code)
		code = bpf_map__set_max_entries(skel->maps.nets6, max_entries + 1);
	return code;
}

static int keep(const struct bpf_map *map)
{
	return fcntl(bpf_map__fd(map), F_DUPFD_CLOEXEC, 0);
}

static int keep_maps(const struct policy_bpf *skel, struct instance *i, struct err *err)
{
	i->knobs_fd = keep(skel->maps.data_knobs);
	i->slots = keep(skel->maps.slots);
	i->counters = keep(skel->maps.counters);
	i->events = keep(skel->maps.events);
	i->hosts4 = keep(skel->maps.hosts4);
	i->hosts6 = keep(skel->maps.hosts6);
	i->nets4 = keep(skel->maps.nets4);
	i->nets6 = keep(skel->maps.nets6);
	if (i->knobs_fd < 0 || i->slots < 0 || i->counters < 0 || i->events < 0 || i->hosts4 < 0 ||
	    i->hosts6 < 0 || i->nets4 < 0 || i->nets6 < 0)
		return err_system(err, errno, "cannot keep the maps of instance '%s'", i->name);
	return 0;
}

int program_load_empty(struct instance *i, int *ret_fd, struct err *err)
{
	CLEANUP(cleanup_policy) struct policy_bpf *skel = policy_bpf__open();
	int code, fd;

	if (!skel)
		return err_system(err, errno, "cannot open the policy program");
	prepare(skel->progs.weir_policy);
	code = size_overlay(skel, i->meta.max_entries);
	if (!code)
		code = policy_bpf__load(skel);
	if (code)
		return err_system(err, -code,
				  "the kernel refuses the policy program or its maps "
				  "(%u entries)",
				  i->meta.max_entries);
	if ((code = keep_maps(skel, i, err)))
		return code;
	fd = fcntl(bpf_program__fd(skel->progs.weir_policy), F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return err_system(err, errno, "cannot keep the policy program");
	*ret_fd = fd;
	return 0;
}

struct entry {
	struct entry_bpf *skel;
	struct xdp_program *program;
};

void entry_free(struct entry *e)
{
	if (!e)
		return;
	if (e->program)
		xdp_program__close(e->program);
	entry_bpf__destroy(e->skel);
	free(e);
}

void entry_cleanup(struct entry **e)
{
	entry_free(*e);
}

struct xdp_program *entry_program(struct entry *e)
{
	return e->program;
}

int entry_load(struct entry *e)
{
	int code = entry_bpf__load(e->skel);

	return code ? code : bpf_program__fd(e->skel->progs.weir_entry);
}

static int share_maps(struct entry_bpf *skel, const struct instance *i)
{
	int code = bpf_map__reuse_fd(skel->maps.data_knobs, i->knobs_fd);

	if (!code)
		code = bpf_map__reuse_fd(skel->maps.slots, i->slots);
	return code ? code : bpf_map__reuse_fd(skel->maps.counters, i->counters);
}

int entry_open(const struct instance *i, struct entry **ret, struct err *err)
{
	CLEANUP(entry_cleanup) struct entry *e = mem_new(struct entry);
	int code;

	e->skel = entry_bpf__open();
	if (!e->skel)
		return err_system(err, errno, "cannot open the entry program");
	prepare(e->skel->progs.weir_entry);
	if ((code = share_maps(e->skel, i)))
		return err_system(err, -code, "cannot share the maps of instance '%s'", i->name);
	e->program = xdp_program__from_bpf_obj(e->skel->obj, "xdp");
	code = (int)libxdp_get_error(e->program);
	if (code) {
		e->program = NULL;
		return err_system(err, -code, "libxdp refuses the entry program");
	}
	if ((code = xdp_program__set_xdp_frags_support(e->program, true)))
		return err_system(err, -code, "libxdp refuses multi-buffer packets");
	*ret = TAKE_PTR(e);
	return 0;
}
