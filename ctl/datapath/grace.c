// SPDX-License-Identifier: GPL-2.0-only
// The grace period of an update of a map of maps.
#include "ctl/datapath/grace.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"

// Programs run under RCU, and the kernel returns from an update of a map of maps only after a grace
// period, so that user space knows that no program uses the former inner map
// (maybe_wait_bpf_programs(), since Linux 5.0). membarrier() would do the same, but is refused on
// kernels with nohz_full.
int grace_wait(struct err *err)
{
	CLEANUP_FD int inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_grace", sizeof(uint32_t),
					      sizeof(uint64_t), 1, NULL);
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)inner);
	CLEANUP_FD int outer =
		inner < 0 ? inner
			  : bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "weir_graces",
					   sizeof(uint32_t), sizeof(uint32_t), 1, &opts);
	uint32_t zero = 0;

	if (outer < 0)
		return err_system(err, -outer, "cannot create a map to wait for packets");
	if (bpf_map_update_elem(outer, &zero, &inner, BPF_ANY))
		return err_system(err, errno, "cannot wait for packets");
	return 0;
}
