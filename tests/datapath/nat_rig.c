// SPDX-License-Identifier: GPL-2.0-only
// Loads a policy with services in nat and fullnat, and runs frames through it.
#include "tests/datapath/nat_rig.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/parts.h"

_Noreturn static void die(int code, const char *what)
{
	struct err err = {0};

	err_system(&err, code, "%s", what);
	test_die(&err);
}

// ---- loading ------------------------------------------------------------------------------------

static void map_tables(struct nat_rig *r)
{
	int uses = r->policy->c->generation->fd[PART_NAT_USES];
	struct err err = {0};

	if (nat_maps_open(r->rig->instance, &r->maps, &err) ||
	    mapping_open(&r->uses, uses, NAT_ENDS * sizeof(struct nat_use), &err))
		test_die(&err);
	r->tables = nat_maps_tables(r->maps);
	r->nat = r->tables->nat;
	r->use = r->uses.at;
}

static struct backend *backend_of(const struct nat_rig *r, const struct lb_member *m)
{
	return (struct backend *)r->policy->backends.at + m->id;
}

static void link_backends(const struct nat_rig *r)
{
	const struct lb_state *lb = r->policy->c->lb.lb;

	for (size_t n = 0; n < lb->n_members; n++) {
		const struct lb_member *m = &lb->members[n];
		struct backend *b = backend_of(r, m);

		*b = (struct backend){
			.mac = {2, 0, 0, 0, 0, 9},
			.mac_own = {2, 0, 0, 0, 0, 1},
			.mtu = 1500,
			.port = m->port,
			.ifindex = r->rig->ifindex,
			.family = m->family,
		};
		memcpy(b->addr, m->addr, sizeof(b->addr));
	}
}

struct nat_rig *nat_rig_new(const char *policy, bool former)
{
	struct nat_rig *r = mem_new(struct nat_rig);

	r->rig = rig_new(64);
	balance_rig_leave_nat(former);
	r->policy = balance_rig_new(r->rig, policy);
	balance_rig_leave_nat(false);
	map_tables(r);
	link_backends(r);
	r->nat->resets_from = UINT64_MAX;
	return r;
}

void nat_rig_free(struct nat_rig *r)
{
	if (!r)
		return;
	mapping_close(&r->uses);
	nat_maps_close(r->maps);
	balance_rig_free(r->policy);
	rig_free(r->rig);
	free(r);
}

struct backend *nat_rig_backend(const struct nat_rig *r, uint32_t service)
{
	const struct lb_state *lb = r->policy->c->lb.lb;

	return backend_of(r, &lb->members[lb->services[service].first_member]);
}

uint32_t nat_rig_block(const struct nat_rig *r, uint8_t family, bool fullnat)
{
	return r->policy->c->lb.nat.plan->wish.list[fullnat][family == 6].at[0];
}

// ---- packets ------------------------------------------------------------------------------------

uint32_t nat_rig_send(const struct nat_rig *r, const uint8_t *frame, size_t len, uint8_t *out,
		      size_t *ret_len)
{
	struct xdp_md ctx = {.data_end = (uint32_t)len, .ingress_ifindex = r->rig->ifindex};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = (uint32_t)len,
		    .data_out = out, .data_size_out = (uint32_t)*ret_len, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx));

	if (bpf_prog_test_run_opts(r->rig->entry_prog, &opts))
		die(errno, "cannot run a frame");
	*ret_len = opts.data_size_out;
	return opts.retval;
}

void nat_rig_counts(const struct nat_rig *r, uint64_t ret[WEIR_REASON_COUNT])
{
	CLEANUP_FREE struct counter *values = NULL;
	struct err err = {0};
	size_t cpus;

	if (percpu_values(WEIR_REASON_COUNT, sizeof(*values), &values, &cpus, &err))
		test_die(&err);
	if (percpu_read(r->rig->instance->counters, RIG_IFACE * WEIR_REASON_COUNT,
			WEIR_REASON_COUNT, values))
		die(errno, "cannot read the counters of nat");
	memset(ret, 0, WEIR_REASON_COUNT * sizeof(*ret));
	for (size_t n = 0; n < WEIR_REASON_COUNT * cpus; n++)
		ret[n / cpus] += values[n].packets;
}

// ---- places -------------------------------------------------------------------------------------

static struct nat_entry4 *entry4(const struct nat_rig *r, uint64_t place)
{
	uint64_t in = place % NAT_PLACES;

	return &r->tables->places4[place / NAT_PLACES][in / NAT_BUCKET4].at[in % NAT_BUCKET4];
}

static struct nat_entry6 *entry6(const struct nat_rig *r, uint64_t place)
{
	uint64_t in = place % NAT_PLACES;

	return &r->tables->places6[place / NAT_PLACES][in / NAT_BUCKET6].at[in % NAT_BUCKET6];
}

uint64_t *nat_rig_word(const struct nat_rig *r, uint8_t family, uint64_t place)
{
	return (uint64_t *)(family == 4 ? &entry4(r, place)->word : &entry6(r, place)->word);
}

struct nat_key nat_rig_key(const struct nat_rig *r, uint8_t family, uint64_t place)
{
	const struct nat_entry6 *e6;

	if (family == 4)
		return (struct nat_key){.last = entry4(r, place)->last};
	e6 = entry6(r, place);
	return (struct nat_key){{e6->client[0], e6->client[1]}, e6->last};
}

void nat_rig_set_key(const struct nat_rig *r, uint8_t family, uint64_t place,
		     const struct nat_key *key)
{
	struct nat_entry6 *e6;

	if (family == 4) {
		entry4(r, place)->last = key->last;
		return;
	}
	e6 = entry6(r, place);
	e6->client[0] = key->client[0];
	e6->client[1] = key->client[1];
	e6->last = key->last;
}
