// SPDX-License-Identifier: GPL-2.0-only
// Opens the entry program around an instance's maps; libxdp or entry_load loads it.
#include "ctl/datapath/entry.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>

#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/sharing.h"
#include "xdp/entry.skel.h"

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

int entry_program(struct entry *e, struct xdp_program **ret, struct err *err)
{
	int code;

	if (!e->program) {
		e->program = xdp_program__from_bpf_obj(e->skel->obj, "xdp");
		if ((code = (int)libxdp_get_error(e->program))) {
			e->program = NULL;
			return err_system(err, -code, "libxdp refuses the entry program");
		}
	}
	// Meant for the dispatcher; libxdp takes it from the extension again.
	if ((code = xdp_program__set_xdp_frags_support(e->program, true)))
		return err_system(err, -code, "libxdp refuses multi-buffer packets");
	*ret = e->program;
	return 0;
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
	bpf_program__set_expected_attach_type(e->skel->progs.weir_entry, 0);
	bpf_program__set_flags(e->skel->progs.weir_entry, sharing_flags(i));
	if ((code = share_maps(e->skel, i)))
		return err_system(err, -code, "cannot share the maps of instance '%s'", i->name);
	*ret = TAKE_PTR(e);
	return 0;
}
