// SPDX-License-Identifier: GPL-2.0-only
#include "ctl/datapath/root_program.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>

#include <bpf/bpf.h>
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

void root_free(struct root_program *r)
{
	if (!r)
		return;
	if (r->program)
		xdp_program__close(r->program);
	root_bpf__destroy(r->skel);
	free(r);
}

void root_cleanup(struct root_program **r)
{
	root_free(*r);
}

static int open_program(struct root_program *r, struct err *err)
{
	struct xdp_program *program = xdp_program__from_bpf_obj(r->skel->obj, "xdp");
	int code = (int)libxdp_get_error(program);

	if (code)
		return err_system(err, -code, "libxdp refuses the root program");
	r->program = program;
	return 0;
}

int root_program(struct root_program *r, struct xdp_program **ret, struct err *err)
{
	int code = r->program ? 0 : open_program(r, err);

	if (code)
		return code;
	// For the dispatcher; libxdp removes it from the extension.
	if ((code = xdp_program__set_xdp_frags_support(r->program, true)))
		return err_system(err, -code, "libxdp refuses multi-buffer packets");
	*ret = r->program;
	return 0;
}

int root_load(struct root_program *r)
{
	int code = root_bpf__load(r->skel);

	return code ? code : bpf_program__fd(r->skel->progs.weir_root);
}

int root_open(const struct instance *i, struct root_program **ret, struct err *err)
{
	CLEANUP(root_cleanup) struct root_program *r = mem_new(struct root_program);
	int code;

	r->skel = root_bpf__open();
	if (!r->skel)
		return err_system(err, errno, "cannot open the root program");
	bpf_program__set_expected_attach_type(r->skel->progs.weir_root, 0);
	bpf_program__set_flags(r->skel->progs.weir_root, sharing_flags(i));
	if ((code = instance_share_maps(i, r->skel->obj)))
		return err_system(err, -code, "cannot share the maps of instance '%s'", i->name);
	*ret = TAKE_PTR(r);
	return 0;
}
