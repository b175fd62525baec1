// SPDX-License-Identifier: GPL-2.0-only
// Gives ends and blocks their numbers.
#include "ctl/table/nat_plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/policy/intervals.h"
#include "ctl/table/nat_cells.h"
#include "ctl/table/nat_near.h"

#define HEADS 4096 // of chains of ends

struct nat_work {
	const struct resolved *r;
	const struct lb_state *lb;
	const struct nat_plan_options *o;
	struct diag *diag;
	struct nat_plan *plan;
	uint16_t head[HEADS], next[NAT_ENDS]; // chains of ends by their hash; 0: the last
	uint32_t last;                        // number of an end that was given last
	struct nat_set taken[2];              // blocks that exist, or that the plan makes
	uint64_t connections[2];              // that nat asks for, by family
	bool full, failed;
};

bool nat_set_has(const struct nat_set *s, uint32_t block)
{
	return s->bits[block / 64] >> block % 64 & 1;
}

void nat_set_add(struct nat_set *s, uint32_t block)
{
	s->bits[block / 64] |= 1ull << block % 64;
}

static bool is_nat(const struct resolved_service *s)
{
	return service_mode_does(s->mode) & MODE_NAT;
}

static bool has_source(const struct resolved_service *s)
{
	return service_mode_does(s->mode) & MODE_SOURCE;
}

// Its VIPs and backends are of one family.
static int family_of(const struct nat_work *w, const struct resolved_service *s)
{
	return w->r->addresses[s->vip].n4 ? 4 : 6;
}

static void copy_address(__u32 to[4], const struct addr *from)
{
	memset(to, 0, 16);
	memcpy(to, from->bytes, from->family == 4 ? 4 : 16);
}

// ---- ends ---------------------------------------------------------------------------------------

static uint32_t chain_of(const struct nat_end *e)
{
	return nat_mix((int)e->family, e->vip, e->port_proto) % HEADS;
}

static void chain(struct nat_work *w, uint32_t number)
{
	uint16_t *head = &w->head[chain_of(&w->plan->end[number])];

	w->next[number] = *head;
	*head = (uint16_t)number;
}

static void take_over_ends(struct nat_work *w)
{
	if (!w->o->table)
		return;
	memcpy(w->plan->end, w->o->table->end, sizeof(w->plan->end));
	for (uint32_t n = 1; n < NAT_ENDS; n++)
		if (w->plan->end[n].port_proto) {
			chain(w, n);
			w->last = n;
		}
}

static uint32_t find_end(const struct nat_work *w, const struct nat_end *e)
{
	uint32_t n = w->head[chain_of(e)];

	while (n && memcmp(&w->plan->end[n], e, sizeof(*e)) != 0)
		n = w->next[n];
	return n;
}

// Begins above the highest number, so that numbers rest before they are given again.
static uint32_t new_end(struct nat_work *w, const struct nat_end *e)
{
	for (uint32_t i = 1; i < NAT_ENDS; i++) {
		uint32_t n = 1 + (w->last - 1 + i) % (NAT_ENDS - 1);

		if (w->plan->end[n].port_proto)
			continue;
		w->plan->end[n] = *e;
		w->last = n;
		chain(w, n);
		return n;
	}
	return 0;
}

static void refuse_ends(struct nat_work *w, const struct resolved_service *s)
{
	if (!w->full)
		diag_error(w->diag, s->at, "fewer ports, or fewer addresses",
			   "service '%s': modes nat and fullnat have room for %d combinations of "
			   "VIP, port and protocol",
			   s->name, NAT_ENDS - 1);
	w->full = w->failed = true;
}

static void add_end(struct nat_work *w, size_t service, const struct nat_end *e)
{
	const struct resolved_service *s = &w->r->services[service];
	uint32_t n = find_end(w, e);

	if (!n && !(n = new_end(w, e))) {
		refuse_ends(w, s);
		return;
	}
	w->plan->use[n] = (struct nat_use){
		.service = (uint32_t)service,
		.id = w->lb->services[service].id,
		.mode = has_source(s) ? NAT_USE_FULLNAT : NAT_USE_NAT,
	};
}

static void add_ports(struct nat_work *w, size_t service, struct nat_end e, unsigned proto)
{
	const struct resolved_ranges *ports = &w->r->services[service].ports;

	for (size_t i = 0; i < ports->n; i++)
		for (uint32_t p = ports->at[i].first; p <= ports->at[i].last && !w->full; p++) {
			e.port_proto = nat_port_proto(htons((uint16_t)p), (uint8_t)proto);
			add_end(w, service, &e);
		}
}

