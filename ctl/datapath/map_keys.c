// SPDX-License-Identifier: GPL-2.0-only
// Reads the keys of a hash map as one batch.
#include "ctl/datapath/map_keys.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"

// With room for all, no bucket is too large, and the first batch is the last one, of which the
// kernel returns ENOENT.
int map_keys(int fd, size_t key_size, uint32_t max, void **ret_keys, uint32_t *ret_n)
{
	CLEANUP_FREE char *keys = mem_zalloc(max, key_size);
	CLEANUP_FREE uint32_t *values = mem_zalloc(max, sizeof(*values));
	uint32_t token, n = max;
	int code = bpf_map_lookup_batch(fd, NULL, &token, keys, values, &n, NULL);

	if (code && code != -ENOENT)
		return code;
	*ret_keys = TAKE_PTR(keys);
	*ret_n = n;
	return 0;
}
