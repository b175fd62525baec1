// SPDX-License-Identifier: GPL-2.0-only
// Reads two maps of a generation.
#include "ctl/datapath/nat_kept.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/parts.h"

static int read_part(const char *folder, enum part part, void *ret, struct err *err)
{
	CLEANUP_FD int fd = -1;
	uint32_t zero = 0;
	int code = bpffs_get(folder, part_name(part), &fd, err);

	if (code)
		return code;
	return bpf_map_lookup_elem(fd, &zero, ret)
		       ? err_system(err, errno, "cannot read '%s' of a generation", part_name(part))
		       : 0;
}

int nat_kept_read(const struct instance *i, uint32_t generation, struct nat_kept **ret,
		  struct err *err)
{
	CLEANUP_FREE char *folder = generation_folder(i->folder, generation);
	CLEANUP_FREE struct nat_kept *kept = mem_new(struct nat_kept);
	int code;

	*ret = NULL;
	if (!generation)
		return 0;
	code = read_part(folder, PART_KEPT_NAT, &kept->wish, err);
	if (code == -ENOENT)
		return 0;
	if (code || (code = read_part(folder, PART_NAT_USES, kept->use, err)))
		return code;
	*ret = TAKE_PTR(kept);
	return 0;
}
