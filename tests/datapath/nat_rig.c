// SPDX-License-Identifier: GPL-2.0-only
// Loads the programs of nat and fullnat around maps of their own, and runs frames through them.
#include "tests/datapath/nat_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "common/policy.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/markers.h"
#include "ctl/datapath/program_load.h"
#include "ctl/table/nat_names.h"
#include "ctl/table/ring.h"
#include "xdp/policy.skel.h"

#define LOG_BYTES (16u << 20)

_Noreturn static void die(const struct err *err)
{
	fprintf(stderr, "nat: %s%s%s\n", err->text, err->hint[0] ? ": " : "", err->hint);
	exit(2);
}

_Noreturn static void die_code(int code, const char *what)
{
	struct err err = {0};

	err_system(&err, code, "%s", what);
	die(&err);
}

// ---- loading ------------------------------------------------------------------------------------

static void table(struct bpf_map *map, struct markers *m, enum marker_number number, size_t n,
		  size_t size)
{
	markers_address(m, number, bpf_map__name(map), 0);
	markers_number(m, number + 1, n); // the next marker
	if (bpf_map__set_value_size(map, (uint32_t)(n * size)))
		die_code(EINVAL, "cannot size a map");
}

// Only these two programs.
static void choose(struct policy_bpf *skel)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, skel->obj)
	{
		bpf_program__set_autoload(program, program == skel->progs.weir_nat ||
							   program == skel->progs.weir_nat_answer);
	}
}

static void prepare(struct policy_bpf *skel, struct markers *m)
{
	for (enum marker_number n = 0; n < MARKERS; n++)
		markers_number(m, n, 0);
	table(skel->maps.services, m, MARK_SERVICES, 2, sizeof(struct service));
	table(skel->maps.rings, m, MARK_SLOTS, 2 * NAT_RIG_RING, sizeof(uint64_t));
	table(skel->maps.backends, m, MARK_BACKENDS, NAT_RIG_BACKENDS, sizeof(struct backend));
	markers_number(m, MARK_NATS, 1);
	markers_address(m, MARK_NAT, bpf_map__name(skel->maps.nat_table), 0);
	markers_address(m, MARK_NAT_USES, bpf_map__name(skel->maps.nat_uses), 0);
	if (bpf_map__set_value_size(skel->maps.nat_uses, NAT_ENDS * sizeof(struct nat_use)) ||
	    bpf_map__set_max_entries(skel->maps.balanced, NAT_RIG_BACKENDS) ||
	    bpf_map__set_max_entries(skel->maps.egress, 8))
		die_code(EINVAL, "cannot size a map");
}

// Prints the verifier's last words if the kernel refuses a program.
static void load(struct policy_bpf *skel, const struct markers *m)
{
	CLEANUP_FREE char *log = mem_zalloc(1, LOG_BYTES);
	struct err err = {0};
	bool short_refused;

	bpf_program__set_log_buf(skel->progs.weir_nat, log, LOG_BYTES);
	bpf_program__set_log_buf(skel->progs.weir_nat_answer, log, LOG_BYTES);
	if (markers_load(skel, m, &short_refused, &err)) {
		size_t length = strlen(log);

		fprintf(stderr, "%s\n", log + (length > 3000 ? length - 3000 : 0));
		die(&err);
	}
	bpf_program__set_log_buf(skel->progs.weir_nat, NULL, 0);
	bpf_program__set_log_buf(skel->progs.weir_nat_answer, NULL, 0);
}

static void *map(struct mapping *m, const struct bpf_map *map)
{
	struct err err = {0};

	if (mapping_open(m, bpf_map__fd(map), bpf_map__value_size(map), &err))
		die(&err);
	return m->at;
}

static void map_all(struct nat_rig *r)
{
	struct policy_bpf *skel = r->skel;

	r->nat = map(&r->table, skel->maps.nat_table);
	r->use = map(&r->uses, skel->maps.nat_uses);
	r->service = map(&r->services, skel->maps.services);
	r->slots = map(&r->rings, skel->maps.rings);
	r->backend = map(&r->backends, skel->maps.backends);
}

