// SPDX-License-Identifier: GPL-2.0-only
// Finds a map of a program by its name: the clock, and others.
#include "tests/reference/balancer/clock.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"

#define MAPS_MAX   64
#define CLOCK_NAME "test_clock"

int map_of(int program, const char *name)
{
	uint32_t ids[MAPS_MAX];
	struct bpf_prog_info info = {.nr_map_ids = MAPS_MAX, .map_ids = (uintptr_t)ids};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(program, &info, &size))
		return -errno;
	for (uint32_t m = 0; m < info.nr_map_ids && m < MAPS_MAX; m++) {
		int fd = bpf_map_get_fd_by_id(ids[m]);
		struct bpf_map_info map = {0};

		size = sizeof(map);
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &map, &size) && !strcmp(map.name, name))
			return fd;
		fd_close(fd);
	}
	return -ENOENT;
}

int clock_map(int program)
{
	return map_of(program, CLOCK_NAME);
}
