// SPDX-License-Identifier: GPL-2.0-only
// Loads a policy whose services are in nat and fullnat, and fills the table of connections around
// it.
#include "tests/datapath/nat_chain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/clock.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/parts.h"
#include "ctl/table/nat_names.h"
#include "ctl/table/ring.h"
#include "tests/datapath/balance_rig.h"

// The modes are set after the plan, which has other services in mind.
#define SERVICE(name, vip, backend)                                                            \
	"service " name " {\n vip " vip "\n proto tcp, udp, sctp\n port 80, 53, 9\n mode dr\n" \
	" hash tuple\n ring 4093\n pins 1024\n check none\n backend " backend "\n}\n"

static const char policy[] = "seed \"nat\"\n" SERVICE("nat4", "10.0.0.1", "10.0.0.3")
	SERVICE("full4", "10.0.0.2", "10.0.0.3") SERVICE("nat6", "fd00::1", "fd00::3")
		SERVICE("full6", "fd00::2", "fd00::3");

static const struct hash_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};

_Noreturn static void die(int code, const char *what)
{
	struct err err = {0};

	err_system(&err, code, "%s", what);
	test_die(&err);
}

static void *map(struct mapping *m, int fd, size_t bytes)
{
	struct err err = {0};

	if (mapping_open(m, fd, bytes, &err))
		test_die(&err);
	return m->at;
}

// ---- the table ----------------------------------------------------------------------------------

static void add_block(const struct nat_chain *n, bool v6, uint32_t block)
{
	size_t bytes = NAT_PLACES * (v6 ? sizeof(struct nat_entry6) : sizeof(struct nat_entry4));
	int maps = v6 ? n->rig->instance->nat6 : n->rig->instance->nat4;
	CLEANUP_FD int fd = mapping_make("weir_places", bytes);

	if (fd < 0 || bpf_map_update_elem(maps, &block, &fd, BPF_ANY))
		die(errno, "cannot make a block");
}

static void add_end(struct nat_chain *n, struct nat_use *uses, uint32_t service, uint8_t proto,
		    uint16_t port)
{
	uint8_t family = service < 2 ? 4 : 6;
	bool fullnat = service % 2;
	struct nat_names_of_frame vip = nat_world_names(family, fullnat ? VIP_FULLNAT : VIP_NAT, 0);
	uint32_t number = ++n->ends;
	struct nat_end *end = &n->nat->end[number];

	*end = (struct nat_end){.port_proto = nat_port_proto(htons(port), proto), .family = family};
	memcpy(end->vip, vip.src, sizeof(end->vip));
	uses[number] = (struct nat_use){.service = service,
					.id = n->c->lb.lb->services[service].id,
					.mode = fullnat ? NAT_USE_FULLNAT : NAT_USE_NAT};
	if (nat_end_put(n->nat, number))
		die(ENOSPC, "an end has no cell");
}

// Block 0 is of nat, block 1 of fullnat.
static void fill_family(struct nat_chain *n, uint8_t family)
{
	bool v6 = family == 6;
	struct nat_names_of_frame names = nat_world_names(family, BACKEND, SOURCE);
	uint32_t backend[4];

	add_block(n, v6, 0);
	add_block(n, v6, 1);
	memcpy(n->nat->block[v6][1].source, names.dst, 16);
	if (nat_source_put(n->nat, family, 1))
		die(ENOSPC, "a source has no cell");
	memcpy(backend, names.src, sizeof(backend));
	nat_near_backend(n->nat, family, backend, NAT_CHAIN_PORT, IPPROTO_TCP);
	nat_near_backend(n->nat, family, backend, NAT_CHAIN_PORT, IPPROTO_UDP);
	nat_near_backend(n->nat, family, backend, 9, IPPROTO_SCTP);
	for (size_t c = 0; c < NAT_CELLS; c++) {
		n->nat->cell[0][v6][c] = 1;
		n->nat->cell[1][v6][c] = 2;
	}
}

static void fill(struct nat_chain *n, struct nat_use *uses)
{
	uint32_t shift = pin_shift(clock_hz()), hz = clock_hz();

	n->nat = map(&n->table, n->rig->instance->nat, sizeof(*n->nat));
	n->nat->key = ring_flow_key(&key);
	n->nat->shift = shift;
	n->nat->lives = nat_lives(pin_life(30ull * hz, shift),
				  pin_life((uint64_t)NAT_WORLD_IDLE_S * hz, shift),
				  pin_life(60ull * hz, shift));
	n->nat->device[RIG_IFACE] = n->rig->ifindex;
	for (uint32_t s = 0; s < 4; s++) {
		add_end(n, uses, s, IPPROTO_TCP, 80);
		add_end(n, uses, s, IPPROTO_UDP, 53);
		add_end(n, uses, s, IPPROTO_SCTP, 9);
	}
	fill_family(n, 4);
	fill_family(n, 6);
}

