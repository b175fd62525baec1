// SPDX-License-Identifier: GPL-2.0-only
// Maps arrays into memory.
#include "ctl/datapath/mapping.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

int mapping_open(struct mapping *m, int fd, size_t bytes, struct err *err)
{
	return mapping_open_part(m, fd, 0, bytes, err);
}

int mapping_open_part(struct mapping *m, int fd, size_t from, size_t bytes, struct err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), skip = from & (page - 1);
	size_t size = (skip + bytes + page - 1) & ~(page - 1);
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(from - skip));

	if (at == MAP_FAILED)
		return err_system(err, errno, "cannot map a table of %zu bytes", bytes);
	*m = (struct mapping){.at = at + skip, .size = size, .skip = skip};
	return 0;
}

static int read_info(int fd, struct bpf_map_info *ret, struct err *err)
{
	uint32_t size = sizeof(*ret);

	*ret = (struct bpf_map_info){0};
	return bpf_obj_get_info_by_fd(fd, ret, &size)
		       ? err_system(err, errno, "cannot read the size of a map")
		       : 0;
}

int mapping_entries(int fd, uint32_t *ret, struct err *err)
{
	struct bpf_map_info info;
	int code = read_info(fd, &info, err);

	if (code)
		return code;
	*ret = info.max_entries;
	return 0;
}

int mapping_bytes(int fd, size_t *ret, struct err *err)
{
	struct bpf_map_info info;
	int code = read_info(fd, &info, err);

	if (code)
		return code;
	*ret = (size_t)info.value_size * info.max_entries;
	return 0;
}

void mapping_close(struct mapping *m)
{
	if (m->at)
		munmap((char *)m->at - m->skip, m->size);
	*m = (struct mapping){0};
}