static void add_vip(struct nat_work *w, size_t service, const struct addr *vip)
{
	const struct resolved_service *s = &w->r->services[service];
	struct nat_end e = {.family = vip->family};

	copy_address(e.vip, vip);
	for (unsigned proto = 0; proto < 256; proto++)
		if (bits_has(s->proto.bits, proto))
			add_ports(w, service, e, proto);
}

static void add_ends(struct nat_work *w, size_t service)
{
	const struct resolved_service *s = &w->r->services[service];
	uint8_t family = (uint8_t)family_of(w, s);
	struct intervals vips = {0};

	intervals_of(&w->r->addresses[s->vip], family, &vips);
	for (size_t i = 0; i < vips.n; i++)
		for (address_number n = vips.at[i].first; n <= vips.at[i].last && !w->full; n++) {
			struct addr vip = interval_addr(n, family);

			add_vip(w, service, &vip);
		}
	intervals_free(&vips);
}

// ---- ends of services that have another mode now ------------------------------------------------

static bool has_port(const struct resolved_service *s, uint16_t port)
{
	for (size_t i = 0; i < s->ports.n; i++)
		if (port >= s->ports.at[i].first && port <= s->ports.at[i].last)
			return true;
	return s->any_port;
}

static bool covers(const struct resolved *r, const struct resolved_service *s,
		   const struct nat_end *e)
{
	struct addr vip = {.family = (uint8_t)e->family};

	memcpy(vip.bytes, e->vip, e->family == 4 ? 4 : 16);
	return bits_has(s->proto.bits, e->port_proto >> 16) &&
	       has_port(s, ntohs((uint16_t)e->port_proto)) &&
	       resolved_contains(&r->addresses[s->vip], &vip, NULL);
}

// Returns whether there is such a service.
static bool plan_former(struct nat_work *w, uint32_t number)
{
	for (size_t s = 0; s < w->r->n_services; s++) {
		if (!covers(w->r, &w->r->services[s], &w->plan->end[number]))
			continue;
		w->plan->use[number] = (struct nat_use){
			.service = (uint32_t)s,
			.id = w->lb->services[s].id,
			.mode = NAT_USE_FORMER,
		};
		return true;
	}
	return false;
}

static bool plan_formers(struct nat_work *w)
{
	bool some = false;

	for (uint32_t n = 1; w->o->kept && n < NAT_ENDS; n++)
		if (w->o->kept[n] && w->plan->end[n].port_proto &&
		    w->plan->use[n].mode == NAT_USE_NONE)
			some |= plan_former(w, n);
	return some;
}

// ---- blocks -------------------------------------------------------------------------------------

static bool same_source(const struct nat_block *b, const __u32 source[4])
{
	return !memcmp(b->source, source, sizeof(b->source));
}

static bool is_listed(const struct nat_list *l, uint32_t block)
{
	return memchr(l->at, (int)block, l->n);
}

// A block with this source that exists, or one that the plan has made. NAT_BLOCKS: no such block.
static uint32_t find_block(const struct nat_work *w, int v6, const __u32 source[4])
{
	for (uint32_t b = 0; b < NAT_BLOCKS; b++)
		if (nat_set_has(&w->taken[v6], b) &&
		    same_source(&w->plan->wish.block[v6][b], source))
			return b;
	return NAT_BLOCKS;
}

static uint32_t new_block(struct nat_work *w, int v6, const __u32 source[4])
{
	for (uint32_t b = 0; b < NAT_BLOCKS; b++) {
		if (nat_set_has(&w->taken[v6], b))
			continue;
		nat_set_add(&w->taken[v6], b);
		memcpy(w->plan->wish.block[v6][b].source, source,
		       sizeof(w->plan->wish.block[v6][b].source));
		return b;
	}
	return NAT_BLOCKS;
}

static void refuse_blocks(struct nat_work *w, const struct resolved_service *s)
{
	if (!w->full)
		diag_error(w->diag, s->at, "a smaller number of connections, or fewer sources",
			   "service '%s': a family has room for %d sources, and %d connections of "
			   "mode nat take as much as one; a removed one counts while it is used",
			   s->name, NAT_BLOCKS, NAT_BLOCK_ROOM);
	w->full = w->failed = true;
}

static void list_block(struct nat_work *w, const struct resolved_service *s, struct nat_list *l,
		       uint32_t block)
{
	if (block == NAT_BLOCKS)
		refuse_blocks(w, s);
	else if (!is_listed(l, block))
		l->at[l->n++] = (uint8_t)block;
}

static void add_source(struct nat_work *w, const struct resolved_service *s, const struct addr *a)
{
	int v6 = a->family == 6;
	__u32 source[4];
	uint32_t block;

	copy_address(source, a);
	block = find_block(w, v6, source);
	if (block == NAT_BLOCKS)
		block = new_block(w, v6, source);
	list_block(w, s, &w->plan->wish.list[1][v6], block);
}

