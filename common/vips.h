/* SPDX-License-Identifier: GPL-2.0-only */
/* Which service a packet is for, by its destination alone: vip_service4() and vip_service6().
 *
 * Services of a few addresses, ports and protocols have an element for each of their combinations, in lines of 64
 * bytes; a hash tells the line, and no line ever holds more than it can. Which services are in lines, ctl/table/vips
 * decides; of VIPS_ALL it knows that the others do not exist. No two services claim the same packet. See
 * common/tables.h for TABLE_NUMBER and TABLE_AT. */
#pragma once

#include <linux/types.h>

#include "common/bounds.h"
#include "common/tables.h"

#define VIPS4 5 /* in a line */
#define VIPS6 2

/* A free place has service 0. */
struct vip4 {
	__u32 addr;    /* network order */
	__u32 key;     /* vip_key() */
	__u32 service; /* its number, and 1 */
};

struct vip_line4 {
	struct vip4 vip[VIPS4];
	__u32 pad;
};
_Static_assert(sizeof(struct vip_line4) == 64, "layout");

struct vip6 {
	__u64 addr[2]; /* as in the packet */
	__u32 key;
	__u32 service;
};

struct vip_line6 {
	struct vip6 vip[VIPS6];
	__u64 pad[2];
};
_Static_assert(sizeof(struct vip_line6) == 64, "layout");

/* port: network order, as in the packet. */
TABLE_INLINE __u32 vip_key(__u16 port_be, __u8 proto)
{
	return port_be | (__u32)proto << 16;
}

/* Not against attackers, who do not choose what is in the lines: ctl/table/vips finds a seed with which all have
 * room. The seed is odd. */
TABLE_INLINE __u64 vip_hash4(__u32 addr, __u32 key, __u64 seed)
{
	return (addr ^ (__u64)key << 32) * seed;
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

/* The service's number and 1, or 0: it is not in this line. Without a branch. */
TABLE_INLINE __u32 vip_find4(const struct vip_line4 *line, __u32 addr, __u32 key)
{
	__u64 found = 0;

#pragma GCC unroll 5
	for (int i = 0; i < VIPS4; i++)
		found |= line->vip[i].service &
			 if_zero32((line->vip[i].addr ^ addr) | (line->vip[i].key ^ key));
	return (__u32)found;
}

TABLE_INLINE __u32 vip_find6(const struct vip_line6 *line, const __u64 addr[2], __u32 key)
{
	__u64 found = 0;

#pragma GCC unroll 2
	for (int i = 0; i < VIPS6; i++) {
		const struct vip6 *v = &line->vip[i];
		__u64 differs = (v->addr[0] ^ addr[0]) | (v->addr[1] ^ addr[1]) | (v->key ^ key);

		found |= v->service & if_zero32((__u32)(differs | differs >> 32));
	}
	return (__u32)found;
}

#define VIPS_NUMBER(name) ((void)v, TABLE_NUMBER(v, VIP_CONSTANT(name)))
#define VIPS_AT(name)     ((void)v, TABLE_AT(v, VIP_CONSTANT(name)))

/* The service's number and 1, or 0: it is in no line. The datapath does not use v. */
TABLE_INLINE __u32 vip_service4(const struct tables *v, __u32 addr, __u32 key)
{
	__u64 line = vip_line(vip_hash4(addr, key, VIPS_NUMBER(V4_SEED)), VIPS_NUMBER(V4_LINES_N));

	if (!VIPS_NUMBER(V4_LINES_N))
		return 0;
	return vip_find4((const void *)(VIPS_AT(V4_LINES) + line * 64), addr, key);
}

TABLE_INLINE __u32 vip_service6(const struct tables *v, const __u64 addr[2], __u32 key)
{
	__u64 line = vip_line(vip_hash6(addr, key, VIPS_NUMBER(V6_SEED)), VIPS_NUMBER(V6_LINES_N));

	if (!VIPS_NUMBER(V6_LINES_N))
		return 0;
	return vip_find6((const void *)(VIPS_AT(V6_LINES) + line * 64), addr, key);
}
