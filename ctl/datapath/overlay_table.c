// SPDX-License-Identifier: GPL-2.0-only
// Keys, values and batches of the maps of the overlay.
#include "ctl/datapath/overlay_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"

#define BATCH     8192
#define BATCH_MAX (BATCH << 6)

static const struct {
	const char *name;
	size_t fd, key_size, value_size;
} tables[TABLES] = {
	[TABLE_HOSTS4] =
		{
			.name = "hosts4",
			.fd = offsetof(struct instance, hosts4),
			.key_size = 4,
			.value_size = sizeof(struct overlay_host),
		},
	[TABLE_HOSTS6] =
		{
			.name = "hosts6",
			.fd = offsetof(struct instance, hosts6),
			.key_size = 16,
			.value_size = sizeof(struct overlay_host),
		},
	[TABLE_NETS4] =
		{
			.name = "nets4",
			.fd = offsetof(struct instance, nets4),
			.key_size = sizeof(struct overlay_net4_key),
			.value_size = sizeof(struct overlay_net),
		},
	[TABLE_NETS6] =
		{
			.name = "nets6",
			.fd = offsetof(struct instance, nets6),
			.key_size = sizeof(struct overlay_net6_key),
			.value_size = sizeof(struct overlay_net),
		},
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

void overlay_raws_free(struct overlay_raws *raws)
{
	vec_free(raws);
}

// Room for a batch. It must hold the fullest bucket of a hash, else the kernel returns ENOSPC, and the batch is asked
// for again with more room.
struct batch {
	uint32_t room;
	void *keys, *values;
};

static void batch_free(struct batch *b)
{
	free(b->keys);
	free(b->values);
}

static void batch_make(struct batch *b, enum overlay_table t, uint32_t room)
{
	batch_free(b);
	*b = (struct batch){
		.room = room,
		.keys = mem_zalloc(room, tables[t].key_size),
		.values = mem_zalloc(room, tables[t].value_size),
	};
}

// 0 or -errno; *ret_end is set after the last batch.
static int batch_read(struct batch *b, int fd, enum overlay_table t, void *from, void *token,
		      uint32_t *ret_n, bool *ret_end)
{
	for (;;) {
		uint32_t n = b->room;
		int code = bpf_map_lookup_batch(fd, from, token, b->keys, b->values, &n, NULL);

		if (code == -ENOSPC && b->room < BATCH_MAX) {
			batch_make(b, t, b->room * 2);
			continue;
		}
		if (code && code != -ENOENT)
			return code;
		*ret_n = n;
		*ret_end = code == -ENOENT;
		return 0;
	}
}

int table_each(const struct instance *i, enum overlay_table t,
	       int (*visit)(void *ctx, enum overlay_table t, const struct overlay_raw *raw),
	       void *ctx, struct err *err)
{
	CLEANUP(batch_free) struct batch batch = {0};
	// Where a batch ended: a bucket, or a key.
	char token[sizeof(union overlay_key)] = {0};
	bool end = false;

	batch_make(&batch, t, BATCH);
	for (void *from = NULL; !end; from = token) {
		uint32_t n;
		int code = batch_read(&batch, table_fd(i, t), t, from, token, &n, &end);

		if (code)
			return err_system(err, -code, "cannot read the overlay map '%s'",
					  tables[t].name);
		for (uint32_t r = 0; r < n; r++) {
			const char *key = (char *)batch.keys + r * tables[t].key_size;
			const char *value = (char *)batch.values + r * tables[t].value_size;
			struct overlay_raw raw = decode(t, key, value);

			if ((code = visit(ctx, t, &raw)))
				return code;
		}
	}
	return 0;
}

static int keep_raw(void *ctx, enum overlay_table t, const struct overlay_raw *raw)
{
	struct overlay_raws *raws = ctx;

	(void)t;
	vec_push(raws, *raw);
	return 0;
}

int table_read(const struct instance *i, enum overlay_table t, struct overlay_raws *ret,
	       struct err *err)
{
	CLEANUP_RAWS struct overlay_raws raws = {0};
	int code = table_each(i, t, keep_raw, &raws, err);

	if (code)
		return code;
	if (raws.n)
		qsort(raws.at, raws.n, sizeof(*raws.at), compare_raw);
	*ret = raws;
	raws = (struct overlay_raws){0};
	return 0;
}
