// SPDX-License-Identifier: GPL-2.0-only
// Maps of the kernel, many elements at once: arrays in memory, elements of per-CPU arrays, keys of
// hash maps, and the grace period of a map of maps.
#include "ctl/datapath/maps.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

int mapping_make(const char *name, size_t bytes)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), (uint32_t)bytes, 1,
			      &opts);
}

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

// With room for all, no bucket is too large, and the first batch is the last one, of which the
// kernel returns ENOENT.
int map_read(int fd, size_t key_size, uint32_t max, void *ret_keys, uint32_t **ret_values,
	     uint32_t *ret_n)
{
	CLEANUP_FREE char *keys = mem_zalloc(max, key_size);
	CLEANUP_FREE uint32_t *values = mem_zalloc(max, sizeof(*values));
	uint32_t token, n = max;
	int code = bpf_map_lookup_batch(fd, NULL, &token, keys, values, &n, NULL);

	if (code && code != -ENOENT)
		return code;
	*(void **)ret_keys = TAKE_PTR(keys);
	*ret_values = TAKE_PTR(values);
	*ret_n = n;
	return 0;
}

int map_keys(int fd, size_t key_size, uint32_t max, void **ret_keys, uint32_t *ret_n)
{
	CLEANUP_FREE uint32_t *values = NULL;

	return map_read(fd, key_size, max, ret_keys, &values, ret_n);
}

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