// ---- the policy ---------------------------------------------------------------------------------

static void load(struct nat_chain *n, struct nat_use *uses, bool former)
{
	struct generation_options options = {.load = &n->c->lb.load,
					     .general_only = rig_is_general_only(),
					     .reorders = rig_is_reordering()};
	struct err err = {0};

	if (lb_apply_plan(&n->c->lb, n->c->resolved, NULL, 0, n->c->diag, &err))
		test_die(&err);
	for (size_t s = 0; s < 4 && !former; s++)
		n->c->lb.lb->services[s].mode = s % 2 ? SERVICE_FULLNAT : SERVICE_NAT;
	fill(n, uses);
	for (uint32_t e = 1; e <= n->ends && former; e++)
		uses[e].mode = NAT_USE_FORMER;
	n->c->lb.load.uses = uses;
	if (generation_load(n->rig->instance, n->c->image, &options, &n->c->generation, NULL, &err))
		test_die(&err);
	n->use = map(&n->uses, n->c->generation->fd[PART_NAT_USES], NAT_ENDS * sizeof(*uses));
}

struct backend *nat_chain_backend(const struct nat_chain *n, uint8_t family, bool fullnat)
{
	const struct lb_state *lb = n->c->lb.lb;
	const struct lb_service *s = &lb->services[(family == 6 ? 2 : 0) + fullnat];

	return (struct backend *)n->backends.at + lb->members[s->first_member].id;
}

static void link_backend(const struct nat_chain *n, uint8_t family, bool fullnat)
{
	struct backend *b = nat_chain_backend(n, family, fullnat);
	const struct nat_names_of_frame names = nat_world_names(family, BACKEND, 0);

	*b = (struct backend){
		.mac = {2, 0, 0, 0, 0, 9},
		.mac_own = {2, 0, 0, 0, 0, 1},
		.mtu = 1500,
		.port = NAT_CHAIN_PORT,
		.ifindex = n->rig->ifindex,
		.family = family,
	};
	memcpy(b->addr, names.src, sizeof(b->addr));
}

void nat_chain_egress(const struct nat_chain *n, uint32_t ifindex)
{
	if (bpf_map_update_elem(n->c->generation->fd[PART_EGRESS], &ifindex, &ifindex, BPF_ANY))
		die(errno, "cannot redirect to a device");
}

struct nat_chain *nat_chain_new(bool former)
{
	static const struct dns_options no_names;
	static struct nat_use uses[NAT_ENDS];
	struct nat_chain *n = mem_new(struct nat_chain);
	struct err err = {0};
	size_t bytes;

	memset(uses, 0, sizeof(uses));
	n->rig = rig_new(64);
	n->c = candidate_new(&no_names, NULL);
	balance_rig_compile(n->c, policy);
	load(n, uses, former);
	if (mapping_bytes(n->c->generation->fd[PART_BACKENDS], &bytes, &err))
		test_die(&err);
	map(&n->backends, n->c->generation->fd[PART_BACKENDS], bytes);
	for (uint8_t family = 4; family <= 6; family += 2) {
		link_backend(n, family, false);
		link_backend(n, family, true);
	}
	rig_policy(n->rig, PROG_ACTIVE, n->c->generation);
	rig_iface(n->rig, RIG_IFACE);
	return n;
}

void nat_chain_free(struct nat_chain *n)
{
	if (!n)
		return;
	rig_policy(n->rig, PROG_ACTIVE, n->rig->policy);
	mapping_close(&n->table);
	mapping_close(&n->backends);
	mapping_close(&n->uses);
	candidate_free(n->c);
	rig_free(n->rig);
	free(n);
}

// ---- routes -------------------------------------------------------------------------------------

#define DEVICE "natany0"

static bool forward(const char *family)
{
	char path[64];
	CLEANUP_FD int fd = -1;

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/all/forwarding", family);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, "1", 1) == 1;
}

uint32_t nat_chain_route(void)
{
	if (system("{ ip link add " DEVICE " type veth peer name natany1 && "
		   "ip addr add 10.0.0.77/24 dev " DEVICE " && "
		   "ip addr add fd00::77/64 dev " DEVICE " nodad && "
		   "ip link set " DEVICE " up && ip link set natany1 up && "
		   "ip neigh add 10.0.0.5 lladdr 02:00:00:00:00:55 dev " DEVICE " && "
		   "ip neigh add fd00::5 lladdr 02:00:00:00:00:55 dev " DEVICE "; "
		   "} >/dev/null 2>&1") ||
	    !forward("ipv4") || !forward("ipv6"))
		return 0;
	return if_nametoindex(DEVICE);
}

void nat_chain_unroute(void)
{
	if (system("ip link del " DEVICE " >/dev/null 2>&1"))
		exit(2);
}