// The places of a block.
static void *add_block(struct nat_rig *r, bool v6, uint32_t block)
{
	size_t bytes = NAT_PLACES * (v6 ? sizeof(struct nat_entry6) : sizeof(struct nat_entry4));
	const struct bpf_map *blocks = v6 ? r->skel->maps.nat6 : r->skel->maps.nat4;
	CLEANUP_FD int fd = mapping_make("weir_places", bytes);
	struct err err = {0};

	if (fd < 0 || bpf_map_update_elem(bpf_map__fd(blocks), &block, &fd, BPF_ANY))
		die_code(errno, "cannot make a block");
	if (mapping_open(&r->places[v6][block], fd, bytes, &err))
		die(&err);
	r->tables.nat = r->nat;
	return r->places[v6][block].at;
}

static void add_blocks(struct nat_rig *r)
{
	for (uint32_t block = 0; block < NAT_RIG_BLOCKS; block++) {
		r->tables.places4[block] = add_block(r, false, block);
		r->tables.places6[block] = add_block(r, true, block);
	}
}

static void link_out(const struct nat_rig *r)
{
	uint32_t out = NAT_RIG_OUT, in = r->ifindex;

	if (bpf_map_update_elem(bpf_map__fd(r->skel->maps.egress), &out, &in, BPF_ANY))
		die_code(errno, "cannot redirect to a device");
}

struct nat_rig *nat_rig_new(const struct hash_key *key, uint32_t hz)
{
	struct nat_rig *r = mem_new(struct nat_rig);
	struct markers markers = {0};

	r->skel = markers_open();
	if (!r->skel)
		die_code(errno, "cannot open the programs of nat");
	choose(r->skel);
	prepare(r->skel, &markers);
	load(r->skel, &markers);
	map_all(r);
	add_blocks(r);
	r->ifindex = if_nametoindex("lo");
	link_out(r);
	r->nat->key = ring_flow_key(key);
	r->nat->shift = pin_shift(hz);
	r->nat->resets_from = UINT64_MAX; // a packet of no connection is not left to other programs
	r->nat->device[NAT_RIG_NUMBER] = r->ifindex;
	r->nat->device[NAT_RIG_OTHER] = NAT_RIG_OUT;
	for (uint32_t s = 0; s < 2; s++)
		r->service[s] = (struct service){
			.size = NAT_RIG_RING,
			.first_slot = s * NAT_RIG_RING,
			.key = r->nat->key,
		};
	r->skel->data_knobs->knobs.iface_rest = NAT_RIG_NUMBER;
	return r;
}

void nat_rig_free(struct nat_rig *r)
{
	if (!r)
		return;
	mapping_close(&r->table);
	mapping_close(&r->uses);
	for (uint32_t block = 0; block < NAT_RIG_BLOCKS; block++) {
		mapping_close(&r->places[0][block]);
		mapping_close(&r->places[1][block]);
	}
	mapping_close(&r->services);
	mapping_close(&r->rings);
	mapping_close(&r->backends);
	policy_bpf__destroy(r->skel);
	free(r);
}

int nat_rig_program(const struct nat_rig *r, bool answers)
{
	return bpf_program__fd(answers ? r->skel->progs.weir_nat_answer : r->skel->progs.weir_nat);
}

uint32_t nat_rig_verified(const struct nat_rig *r, bool answers)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(nat_rig_program(r, answers), &info, &size))
		die_code(errno, "cannot ask for a program");
	return info.verified_insns;
}

// ---- tables -------------------------------------------------------------------------------------

uint32_t nat_rig_end(struct nat_rig *r, uint8_t family, const uint8_t *vip, uint16_t port,
		     uint8_t proto, bool fullnat)
{
	uint32_t number = ++r->ends;
	struct nat_end *end = &r->nat->end[number];

	*end = (struct nat_end){.port_proto = nat_port_proto(htons(port), proto), .family = family};
	r->use[number] = (struct nat_use){.service = family == 6,
					  .mode = fullnat ? NAT_USE_FULLNAT : NAT_USE_NAT};
	memcpy(end->vip, vip, sizeof(end->vip));
	if (nat_end_put(r->nat, number))
		die_code(ENOSPC, "an end has no cell");
	return number;
}

void nat_rig_source(struct nat_rig *r, uint8_t family, uint32_t block, const uint8_t *address)
{
	memcpy(r->nat->block[family == 6][block].source, address, 16);
	if (nat_source_put(r->nat, family, block))
		die_code(ENOSPC, "a source has no cell");
}

