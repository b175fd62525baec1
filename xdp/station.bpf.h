/* SPDX-License-Identifier: GPL-2.0-only */
/* Is the frame addressed to this host?
 *
 * A switch floods frames to stations that it does not know. A host that forwards or answers those
 * multiplies them, and makes the switch learn a wrong port. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_helpers.h>

#include "xdp/count.bpf.h"
#include "xdp/parse.bpf.h"
#include "xdp/test.bpf.h"

/* The addresses that are not in knobs.station: of devices above the interface. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_STATIONS);
	__type(key, struct station_key);
	__type(value, __u32);
} stations SEC(".maps");

/* A frame to many gets no answer (RFC 1122 section 3.2.2, RFC 4443 section 2.4 (e.4)), and a frame
 * from many cannot be turned round. Group addresses have the lowest bit of their first byte set
 * (IEEE 802). */
static __always_inline bool is_between_two(const struct ethhdr *eth)
{
	return !((eth->h_dest[0] | eth->h_source[0]) & 1);
}

static __always_inline bool is_for_one(struct xdp_md *ctx)
{
	const struct ethhdr *eth = header_at(ctx, 0, sizeof(*eth));

	return eth && is_between_two(eth);
}

/* The destination of a frame. From the packed struct ethhdr the compiler loads single bytes. */
static __always_inline __u64 station_of(const __u8 *frame)
{
	return *(const __u32 *)frame | (__u64) * (const __u16 *)(frame + 4) << 32;
}

/* Is it the address of the interface? own: of knobs.station, not 0. */
static __always_inline bool is_own_station(__u64 own, __u64 mac)
{
	return own == (mac | STATION_KNOWN);
}

__noinline int is_above(__u32 number, __u64 mac)
{
	struct station_key key = {.number = number, .mac = mac};

	return bpf_map_lookup_elem(&stations, &key) != NULL;
}

/* A test packet is for this host. So are all frames on an interface whose addresses are not
 * known. */
static __always_inline bool is_for_us(struct xdp_md *ctx)
{
	const struct ethhdr *eth = header_at(ctx, 0, sizeof(*eth));
	__u32 number = iface_number(ctx);
	__u64 own = knobs.station[number & (WEIR_IFACES - 1)], mac;

	if (is_test() || !own || !eth)
		return true;
	mac = station_of((const void *)eth);
	return likely(is_own_station(own, mac)) || is_above(number, mac);
}
