// SPDX-License-Identifier: GPL-2.0-only
// Keys, values and batches of the maps of the overlay.
#include "ctl/datapath/overlay_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"

#define BATCH_ROWS 8192

static const struct {
	const char *name;
	size_t fd, key_size, value_size;
} tables[TABLES] = {
	[TABLE_HOSTS4] = {WEIR_MAP_HOSTS4, offsetof(struct instance, hosts4), 4,
			  sizeof(struct overlay_host)},
	[TABLE_HOSTS6] = {WEIR_MAP_HOSTS6, offsetof(struct instance, hosts6), 16,
			  sizeof(struct overlay_host)},
	[TABLE_NETS4] = {WEIR_MAP_NETS4, offsetof(struct instance, nets4),
			 sizeof(struct overlay_net4_key), sizeof(struct overlay_net)},
	[TABLE_NETS6] = {WEIR_MAP_NETS6, offsetof(struct instance, nets6),
			 sizeof(struct overlay_net6_key), sizeof(struct overlay_net)},
};

enum overlay_table table_of(const struct prefix *p)
{
	if (prefix_is_host(p))
		return p->addr.family == 4 ? TABLE_HOSTS4 : TABLE_HOSTS6;
	return p->addr.family == 4 ? TABLE_NETS4 : TABLE_NETS6;
}

bool table_holds(enum overlay_table t, const struct prefix *p)
{
	return table_of(p) == t;
}

int table_fd(const struct instance *i, enum overlay_table t)
{
	return *(const int *)(const void *)((const char *)i + tables[t].fd);
}

size_t table_value_size(enum overlay_table t)
{
	return tables[t].value_size;
}

size_t table_key_size(enum overlay_table t)
{
	return tables[t].key_size;
}

void table_key(enum overlay_table t, const struct prefix *p, uint8_t kind, union overlay_key *ret)
{
	uint32_t prefixlen = OVERLAY_NET_KIND_BITS + (uint32_t)p->len;

	memset(ret, 0, sizeof(*ret));
	switch (t) {
	case TABLE_NETS4:
		ret->net4.prefixlen = prefixlen;
		ret->net4.kind = kind;
		memcpy(ret->net4.addr, p->addr.bytes, 4);
		break;
	case TABLE_NETS6:
		ret->net6.prefixlen = prefixlen;
		ret->net6.kind = kind;
		memcpy(ret->net6.addr, p->addr.bytes, 16);
		break;
	default:
		memcpy(ret->host, p->addr.bytes, tables[t].key_size);
	}
}

static struct overlay_raw decode(enum overlay_table t, const void *key, const void *value)
{
	struct overlay_raw raw = {0};
	union overlay_key k;

	memcpy(&k, key, tables[t].key_size);
	memcpy(&raw.value, value, tables[t].value_size);
	switch (t) {
	case TABLE_NETS4:
		raw.prefix.addr.family = 4;
		memcpy(raw.prefix.addr.bytes, k.net4.addr, 4);
		raw.prefix.len = (uint8_t)(k.net4.prefixlen - OVERLAY_NET_KIND_BITS);
		raw.kind = (uint8_t)k.net4.kind;
		break;
	case TABLE_NETS6:
		raw.prefix.addr.family = 6;
		memcpy(raw.prefix.addr.bytes, k.net6.addr, 16);
		raw.prefix.len = (uint8_t)(k.net6.prefixlen - OVERLAY_NET_KIND_BITS);
		raw.kind = (uint8_t)k.net6.kind;
		break;
	default:
		raw.prefix.addr.family = t == TABLE_HOSTS4 ? 4 : 6;
		memcpy(raw.prefix.addr.bytes, k.host, tables[t].key_size);
		raw.prefix.len = t == TABLE_HOSTS4 ? 32 : 128;
	}
	return raw;
}

static int compare_raw(const void *a, const void *b)
{
	const struct overlay_raw *x = a, *y = b;
	int order = prefix_compare(&x->prefix, &y->prefix);

	return order ? order : (int)x->kind - (int)y->kind;
}

// One batch into raws; -ENOENT when it was the last.
static int read_batch(int fd, enum overlay_table t, void *in, void *out, uint32_t rows, void *keys,
		      void *values, struct overlay_raws *raws)
{
	uint32_t n = rows;
	int code = bpf_map_lookup_batch(fd, in, out, keys, values, &n, NULL);

	if (code && code != -ENOENT)
		return code;
	vec_reserve(raws, n);
	for (uint32_t r = 0; r < n; r++)
		raws->at[raws->n++] = decode(t, (char *)keys + r * tables[t].key_size,
					     (char *)values + r * tables[t].value_size);
	return code;
}

static int read_rows(int fd, enum overlay_table t, uint32_t rows, struct overlay_raws *raws)
{
	CLEANUP_FREE void *keys = mem_zalloc(rows, tables[t].key_size);
	CLEANUP_FREE void *values = mem_zalloc(rows, tables[t].value_size);
	char token[sizeof(union overlay_key)] = {0}; // where the batch stopped: a bucket or a key
	int code = read_batch(fd, t, NULL, token, rows, keys, values, raws);

	while (!code)
		code = read_batch(fd, t, token, token, rows, keys, values, raws);
	return code == -ENOENT ? 0 : code;
}

int table_read(const struct instance *i, enum overlay_table t, struct overlay_raws *ret,
	       struct err *err)
{
	struct overlay_raws raws = {0};
	int code = -ENOSPC;

	// A batch must hold the fullest bucket of a hash; the kernel says ENOSPC where it does not.
	for (uint32_t rows = BATCH_ROWS; code == -ENOSPC && rows <= BATCH_ROWS << 6; rows *= 2) {
		raws.n = 0;
		code = read_rows(table_fd(i, t), t, rows, &raws);
	}
	if (code) {
		vec_free(&raws);
		return err_system(err, -code, "cannot read the overlay map '%s'", tables[t].name);
	}
	if (raws.n)
		qsort(raws.at, raws.n, sizeof(*raws.at), compare_raw);
	*ret = raws;
	return 0;
}
