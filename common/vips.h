/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the service of a packet only by its destination: vip_service4() and vip_service6().
 *
 * Services of a few addresses, ports and protocols have an element for each of their combinations,
 * in buckets of 64 bytes. A hash selects the bucket; a multiplier in the bucket gives each element
 * a different slot, so only one is compared. ctl/table/vips decides which services are in buckets,
 * and sets VIPS_ALL if there are no others. No two services claim the same packet. See
 * common/tables.h for TABLE_NUMBER and TABLE_AT. */
#pragma once

#include <linux/types.h>

#include "common/bounds.h"
#include "common/tables.h"

#define VIPS4_LOG2 2
#define VIPS4      (1 << VIPS4_LOG2) /* in a line */
#define VIPS6_LOG2 1
#define VIPS6      (1 << VIPS6_LOG2)

/* A free slot has service 0. */
struct vip_line4 {
	__u64 spread;         /* odd: vip_place4() */
	__u64 name[VIPS4];    /* vip_name4() */
	__u32 service[VIPS4]; /* its number, and 1 */
	__u64 pad;
};
_Static_assert(sizeof(struct vip_line4) == 64, "layout");

struct vip6 {
	__u64 addr[2]; /* as in the packet */
	__u32 key;
	__u32 service;
};

struct vip_line6 {
	__u64 spread;
	struct vip6 vip[VIPS6];
	__u64 pad;
};
_Static_assert(sizeof(struct vip_line6) == 64, "layout");

/* port: network order, as in the packet. */
TABLE_INLINE __u32 vip_key(__u16 port_be, __u8 proto)
{
	return port_be | (__u32)proto << 16;
}

/* addr: network order. */
TABLE_INLINE __u64 vip_name4(__u32 addr, __u32 key)
{
	return addr | (__u64)key << 32;
}

/* The hash need not resist attackers, who do not choose the elements: ctl/table/vips finds a seed
 * with which all have room. The seed is odd. */
TABLE_INLINE __u64 vip_hash4(__u64 name, __u64 seed)
{
	return name * seed;
}

TABLE_INLINE __u64 vip_hash6(const __u64 addr[2], __u32 key, __u64 seed)
{
	__u64 h = (addr[0] ^ (__u64)key << 32) * seed;

	return ((h ^ h >> 32) + addr[1]) * seed;
}

/* Below `lines`. */
TABLE_INLINE __u64 vip_line(__u64 hash, __u64 lines)
{
	return BOUND_SCALE(hash >> 32, lines);
}

TABLE_INLINE __u64 vip_place4(__u64 hash, __u64 spread)
{
	return hash * spread >> (64 - VIPS4_LOG2);
}

TABLE_INLINE __u64 vip_place6(__u64 hash, __u64 spread)
{
	return hash * spread >> (64 - VIPS6_LOG2);
}

/* The service's number and 1, or 0: it is not in this bucket. */
TABLE_INLINE __u32 vip_find4(const struct vip_line4 *line, __u64 hash, __u64 name)
{
	__u64 place = vip_place4(hash, line->spread);

	return line->name[place] == name ? line->service[place] : 0;
}

TABLE_INLINE __u32 vip_find6(const struct vip_line6 *line, __u64 hash, const __u64 addr[2],
			     __u32 key)
{
	const struct vip6 *v = &line->vip[vip_place6(hash, line->spread)];
	__u64 differs = (v->addr[0] ^ addr[0]) | (v->addr[1] ^ addr[1]) | (v->key ^ key);

	return differs ? 0 : v->service;
}

#define VIPS_NUMBER(name) ((void)v, TABLE_NUMBER(v, VIP_CONSTANT(name)))
#define VIPS_AT(name)     ((void)v, TABLE_AT(v, VIP_CONSTANT(name)))

/* The service's number and 1, or 0: it is in no bucket. The datapath does not use v. */
TABLE_INLINE __u32 vip_service4(const struct tables *v, __u32 addr, __u32 key)
{
	__u64 name = vip_name4(addr, key), hash = vip_hash4(name, VIPS_NUMBER(V4_SEED)), line;

	if (!VIPS_NUMBER(V4_LINES_N))
		return 0;
	line = vip_line(hash, VIPS_NUMBER(V4_LINES_N));
	return vip_find4((const void *)(VIPS_AT(V4_LINES) + line * 64), hash, name);
}

TABLE_INLINE __u32 vip_service6(const struct tables *v, const __u64 addr[2], __u32 key)
{
	__u64 hash = vip_hash6(addr, key, VIPS_NUMBER(V6_SEED)), line;

	if (!VIPS_NUMBER(V6_LINES_N))
		return 0;
	line = vip_line(hash, VIPS_NUMBER(V6_LINES_N));
	return vip_find6((const void *)(VIPS_AT(V6_LINES) + line * 64), hash, addr, key);
}
