// SPDX-License-Identifier: GPL-2.0-only
// Loads the policy and fills the table of connections around it.
#include "tests/datapath/nat_policy_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/parts.h"
#include "ctl/table/nat_names.h"
#include "tests/datapath/balance_rig.h"
#include "tests/datapath/rig.h"

// The services are loaded in other modes than the text says.
static const char policy_text[] =
	"default pass\n"
	"drop from 10.0.0.66\n"
	"\"noisy\" pass from 10.0.0.77 log 1/s\n"
	"service near4 { vip 10.0.0.1; port 80; mode dr; backend 10.0.0.3 }\n"
	"service far4 { vip 10.0.0.2; port 80; mode dr; backend 10.0.0.3 }\n"
	"service near6 { vip fd00::1; port 80; mode dr; backend fd00::3 }\n"
	"service far6 { vip fd00::2; port 80; mode dr; backend fd00::3 }\n";

static void add_end(struct nat_policy *w, enum nat_policy_service number)
{
	const struct lb_service *s = &w->c->lb.lb->services[number];
	bool fullnat = number == FAR4 || number == FAR6;
	uint8_t family = number >= NEAR6 ? 6 : 4;
	struct nat_names_of_frame n = nat_world_names(family, fullnat ? VIP_FULLNAT : VIP_NAT, 0);
	uint32_t end = number + 1;

	w->nat->end[end] = (struct nat_end){.port_proto = nat_port_proto(htons(80), IPPROTO_TCP),
					    .family = family};
	memcpy(w->nat->end[end].vip, n.src, 16);
	w->uses[end] = (struct nat_use){
		.service = number, .id = s->id, .mode = fullnat ? NAT_USE_FULLNAT : NAT_USE_NAT};
	nat_end_put(w->nat, end);
}

static void add_block(struct nat_policy *w, bool v6, uint32_t block)
{
	size_t bytes = NAT_PLACES * (v6 ? sizeof(struct nat_entry6) : sizeof(struct nat_entry4));
	int blocks = v6 ? w->rig->instance->nat6 : w->rig->instance->nat4;
	CLEANUP_FD int fd = mapping_make("weir_places", bytes);
	struct err err = {0};

	if (fd < 0 || bpf_map_update_elem(blocks, &block, &fd, BPF_ANY) ||
	    mapping_open(&w->places[v6][block], fd, bytes, &err))
		test_die(&err);
	for (size_t c = 0; c < NAT_CELLS; c++)
		w->nat->cell[block][v6][c] = block + 1;
}

// The first block without a source, the second one with one.
static void fill_family(struct nat_policy *w, uint8_t family)
{
	struct nat_names_of_frame n = nat_world_names(family, BACKEND, SOURCE);
	bool v6 = family == 6;
	uint32_t backend[4];

	add_block(w, v6, 0);
	add_block(w, v6, 1);
	memcpy(w->nat->block[v6][1].source, n.dst, 16);
	nat_source_put(w->nat, family, 1);
	memcpy(backend, n.src, 16);
	nat_near_backend(w->nat, family, backend, 80, IPPROTO_TCP);
}

static void fill_table(struct nat_policy *w)
{
	uint32_t shift = pin_shift(clock_hz());
	struct err err = {0};

	if (mapping_open(&w->table, w->rig->instance->nat, sizeof(struct nat_table), &err))
		test_die(&err);
	w->nat = w->table.at;
	w->nat->shift = shift;
	w->nat->resets_from = UINT64_MAX;
	w->nat->lives =
		nat_lives(pin_life(30ull * clock_hz(), shift), pin_life(300ull * clock_hz(), shift),
			  pin_life(60ull * clock_hz(), shift));
	w->nat->device[RIG_IFACE] = w->rig->ifindex;
	for (enum nat_policy_service s = 0; s < NAT_POLICY_SERVICES; s++)
		add_end(w, s);
	fill_family(w, 4);
	fill_family(w, 6);
}

