// SPDX-License-Identifier: GPL-2.0-only
// Opens the root program around the maps of an instance; libxdp or root_load() loads it.
#include "ctl/datapath/root.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>

#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/sharing.h"
#include "xdp/root.skel.h"

struct root_program {
	struct root_bpf *skel;
	struct xdp_program *program;
};

void root_free(struct root_program *e)
{
	if (!e)
		return;
	if (e->program)
		xdp_program__close(e->program);
	root_bpf__destroy(e->skel);
	free(e);
}

void root_cleanup(struct root_program **e)
{
	root_free(*e);
}

int root_program(struct root_program *e, struct xdp_program **ret, struct err *err)
{
	int code;

	if (!e->program) {
		e->program = xdp_program__from_bpf_obj(e->skel->obj, "xdp");
		if ((code = (int)libxdp_get_error(e->program))) {
			e->program = NULL;
			return err_system(err, -code, "libxdp refuses the root program");
		}
	}
	// Meant for the dispatcher; libxdp takes it from the extension again.
	if ((code = xdp_program__set_xdp_frags_support(e->program, true)))
		return err_system(err, -code, "libxdp refuses multi-buffer packets");
	*ret = e->program;
	return 0;
}

int root_load(struct root_program *e)
{
	int code = root_bpf__load(e->skel);

	return code ? code : bpf_program__fd(e->skel->progs.weir_root);
}

static int share_maps(struct root_bpf *skel, const struct instance *i)
{
	int code = bpf_map__reuse_fd(skel->maps.data_knobs, i->knobs_fd);

	if (!code)
		code = bpf_map__reuse_fd(skel->maps.progs, i->progs);
	return code ? code : bpf_map__reuse_fd(skel->maps.counters, i->counters);
}

int root_open(const struct instance *i, struct root_program **ret, struct err *err)
{
	CLEANUP(root_cleanup) struct root_program *e = mem_new(struct root_program);
	int code;

	e->skel = root_bpf__open();
	if (!e->skel)
		return err_system(err, errno, "cannot open the root program");
	bpf_program__set_expected_attach_type(e->skel->progs.weir_root, 0);
	bpf_program__set_flags(e->skel->progs.weir_root, sharing_flags(i));
	if ((code = share_maps(e->skel, i)))
		return err_system(err, -code, "cannot share the maps of instance '%s'", i->name);
	*ret = TAKE_PTR(e);
	return 0;
}