// A prefix of sources has at most 2^POLICY_NAT_SOURCE_BITS addresses, in the last byte.
static void add_sources(struct nat_work *w, const struct resolved_service *s)
{
	for (size_t i = 0; i < s->n_source; i++) {
		struct addr a = s->source[i].addr;
		unsigned bits = addr_bits(&a);

		for (unsigned n = 1u << (bits - s->source[i].len); n && !w->full; n--) {
			add_source(w, s, &a);
			a.bytes[bits / 8 - 1]++;
		}
	}
}

// The block of nat that is the newest one in most cells, without the blocks that are listed.
static uint32_t next_own_block(const struct nat_work *w, int v6)
{
	static const __u32 no_source[4];
	uint32_t best = NAT_BLOCKS;
	size_t most = 0;

	for (uint32_t b = 0; b < NAT_BLOCKS; b++) {
		size_t n;

		if (!nat_set_has(&w->o->exist[v6], b) ||
		    !same_source(&w->plan->wish.block[v6][b], no_source) ||
		    is_listed(&w->plan->wish.list[0][v6], b))
			continue;
		n = nat_cells_newest((const uint64_t *)w->o->table->cell[0][v6], (uint8_t)b);
		if (best == NAT_BLOCKS || n > most) {
			best = b;
			most = n;
		}
	}
	return best;
}

static void add_own_blocks(struct nat_work *w, const struct resolved_service *s, int v6)
{
	static const __u32 no_source[4];
	struct nat_list *l = &w->plan->wish.list[0][v6];

	w->connections[v6] += s->connections;
	while (!w->full && l->n < (w->connections[v6] + NAT_BLOCK_ROOM - 1) / NAT_BLOCK_ROOM) {
		uint32_t b = next_own_block(w, v6);

		list_block(w, s, l, b == NAT_BLOCKS ? new_block(w, v6, no_source) : b);
	}
}

static void take_over_blocks(struct nat_work *w)
{
	if (!w->o->table)
		return;
	for (int v6 = 0; v6 < 2; v6++)
		memcpy(w->plan->wish.block[v6], w->o->table->block[v6],
		       sizeof(w->plan->wish.block[v6]));
	memcpy(w->taken, w->o->exist, sizeof(w->taken));
}

// ---- answers ------------------------------------------------------------------------------------

// Answers of the member come from its own port, or from each port of its service.
static void add_near(struct nat_work *w, const struct resolved_service *s,
		     const struct lb_member *m, uint8_t proto)
{
	uint32_t addr[4];

	memcpy(addr, m->addr, sizeof(addr));
	if (m->port) {
		nat_near_put(w->plan->wish.near, m->family, addr,
			     nat_port_proto(htons(m->port), proto));
		return;
	}
	for (size_t i = 0; i < s->ports.n; i++)
		for (uint32_t p = s->ports.at[i].first; p <= s->ports.at[i].last; p++)
			nat_near_put(w->plan->wish.near, m->family, addr,
				     nat_port_proto(htons((uint16_t)p), proto));
}

// Removed members too: slots may still name them.
static void add_backends(struct nat_work *w, size_t service)
{
	const struct resolved_service *s = &w->r->services[service];
	const struct lb_service *lb = &w->lb->services[service];

	for (uint32_t m = 0; m < lb->n_members; m++)
		for (unsigned proto = 0; proto < 256; proto++)
			if (bits_has(s->proto.bits, proto))
				add_near(w, s, &w->lb->members[lb->first_member + m],
					 (uint8_t)proto);
}

// ---- cells --------------------------------------------------------------------------------------

// Connections in the blocks that are the oldest ones of cells without room.
static size_t count_holding(const struct nat_work *w, int v6, const uint64_t cells[NAT_CELLS])
{
	struct nat_set oldest = {0};
	size_t n = 0;

	for (size_t c = 0; c < NAT_CELLS; c++)
		if (cells[c] >> 8 * (NAT_DEPTH - 1))
			nat_set_add(&oldest, (uint32_t)(cells[c] >> 8 * (NAT_DEPTH - 1)) - 1);
	for (uint32_t b = 0; w->o->living && b < NAT_BLOCKS; b++)
		if (nat_set_has(&oldest, b))
			n += w->o->living[v6][b];
	return n;
}

// The first service of the mode and family.
static const struct resolved_service *first_of(const struct nat_work *w, bool fullnat, int v6)
{
	size_t n = 0;

	while (!is_nat(&w->r->services[n]) || has_source(&w->r->services[n]) != fullnat ||
	       (family_of(w, &w->r->services[n]) == 6) != v6)
		n++;
	return &w->r->services[n];
}