void nat_rig_cells(struct nat_rig *r, uint8_t family, bool fullnat, const uint8_t *blocks, size_t n)
{
	uint64_t cell = 0;

	for (size_t i = 0; i < n; i++)
		cell |= (uint64_t)(blocks[i] + 1) << 8 * i;
	for (size_t c = 0; c < NAT_CELLS; c++)
		r->nat->cell[fullnat][family == 6][c] = cell;
}

void nat_rig_backend(struct nat_rig *r, uint32_t id, uint8_t family, const uint8_t *address,
		     const struct backend *hop)
{
	r->backend[id] = *hop;
	r->backend[id].family = family;
	memcpy(r->backend[id].addr, address, sizeof(r->backend[id].addr));
	for (uint32_t e = 1; e <= r->ends; e++) {
		const struct nat_end *end = &r->nat->end[e];
		uint16_t port = hop->port ? hop->port : ntohs((uint16_t)end->port_proto);

		if (end->family == family)
			nat_near_backend(r->nat, family, r->backend[id].addr, port,
					 (uint8_t)(end->port_proto >> 16));
	}
}

void nat_rig_lives(struct nat_rig *r, uint64_t opening, uint64_t talks, uint64_t closing,
		   uint32_t hz)
{
	uint32_t shift = pin_shift(hz);

	r->nat->lives = nat_lives(pin_life(opening, shift), pin_life(talks, shift),
				  pin_life(closing, shift));
}

// ---- packets ------------------------------------------------------------------------------------

uint32_t nat_rig_send(const struct nat_rig *r, bool answer, const uint8_t *frame, size_t len,
		      uint8_t *out, size_t *ret_len)
{
	struct xdp_md ctx = {.data_end = (uint32_t)len, .ingress_ifindex = r->ifindex};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = (uint32_t)len,
		    .data_out = out, .data_size_out = (uint32_t)*ret_len, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx));

	if (bpf_prog_test_run_opts(nat_rig_program(r, answer), &opts))
		die_code(errno, "cannot run a frame");
	*ret_len = opts.data_size_out;
	return opts.retval;
}

void nat_rig_counts(const struct nat_rig *r, uint64_t ret[WEIR_REASON_COUNT])
{
	int fd = bpf_map__fd(r->skel->maps.counters);
	CLEANUP_FREE struct counter *values = NULL;
	struct err err = {0};
	size_t cpus;

	if (percpu_values(WEIR_COUNTERS, sizeof(*values), &values, &cpus, &err))
		die(&err);
	if (percpu_read(fd, 0, WEIR_COUNTERS, values))
		die_code(errno, "cannot read the counters of nat");
	for (uint32_t n = 0; n < WEIR_REASON_COUNT; n++) {
		const struct counter *at = &values[(NAT_RIG_NUMBER * WEIR_REASON_COUNT + n) * cpus];

		ret[n] = 0;
		for (size_t c = 0; c < cpus; c++)
			ret[n] += at[c].packets;
	}
}

static struct nat_entry4 *entry4(const struct nat_rig *r, uint64_t place)
{
	uint64_t in = place % NAT_PLACES;

	return &r->tables.places4[place / NAT_PLACES][in / NAT_BUCKET4].at[in % NAT_BUCKET4];
}

static struct nat_entry6 *entry6(const struct nat_rig *r, uint64_t place)
{
	uint64_t in = place % NAT_PLACES;

	return &r->tables.places6[place / NAT_PLACES][in / NAT_BUCKET6].at[in % NAT_BUCKET6];
}

uint64_t *nat_rig_word(const struct nat_rig *r, uint8_t family, uint64_t place)
{
	return (uint64_t *)(family == 4 ? &entry4(r, place)->word : &entry6(r, place)->word);
}

struct nat_key nat_rig_key(const struct nat_rig *r, uint8_t family, uint64_t place)
{
	const struct nat_entry6 *e6 = entry6(r, place);

	if (family == 4)
		return (struct nat_key){.last = entry4(r, place)->last};
	return (struct nat_key){{e6->client[0], e6->client[1]}, e6->last};
}

void nat_rig_set_key(const struct nat_rig *r, uint8_t family, uint64_t place,
		     const struct nat_key *key)
{
	struct nat_entry6 *e6 = entry6(r, place);

	if (family == 4) {
		entry4(r, place)->last = key->last;
		return;
	}
	e6->client[0] = key->client[0];
	e6->client[1] = key->client[1];
	e6->last = key->last;
}
