// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes elements of per-CPU arrays, many at once.
#include "ctl/datapath/percpu.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

#define ONLINE     "/sys/devices/system/cpu/online"
#define ONLINE_MAX 65536

int percpu_count(size_t *ret, struct err *err)
{
	int n = libbpf_num_possible_cpus();

	if (n < 0)
		return err_system(err, -n, "cannot count the CPUs");
	*ret = (size_t)n;
	return 0;
}

// The number after the last comma or dash of "0-3,8-11". 0 or -errno.
static int last_online(uint32_t *ret)
{
	CLEANUP_FREE char *text = NULL;
	const char *last;
	size_t len;
	int code = file_read(ONLINE, ONLINE_MAX, &text, &len, NULL);

	if (code)
		return code;
	text[strcspn(text, "\n")] = '\0';
	last = text + strlen(text);
	while (last > text && !strchr(",-", last[-1]))
		last--;
	return num_parse_u32(last, strlen(last), 0, UINT32_MAX, ret);
}

int percpu_online(size_t *ret, struct err *err)
{
	uint32_t last;
	int code = percpu_count(ret, err);

	if (code)
		return code;
	if (!last_online(&last) && last < *ret)
		*ret = last + 1;
	return 0;
}

int percpu_values(size_t n, size_t size, void *ret, size_t *ret_cpus, struct err *err)
{
	int code = percpu_count(ret_cpus, err);

	if (code)
		return code;
	*(void **)ret = mem_zalloc(n * *ret_cpus, size);
	return 0;
}

int percpu_read(int fd, uint32_t first, uint32_t n, void *ret)
{
	CLEANUP_FREE uint32_t *keys = mem_zalloc(n, sizeof(*keys));
	uint32_t before = first - 1, last, got = n;

	// The kernel begins after the element that it is given.
	if (bpf_map_lookup_batch(fd, first ? &before : NULL, &last, keys, ret, &got, NULL))
		return -errno;
	return got == n ? 0 : -ENOENT;
}

int percpu_write(int fd, uint32_t n, const void *values)
{
	CLEANUP_FREE uint32_t *keys = mem_zalloc(n, sizeof(*keys));

	for (uint32_t k = 0; k < n; k++)
		keys[k] = k;
	return bpf_map_update_batch(fd, keys, values, &n, NULL) ? -errno : 0;
}

struct counter percpu_sum(const struct counter *values, size_t cpus)
{
	struct counter sum = {0};

	for (size_t cpu = 0; cpu < cpus; cpu++) {
		sum.packets += values[cpu].packets;
		sum.bytes += values[cpu].bytes;
	}
	return sum;
}