static void refuse_cells(struct nat_work *w, bool fullnat, int v6, const uint64_t *cells)
{
	const struct resolved_service *s = first_of(w, fullnat, v6);
	size_t n = count_holding(w, v6, cells);

	diag_error(w->diag, s->at,
		   "later, when they have ended; --force drops the oldest connections",
		   "service '%s': %zu %s in blocks that %d earlier changes have replaced: there is "
		   "no room for another change",
		   s->name, n, num_plural(n, "connection is", "connections are"), NAT_DEPTH - 1);
	w->failed = true;
}

static void check_cells(struct nat_work *w, bool fullnat, int v6)
{
	const struct nat_list *l = &w->plan->wish.list[fullnat][v6];
	uint64_t cells[NAT_CELLS];

	if (!w->o->table || w->o->force || !l->n)
		return;
	memcpy(cells, w->o->table->cell[fullnat][v6], sizeof(cells));
	if (nat_cells_change(cells, l->at, l->n))
		refuse_cells(w, fullnat, v6, cells);
}

// ---- the plan -----------------------------------------------------------------------------------

static bool has_idle(const struct resolved_service *s)
{
	return bits_has(s->proto.bits, 6) || bits_has(s->proto.bits, 132);
}

static void add_life(struct nat_work *w, const struct resolved_service *s)
{
	uint64_t jiffies = (s->idle_tcp_ms * w->o->hz + 999) / 1000;
	uint32_t life = pin_life(jiffies, pin_shift(w->o->hz));

	if (has_idle(s) && life > w->plan->wish.life)
		w->plan->wish.life = life;
}

// Returns whether it needs the table.
static bool plan_service(struct nat_work *w, size_t service)
{
	const struct resolved_service *s = &w->r->services[service];

	if (!is_nat(s))
		return false;
	add_life(w, s);
	add_ends(w, service);
	if (has_source(s)) {
		add_sources(w, s);
		return true;
	}
	add_own_blocks(w, s, family_of(w, s) == 6);
	add_backends(w, service);
	return true;
}

// Connections of a service that has another mode now keep the life that they have.
static void keep_life(struct nat_work *w)
{
	uint32_t life = (uint32_t)(w->o->table->lives >> 16 & 0xffff);

	if (life > w->plan->wish.life)
		w->plan->wish.life = life;
}

static bool keeps_any(const struct nat_plan_options *o)
{
	return o->kept && memchr(o->kept, 1, NAT_ENDS);
}

static void plan_all(struct nat_work *w, bool *ret_needed)
{
	take_over_ends(w);
	take_over_blocks(w);
	for (size_t s = 0; s < w->r->n_services && !w->full; s++)
		*ret_needed |= plan_service(w, s);
	if (w->full)
		return;
	if (plan_formers(w) || (w->o->trial && keeps_any(w->o))) {
		*ret_needed = true;
		keep_life(w);
	}
	for (int fullnat = 0; fullnat < 2; fullnat++)
		for (int v6 = 0; v6 < 2; v6++)
			check_cells(w, fullnat, v6);
}

int nat_plan(const struct resolved *r, const struct lb_state *lb, const struct nat_plan_options *o,
	     struct diag *d, struct nat_plan **ret)
{
	CLEANUP_FREE struct nat_plan *plan = mem_new(struct nat_plan);
	CLEANUP_FREE struct nat_work *w = mem_new(struct nat_work);
	bool needed = false;

	w->r = r;
	w->lb = lb;
	w->o = o;
	w->diag = d;
	w->plan = plan;
	*ret = NULL;
	plan_all(w, &needed);
	if (w->failed)
		return -EINVAL;
	if (needed)
		*ret = TAKE_PTR(plan);
	return 0;
}

size_t nat_wish_blocks(const struct nat_wish *w)
{
	return (size_t)w->list[0][0].n + w->list[0][1].n + w->list[1][0].n + w->list[1][1].n;
}

uint64_t nat_wish_places(const struct nat_wish *w)
{
	return (uint64_t)nat_wish_blocks(w) * (NAT_PLACES - NAT_RESERVED);
}

uint64_t nat_wish_bytes(const struct nat_wish *w)
{
	uint64_t v4 = (uint64_t)w->list[0][0].n + w->list[1][0].n;
	uint64_t v6 = (uint64_t)w->list[0][1].n + w->list[1][1].n;

	return (v4 * sizeof(struct nat_entry4) + v6 * sizeof(struct nat_entry6)) * NAT_PLACES;
}