static void fill_backends(struct nat_policy *w)
{
	const struct lb_state *lb = w->c->lb.lb;
	struct err err = {0};
	size_t bytes;

	if (mapping_bytes(w->c->generation->fd[PART_BACKENDS], &bytes, &err) ||
	    mapping_open(&w->backends, w->c->generation->fd[PART_BACKENDS], bytes, &err))
		test_die(&err);
	for (size_t m = 0; m < lb->n_members; m++) {
		struct backend *to = (struct backend *)w->backends.at + lb->members[m].id;
		uint8_t family = lb->members[m].family;
		struct nat_names_of_frame n = nat_world_names(family, BACKEND, BACKEND);

		*to = (struct backend){.mac = {2, 0, 0, 0, 0, 9},
				       .mac_own = {2, 0, 0, 0, 0, 1},
				       .mtu = 1500,
				       .family = family,
				       .ifindex = w->rig->ifindex};
		memcpy(to->addr, n.src, sizeof(to->addr));
	}
}

static void set_modes(struct nat_policy *w, bool former)
{
	for (enum nat_policy_service s = 0; s < NAT_POLICY_SERVICES; s++)
		if (former)
			w->uses[s + 1].mode = NAT_USE_FORMER;
		else
			w->c->lb.lb->services[s].mode =
				s == FAR4 || s == FAR6 ? SERVICE_FULLNAT : SERVICE_NAT;
}

struct nat_policy *nat_policy_new(bool former)
{
	static const struct dns_options no_names;
	struct nat_policy *w = mem_new(struct nat_policy);
	struct generation_options options = {.general_only = rig_is_general_only(),
					     .reorders = rig_is_reordering()};
	struct err err = {0};

	w->rig = rig_new(64);
	w->c = candidate_new(&no_names, NULL);
	balance_rig_compile(w->c, policy_text);
	if (lb_apply_plan(&w->c->lb, w->c->resolved, NULL, 0, w->c->diag, &err))
		test_die(&err);
	fill_table(w);
	set_modes(w, former);
	for (size_t r = 0; r < w->c->image->n_rules; r++)
		w->c->image->rules[r].counter = (uint32_t)r;
	w->c->lb.load.uses = w->uses;
	options.load = &w->c->lb.load;
	if (generation_load(w->rig->instance, w->c->image, &options, &w->c->generation, &w->cost,
			    &err) ||
	    test_program_open(w->rig->instance, w->c->generation, &w->test, &err))
		test_die(&err);
	fill_backends(w);
	rig_policy(w->rig, PROG_ACTIVE, w->c->generation);
	rig_iface(w->rig, RIG_IFACE);
	return w;
}

void nat_policy_free(struct nat_policy *w)
{
	rig_policy(w->rig, PROG_ACTIVE, w->rig->policy);
	mapping_close(&w->table);
	mapping_close(&w->backends);
	for (int v6 = 0; v6 < 2; v6++) {
		mapping_close(&w->places[v6][0]);
		mapping_close(&w->places[v6][1]);
	}
	test_program_free(w->test);
	candidate_free(w->c);
	rig_free(w->rig);
	free(w);
}

int nat_policy_program(const struct nat_policy *w)
{
	return w->rig->entry_prog;
}

uint32_t nat_policy_ifindex(const struct nat_policy *w)
{
	return w->rig->ifindex;
}

size_t nat_policy_send(struct nat_policy *w, const uint8_t *frame, size_t len,
		       uint8_t out[NAT_WORLD_FRAME])
{
	struct frame f = {.len = len};
	struct outcome o;

	memcpy(f.at, frame, len);
	o = rig_try(w->rig, &f, 0);
	if (o.code || o.verdict != XDP_TX || o.out->len > NAT_WORLD_FRAME)
		return 0;
	memcpy(out, o.out->at, o.out->len);
	return o.out->len;
}
