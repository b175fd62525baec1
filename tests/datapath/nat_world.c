// SPDX-License-Identifier: GPL-2.0-only
// Builds a small world of nat and fullnat, and its frames.
#include "tests/datapath/nat_world.h"

#include <netinet/in.h>
#include <string.h>

#include "ctl/datapath/clock.h"

static const struct hash_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};

// ---- frames -------------------------------------------------------------------------------------

static void put16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

// TCP without a payload, its checksum 0x1234. Returns the length.
size_t nat_world_frame(const struct nat_names_of_frame *n, uint8_t flags, uint8_t *out)
{
	size_t ip = n->family == 4 ? 20 : 40, width = n->family == 4 ? 4 : 16;
	uint8_t *at = out + 14, *src = at + (n->family == 4 ? 12 : 8);

	memset(out, 0, 14 + 40 + 20);
	memcpy(out, (uint8_t[]){2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}, 12);
	put16(out + 12, n->family == 4 ? 0x0800 : 0x86dd);
	at[0] = n->family == 4 ? 0x45 : 0x60;
	put16(at + (n->family == 4 ? 2 : 4), n->family == 4 ? 40 : 20);
	at[n->family == 4 ? 8 : 7] = 64;
	at[n->family == 4 ? 9 : 6] = IPPROTO_TCP;
	memcpy(src, n->src, width);
	memcpy(src + width, n->dst, width);
	put16(at + ip, n->sport);
	put16(at + ip + 2, n->dport);
	at[ip + 12] = 0x50;
	at[ip + 13] = flags;
	put16(at + ip + 16, 0x1234);
	return 14 + ip + 20;
}

struct nat_names_of_frame nat_world_read(const uint8_t *frame)
{
	struct nat_names_of_frame n = {.family = frame[14] >> 4};
	size_t ip = n.family == 4 ? 20 : 40, width = n.family == 4 ? 4 : 16;
	const uint8_t *at = frame + 14, *src = at + (n.family == 4 ? 12 : 8);

	memcpy(n.src, src, width);
	memcpy(n.dst, src + width, width);
	n.sport = get16(at + ip);
	n.dport = get16(at + ip + 2);
	return n;
}

// ---- the rig ------------------------------------------------------------------------------------

struct nat_names_of_frame nat_world_names(uint8_t family, uint8_t src, uint8_t dst)
{
	struct nat_names_of_frame n = {.family = family, .sport = 40000, .dport = 80};

	n.src[0] = n.dst[0] = family == 4 ? 10 : 0xfd;
	n.src[family == 4 ? 3 : 15] = src;
	n.dst[family == 4 ? 3 : 15] = dst;
	return n;
}

struct nat_rig *nat_world_new(void)
{
	struct nat_rig *r = nat_rig_new(&key, clock_hz());
	const struct backend hop = {
		.mac = {2, 0, 0, 0, 0, 9},
		.mac_own = {2, 0, 0, 0, 0, 1},
		.mtu = 1500,
		.port = 8080,
		.ifindex = r->ifindex,
	};

	nat_rig_lives(r, (uint64_t)30 * clock_hz(), (uint64_t)NAT_WORLD_IDLE_S * clock_hz(),
		      (uint64_t)60 * clock_hz(), clock_hz());
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct nat_names_of_frame n = nat_world_names(family, VIP_NAT, VIP_FULLNAT);
		struct nat_names_of_frame m = nat_world_names(family, BACKEND, SOURCE);
		uint32_t id = family == 4 ? 1 : 2;

		nat_rig_end(r, family, n.src, 80, IPPROTO_TCP, false);
		nat_rig_end(r, family, n.dst, 80, IPPROTO_TCP, true);
		nat_rig_source(r, family, 1, m.dst);
		nat_rig_cells(r, family, false, (uint8_t[]){0}, 1);
		nat_rig_cells(r, family, true, (uint8_t[]){1}, 1);
		nat_rig_backend(r, id, family, m.src, &hop);
		for (uint32_t s = 0; s < NAT_RIG_RING; s++)
			r->slots[(family == 6 ? NAT_RIG_RING : 0) + s] = slot_pack(id, 0, 0);
	}
	return r;
}
