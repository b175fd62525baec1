// SPDX-License-Identifier: GPL-2.0-only
// Katran's balancer as a peer: its own program, with maps filled as its library fills them.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "tests/bench/balance.h"
#include "tests/bench/peer.h"

#define RING  65537   // slots of a VIP
#define FLOWS 1048576 // that a CPU remembers

// Keys and values of Katran's maps, in network order unless noted otherwise.
struct katran_vip {
	uint32_t address[4];
	uint16_t port;
	uint8_t proto, pad;
};
struct katran_service {
	uint32_t flags, number; // host order
};
struct katran_real {
	uint32_t address[4];
	uint8_t flags, pad[3];
};
struct katran_control {
	uint8_t mac[6], pad[2];
};

static int map_of(const struct subject *s, const char *name, size_t key_bytes, size_t value_bytes)
{
	int map = peer_map(s, name);
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	if (map < 0 || bpf_obj_get_info_by_fd(map, &info, &size))
		bench_fail(ENOENT, "cannot find Katran's map '%s'", name);
	if (info.key_size != key_bytes || info.value_size != value_bytes)
		bench_fail(EPROTO,
			   "Katran's map '%s' has %u bytes a key and %u a value, not %zu and %zu",
			   name, info.key_size, info.value_size, key_bytes, value_bytes);
	return map;
}

static void put(const struct subject *s, const char *name, const void *key, size_t key_bytes,
		const void *value, size_t value_bytes)
{
	if (bpf_map_update_elem(map_of(s, name, key_bytes, value_bytes), key, value, BPF_ANY))
		bench_fail(errno, "cannot fill Katran's map '%s'", name);
}

#define PUT(s, name, key, value) put(s, name, &(key), sizeof(key), &(value), sizeof(value))

// The ring of Maglev (Eisenbud et al. 2016, section 3.4). Backends are numbered from 1 on.
static void fill_ring(uint32_t *ring)
{
	uint32_t offset[BALANCE_BACKENDS], skip[BALANCE_BACKENDS], filled = 0;
	uint64_t state = 101;

	for (size_t b = 0; b < BALANCE_BACKENDS; b++) {
		offset[b] = (uint32_t)(random_next(&state) % RING);
		skip[b] = (uint32_t)(random_next(&state) % (RING - 1)) + 1;
	}
	for (size_t b = 0; filled < RING; b = (b + 1) % BALANCE_BACKENDS, filled++) {
		while (ring[offset[b]])
			offset[b] = (offset[b] + skip[b]) % RING;
		ring[offset[b]] = (uint32_t)b + 1;
	}
}

static void put_ring(const struct subject *s)
{
	CLEANUP_FREE uint32_t *ring = mem_zalloc(RING, sizeof(*ring));
	CLEANUP_FREE uint32_t *keys = mem_zalloc(RING, sizeof(*keys));
	uint32_t n = RING;

	fill_ring(ring);
	for (uint32_t i = 0; i < RING; i++)
		keys[i] = i;
	if (bpf_map_update_batch(map_of(s, "ch_rings", sizeof(*keys), sizeof(*ring)), keys, ring,
				 &n, NULL))
		bench_fail(errno, "cannot fill Katran's ring");
}

static void put_service(const struct subject *s)
{
	struct katran_vip vip = {.port = htons(BALANCE_PORT), .proto = IPPROTO_TCP};
	const struct katran_service service = {0};
	const struct katran_control gateway = {.mac = {2, 0, 0, 0, 1, 1}};
	uint32_t zero = 0;

	inet_pton(AF_INET, BALANCE_VIP, vip.address);
	PUT(s, "vip_map", vip, service);
	PUT(s, "ctl_array", zero, gateway);
	for (uint32_t number = 1; number <= BALANCE_BACKENDS; number++) {
		const struct katran_real real = {.address = {htonl(0x0a000100 | number)}};

		PUT(s, "reals", number, real);
	}
}

// The table of flows of the CPU that runs packets. It has the same form as the common one.
static void put_flows(const struct subject *s, int cpu)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info), key = (uint32_t)cpu;
	int flows;

	if (bpf_obj_get_info_by_fd(peer_map(s, "fallback_cache"), &info, &size))
		bench_fail(errno, "cannot find Katran's map 'fallback_cache'");
	flows = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "flows", info.key_size, info.value_size,
			       FLOWS, NULL);
	if (flows < 0)
		bench_fail(errno, "cannot make a table of flows for Katran");
	PUT(s, "lru_mapping", key, flows);
	close(flows);
}

void subject_katran(const char *folder, const char *mode, int cpu, struct subject *ret)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s.o", folder, mode);
	const struct peer_form f = {.name = "katran", .path = path, .program = "balancer_ingress"};
	const struct katran_real source = {.address = {htonl(0x0a000001)}};
	uint32_t zero = 0;

	peer_need(&f, ret);
	put_service(ret);
	put_ring(ret);
	put_flows(ret, cpu);
	if (!strcmp(mode, "gue"))
		PUT(ret, "pckt_srcs", zero, source);
}
