// SPDX-License-Identifier: GPL-2.0-only
// Keys, look-ups and batches of the maps of prefixes.
#include "ctl/datapath/overlay_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"

#define BATCH     8192
#define BATCH_MAX (BATCH << 6)

// The table of prefixes, also for a host.
static enum overlay_table nets_of(const struct prefix *p, uint8_t kind)
{
	bool four = p->addr.family == 4;

	if (overlay_is_out(kind))
		return four ? TABLE_OUT4 : TABLE_OUT6;
	return four ? TABLE_NETS4 : TABLE_NETS6;
}

enum overlay_table table_of(const struct prefix *p, uint8_t kind)
{
	if (overlay_is_out(kind) || !prefix_is_host(p))
		return nets_of(p, kind);
	return p->addr.family == 4 ? TABLE_HOSTS4 : TABLE_HOSTS6;
}

int net_fd(const struct instance *i, enum overlay_table t)
{
	if (table_is_out(t))
		return t == TABLE_OUT4 ? i->out4 : i->out6;
	return t == TABLE_NETS4 ? i->nets4 : i->nets6;
}

static const char *name_of(enum overlay_table t)
{
	if (table_is_out(t))
		return t == TABLE_OUT4 ? "out4" : "out6";
	return t == TABLE_NETS4 ? "nets4" : "nets6";
}

int overlay_compare(const struct overlay_entry *a, const struct overlay_entry *b)
{
	int order = prefix_compare(&a->prefix, &b->prefix);

	return order ? order : (int)a->kind - (int)b->kind;
}

size_t net_key_size(enum overlay_table t)
{
	return table_family(t) == 4 ? sizeof(struct overlay_net4_key)
				    : sizeof(struct overlay_net6_key);
}

void net_key(const struct prefix *p, uint8_t kind, union net_key *ret)
{
	uint32_t prefixlen = OVERLAY_NET_KIND_BITS + (uint32_t)p->len;

	memset(ret, 0, sizeof(*ret));
	if (p->addr.family == 4) {
		ret->net4.prefixlen = prefixlen;
		ret->net4.kind = kind;
		memcpy(ret->net4.addr, p->addr.bytes, 4);
	} else {
		ret->net6.prefixlen = prefixlen;
		ret->net6.kind = kind;
		memcpy(ret->net6.addr, p->addr.bytes, 16);
	}
}

static struct net_element decode(enum overlay_table t, const void *key, const void *value)
{
	struct net_element raw = {0};
	union net_key k;

	memcpy(&k, key, net_key_size(t));
	memcpy(&raw.value, value, sizeof(raw.value));
	if (table_family(t) == 4) {
		raw.prefix.addr.family = 4;
		memcpy(raw.prefix.addr.bytes, k.net4.addr, 4);
		raw.prefix.len = (uint8_t)(k.net4.prefixlen - OVERLAY_NET_KIND_BITS);
		raw.kind = (uint8_t)k.net4.kind;
	} else {
		raw.prefix.addr.family = 6;
		memcpy(raw.prefix.addr.bytes, k.net6.addr, 16);
		raw.prefix.len = (uint8_t)(k.net6.prefixlen - OVERLAY_NET_KIND_BITS);
		raw.kind = (uint8_t)k.net6.kind;
	}
	return raw;
}

// ---- one ----------------------------------------------------------------------------------------

// The narrowest element that contains p.
static int lookup(const struct instance *i, const struct prefix *p, uint8_t kind,
		  struct overlay_net *ret, struct err *err)
{
	enum overlay_table t = nets_of(p, kind);
	union net_key key;

	net_key(p, kind, &key);
	if (!bpf_map_lookup_elem(net_fd(i, t), &key, ret))
		return 0;
	return errno == ENOENT
		       ? -ENOENT
		       : err_system(err, errno, "cannot read the overlay map '%s'", name_of(t));
}

int net_lookup(const struct instance *i, const struct prefix *p, uint8_t kind,
	       struct overlay_net *ret, struct err *err)
{
	int code = lookup(i, p, kind, ret, err);

	return code ? code : ret->len == p->len ? 0 : -ENOENT;
}

int net_lookup_wider(const struct instance *i, const struct prefix *p, uint8_t kind,
		     struct overlay_net *ret, struct err *err)
{
	struct prefix wider;

	if (!p->len)
		return -ENOENT;
	wider = prefix_of(&p->addr, (uint8_t)(p->len - 1));
	return lookup(i, &wider, kind, ret, err);
}

// ---- all ----------------------------------------------------------------------------------------

static int compare_raw(const void *a, const void *b)
{
	const struct net_element *x = a, *y = b;
	int order = prefix_compare(&x->prefix, &y->prefix);

	return order ? order : (int)x->kind - (int)y->kind;
}

void net_elements_free(struct net_elements *raws)
{
	vec_free(raws);
}

// Room for a batch. It must hold the fullest bucket of a hash, else the kernel returns ENOSPC, and
// the batch is asked for again with more room.
struct net_batch {
	uint32_t room;
	void *keys, *values;
};

static void batch_free(struct net_batch *b)
{
	free(b->keys);
	free(b->values);
}

static void batch_make(struct net_batch *b, enum overlay_table t, uint32_t room)
{
	batch_free(b);
	*b = (struct net_batch){
		.room = room,
		.keys = mem_zalloc(room, net_key_size(t)),
		.values = mem_zalloc(room, sizeof(struct overlay_net)),
	};
}

// 0 or -errno; *ret_end is set after the last batch.
static int batch_read(struct net_batch *b, int fd, enum overlay_table t, void *from, void *token,
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

int nets_each(const struct instance *i, enum overlay_table t,
	      int (*visit)(void *ctx, const struct net_element *raw), void *ctx, struct err *err)
{
	CLEANUP(batch_free) struct net_batch batch = {0};
	// Where a batch ended: a bucket, or a key.
	char token[sizeof(union net_key)] = {0};
	bool end = false;

	batch_make(&batch, t, BATCH);
	for (void *from = NULL; !end; from = token) {
		uint32_t n;
		int code = batch_read(&batch, net_fd(i, t), t, from, token, &n, &end);

		if (code)
			return err_system(err, -code, "cannot read the overlay map '%s'",
					  name_of(t));
		for (uint32_t r = 0; r < n; r++) {
			const char *key = (char *)batch.keys + r * net_key_size(t);
			const char *value = (char *)batch.values + r * sizeof(struct overlay_net);
			struct net_element raw = decode(t, key, value);

			if ((code = visit(ctx, &raw)))
				return code;
		}
	}
	return 0;
}

static int keep_raw(void *ctx, const struct net_element *raw)
{
	struct net_elements *raws = ctx;

	vec_push(raws, *raw);
	return 0;
}

int nets_read(const struct instance *i, enum overlay_table t, struct net_elements *ret,
	      struct err *err)
{
	CLEANUP_NET_ELEMENTS struct net_elements raws = {0};
	int code = nets_each(i, t, keep_raw, &raws, err);

	if (code)
		return code;
	if (raws.n)
		qsort(raws.at, raws.n, sizeof(*raws.at), compare_raw);
	*ret = raws;
	raws = (struct net_elements){0};
	return 0;
}
