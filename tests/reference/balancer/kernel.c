// SPDX-License-Identifier: GPL-2.0-only
// Loads a service, maps its tables, runs its packets.
#include "tests/reference/balancer/kernel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/lb_load.h"
#include "ctl/datapath/lb_maps.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/parts.h"
#include "ctl/table/compile.h"
#include "tests/reference/balancer/clock.h"
#include "tests/reference/balancer/packet.h"

struct kernel {
	struct generation *g;
	int clock_fd;
	struct mapping slots, pins, backends, service, clock;
	uint32_t row; // of the service's counters
	uint32_t ifindex;
	uint32_t here; // the backend that is this host
	int cpus;
	struct service_counter *cpu; // by CPU
	uint64_t counted[SERVICE_EVENT_COUNT];
	uint64_t sent;
};

_Noreturn static void die(const struct err *err)
{
	fprintf(stderr, "histories: %s%s%s\n", err->text, err->hint[0] ? ": " : "", err->hint);
	exit(2);
}

_Noreturn static void die_code(int code, const char *what)
{
	struct err err = {0};

	err_system(&err, code, "%s", what);
	die(&err);
}

// ---- loading ------------------------------------------------------------------------------------

#define VIP4(last)                                                 \
	{                                                          \
		.addr = 0xc0000200 + (last), .len = 32, .in = true \
	}
#define VIP6(last)                                                             \
	{                                                                      \
		.hi = 0x20010db8ffff0000, .lo = (last), .len = 128, .in = true \
	}

// A policy of one service with the addresses, ports and protocols to which histories send. They are
// few enough for lines (ctl/table/vips.h), so that the short program knows it.
static struct image *compile_service(uint32_t hz)
{
	static const struct resolved_prefix4 vips4[] = {VIP4(1), VIP4(2), VIP4(3), VIP4(10)};
	static const struct resolved_prefix6 vips6[] = {VIP6(1), VIP6(2), VIP6(3)};
	static const struct range16 ports = {440, 447};
	struct resolved_addresses vip = {
		.fixed = true,
		.v4 = vips4,
		.v6 = vips6,
		.n4 = ARRAY_SIZE(vips4),
		.n6 = ARRAY_SIZE(vips6),
	};
	struct resolved_service service = {
		.name = "all",
		.proto = {.given = true,
			  .bits = {1ull << IPPROTO_TCP | 1ull << IPPROTO_UDP, 0,
				   1ull << (IPPROTO_SCTP - 128)}},
		.ports = {.given = true, .at = &ports, .n = 1},
		.mode = SERVICE_IPIP,
	};
	struct resolved_file file = {.name = "histories.weir"};
	struct resolved r = {
		.addresses = &vip,
		.n_addresses = 1,
		.services = &service,
		.n_services = 1,
		.files = &file,
		.n_files = 1,
	};
	struct compile_options options = {.seed = 1, .hz = hz};
	CLEANUP_DIAG struct diag *diag = diag_new();
	struct image *image = NULL;

	if (compile(&r, &options, diag, &image)) {
		diag_print(diag, stderr, false);
		exit(2);
	}
	return image;
}

// With a backend for every number that a history may use.
static void load(struct kernel *k, const struct lb_service *s, uint32_t hz, bool general_only)
{
	CLEANUP_FREE struct backend *rows = mem_zalloc(SERVICE_BACKENDS, sizeof(*rows));
	CLEANUP_FREE uint64_t *slots = mem_zalloc(s->size, sizeof(*slots));
	CLEANUP_IMAGE struct image *image = compile_service(hz);
	struct lb_member last = {.id = SERVICE_BACKENDS - 1};
	struct lb_service service = *s;
	struct lb_state state = {&service, 1, &last, 1, slots, s->size};
	struct lb_load load = {.lb = &state, .backends = rows, .hz = hz};
	struct generation_options options = {.load = &load, .general_only = general_only};
	struct err err = {0};

	service.n_members = 1;
	if (generation_load(NULL, image, &options, &k->g, NULL, &err))
		die(&err);
}

static void map(struct mapping *m, int fd, size_t bytes)
{
	struct err err = {0};

	if (mapping_open(m, fd, bytes, &err))
		die(&err);
}

struct kernel *kernel_new(const struct lb_service *s, uint32_t hz, bool general_only)
{
	struct kernel *k = mem_new(struct kernel);

