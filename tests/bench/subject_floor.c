// SPDX-License-Identifier: GPL-2.0-only
// Fills the tables of the floors of the balancer.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "tests/bench/bench.h"
#include "tests/bench/floor.bpf.h"
#include "tests/bench/floor.h"
#include "tests/bench/floor_balance.skel.h"
#include "tests/bench/subject.h"

#define VIP  0xc6120001u // 198.18.0.1
#define PORT 80
#define MTU  1600

void floor_choose(const struct bpf_object *o, const char *program)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, o)
	{
		bpf_program__set_expected_attach_type(p, 0);
		bpf_program__set_flags(p, BPF_F_XDP_HAS_FRAGS);
		bpf_program__set_autoload(p, !strcmp(bpf_program__name(p), program));
	}
}

int floor_program(const struct bpf_object *o, const char *program)
{
	return bpf_program__fd(bpf_object__find_program_by_name(o, program));
}

// ---- the balancer -------------------------------------------------------------------------------

struct balancers {
	struct floor_balance_bpf *loads[SUBJECT_LOADS];
};

static void release_balancers(void *own)
{
	struct balancers *b = own;

	for (size_t i = 0; i < SUBJECT_LOADS; i++)
		floor_balance_bpf__destroy(b->loads[i]);
	free(b);
}

static uint32_t sum_of(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < 20; i += 2) {
		uint16_t word;

		memcpy(&word, ip + i, sizeof(word));
		sum += word;
	}
	return sum;
}

// From 10.0.0.1 to 10.0.1.NUMBER, protocol 4.
static void make_backend(uint8_t number, struct floor_backend *ret)
{
	const uint8_t head[FLOOR_HEAD] = {
		2,    0, 0, 0, 1, number, 2,    0, 0,  0, 0, 2, 8,  0, // Ethernet
		0x45, 0, 0, 0, 0, 0,      0x40, 0, 64, 4, 0, 0, 10, 0, 0, 1, 10, 0, 1, number,
	};

	memcpy(ret->head, head, sizeof(head));
	ret->sum = sum_of(head + 14);
	ret->ifindex = 1;
	ret->mtu = MTU;
}

static void put(const struct bpf_map *map, uint32_t index, const void *value)
{
	if (bpf_map_update_elem(bpf_map__fd(map), &index, value, BPF_ANY))
		bench_fail(errno, "cannot fill a floor");
}

static void fill_balancer(const struct floor_balance_bpf *skel, size_t n_backends, uint64_t *state)
{
	struct floor_line line = {.end[0] = {.address = htonl(VIP),
					     .port = htons(PORT),
					     .proto = IPPROTO_TCP,
					     .service = 1}};

	put(skel->maps.vips, floor_line_of(line.end[0].address, line.end[0].port), &line);
	for (uint32_t i = 0; i < FLOOR_SLOTS; i++) {
		uint64_t backend = random_next(state) % n_backends;

		put(skel->maps.slots, i, &backend);
	}
	for (uint32_t i = 0; i < n_backends; i++) {
		struct floor_backend backend = {0};

		make_backend((uint8_t)(i + 1), &backend);
		put(skel->maps.backends, i, &backend);
	}
}

static struct floor_balance_bpf *load_balancer(const char *program, size_t n_backends,
					       uint32_t buckets)
{
	struct floor_balance_bpf *skel = floor_balance_bpf__open();
	uint64_t state = 97, key[ARRAY_SIZE(skel->rodata->key)];
	int code;

	if (!skel)
		bench_fail(errno, "cannot open a floor");
	floor_choose(skel->obj, program);
	for (size_t i = 0; i < ARRAY_SIZE(key); i++)
		key[i] = random_next(&state) | 1;
	memcpy((void *)skel->rodata->key, key, sizeof(key));
	*(uint32_t *)&skel->rodata->buckets = buckets;
	if ((code = floor_balance_bpf__load(skel)))
		bench_fail(-code, "cannot load '%s'", program);
	fill_balancer(skel, n_backends, &state);
	for (size_t i = 0; i < buckets; i++)
		for (size_t pin = 0; pin < ARRAY_SIZE(skel->bss->pins[i].pin); pin++)
			skel->bss->pins[i].pin[pin] = random_next(&state);
	return skel;
}

static void load_balancers(const char *name, const char *program, size_t backends, uint32_t buckets,
			   struct subject *ret)
{
	struct balancers *b = mem_new(struct balancers);

	*ret = (struct subject){
		.name = name, .loads = SUBJECT_LOADS, .own = b, .release = release_balancers};
	for (size_t i = 0; i < SUBJECT_LOADS; i++) {
		b->loads[i] = load_balancer(program, backends, buckets);
		ret->programs[i] = floor_program(b->loads[i]->obj, program);
	}
}

void subject_floor_ipip(size_t backends, struct subject *ret)
{
	load_balancers("floor-ipip", "floor_ipip", backends, 0, ret);
}

void subject_pins_read(size_t pins, struct subject *ret)
{
	uint32_t buckets = 1;

	while (buckets < FLOOR_BUCKETS_MAX && buckets * sizeof(struct floor_bucket) < pins * 8)
		buckets *= 2;
	load_balancers("pins-read", "floor_pins", 1, buckets, ret);
}