	load(k, s, hz, general_only);
	k->row = s->id;
	k->ifindex = if_nametoindex("lo");
	k->cpus = libbpf_num_possible_cpus();
	k->cpu = mem_zalloc(k->cpus > 0 ? (size_t)k->cpus : 1, sizeof(*k->cpu));
	k->clock_fd = clock_map(k->g->fd[PART_LB_PROGRAM]);
	if (k->clock_fd < 0)
		die_code(-k->clock_fd, "the program has no clock of its own");
	map(&k->clock, k->clock_fd, sizeof(uint64_t));
	map(&k->slots, k->g->fd[PART_RINGS], s->size * sizeof(uint64_t));
	map(&k->pins, k->g->pins.at[0].fd, s->buckets * sizeof(struct pin_bucket));
	map(&k->backends, k->g->fd[PART_BACKENDS], SERVICE_BACKENDS * sizeof(struct backend));
	map(&k->service, k->g->fd[PART_SERVICES], sizeof(struct service));
	return k;
}

void kernel_free(struct kernel *k)
{
	if (!k)
		return;
	mapping_close(&k->clock);
	mapping_close(&k->slots);
	mapping_close(&k->pins);
	mapping_close(&k->backends);
	mapping_close(&k->service);
	fd_close(k->clock_fd);
	generation_free(k->g);
	free(k->cpu);
	free(k);
}

struct kernel_tables kernel_tables(struct kernel *k)
{
	return (struct kernel_tables){k->slots.at, k->pins.at, k->backends.at, k->service.at,
				      k->clock.at};
}

// The address of a backend is its number: 10.0.0.0 + N, fd00:: + N.
void kernel_backend(struct kernel *k, uint32_t id, uint8_t family, enum backend_state state)
{
	struct backend row = {
		.family = family,
		.state = (uint8_t)state,
		.here = !family,
		.ifindex = k->ifindex,
		.mtu = 1500,
		.source_len = family == 4 ? 32 : 128,
	};

	if (family == 4)
		row.addr[0] = htonl(10u << 24 | id);
	if (family == 6) {
		row.addr[0] = htonl(0xfd000000);
		row.addr[3] = htonl(id);
	}
	if (!family && k->here && k->here != id)
		die_code(EEXIST, "more than one backend 'here'");
	if (!family)
		k->here = id;
	lb_backend_complete(&row);
	((struct backend *)k->backends.at)[id] = row;
}

// ---- packets ------------------------------------------------------------------------------------

// A packet may run on any CPU.
static void read_events(struct kernel *k, uint64_t ret_new[SERVICE_EVENT_COUNT])
{
	if (bpf_map_lookup_elem(k->g->fd[PART_BACKEND_COUNTERS], &k->row, k->cpu))
		die_code(errno, "cannot read the counters");
	for (int e = 0; e < SERVICE_EVENT_COUNT; e++) {
		uint64_t sum = 0;

		for (int c = 0; c < k->cpus; c++)
			sum += k->cpu[c].event[e];
		ret_new[e] = sum - k->counted[e];
		k->counted[e] = sum;
	}
}

// A passed frame is unchanged, a sent one encapsulated.
static uint32_t backend_of(const struct kernel *k, uint32_t verdict, const uint8_t *frame,
			   size_t len)
{
	uint32_t target;

	if (verdict == XDP_DROP)
		return BACKEND_NONE;
	if (verdict == XDP_PASS && k->here)
		return k->here;
	if (verdict != XDP_TX || !packet_target(frame, len, &target))
		die_code(EBADMSG, "a packet was neither sent nor passed");
	return target & (SERVICE_BACKENDS - 1);
}

void kernel_send(struct kernel *k, const uint8_t *frame, size_t len, struct kernel_answer *ret)
{
	struct xdp_md ctx = {.data_end = (uint32_t)len, .ingress_ifindex = k->ifindex};
	uint8_t out[PACKET_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = (uint32_t)len,
		    .data_out = out, .data_size_out = sizeof(out), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx));

	if (bpf_prog_test_run_opts(generation_program(k->g), &opts))
		die_code(errno, "cannot run a packet");
	k->sent++;
	ret->backend = backend_of(k, opts.retval, out, opts.data_size_out);
	read_events(k, ret->event);
}

uint64_t kernel_counted(const struct kernel *k, enum service_event event)
{
	return k->counted[event];
}

// For a first program, all packets; else the tally of packets passed on to it.
uint64_t kernel_general(const struct kernel *k)
{
	int general = generation_program_of(k->g, GENERATION_GENERAL);
	CLEANUP_FREE struct counter *cpus = mem_zalloc((size_t)k->cpus, sizeof(*cpus));
	uint32_t tally = WEIR_TALLY_FIRST + TALLY_GENERAL;
	CLEANUP_FD int counters = -1;
	uint64_t sum = 0;

	if (generation_program_of(k->g, GENERATION_SHORT) < 0)
		return k->sent;
	counters = map_of(general, "counters");
	if (counters < 0 || bpf_map_lookup_elem(counters, &tally, cpus))
		die_code(errno, "cannot read the tally of the general program");
	for (int c = 0; c < k->cpus; c++)
		sum += cpus[c].packets;
	return sum;
}
