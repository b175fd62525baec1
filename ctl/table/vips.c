// SPDX-License-Identifier: GPL-2.0-only
// Builds the buckets of services from their combinations of address, port and protocol.
//
// A seed gives all combinations room; a multiplier for each bucket gives them their slots.
#include "ctl/table/vips.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/vips.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/splitmix.h"
#include "ctl/base/vec.h"

#define LINE_BYTES 64
#define SEEDS      16  // tried before there are more buckets
#define SPREADS    512 // tried for a bucket; of four combinations one in eleven fits

// An address of either family; IPv4 is in the first word of `addr`.
struct vip {
	__u64 addr[2]; // network order
	uint32_t key, service;
};

struct vip_combos {
	struct vip *at;
	size_t n, cap;
};

// ---- combinations -------------------------------------------------------------------------------

static size_t count_protos(const struct resolved_bits *b)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(b->bits); i++)
		n += (size_t)__builtin_popcountll(b->bits[i]);
	return n;
}

static size_t count_ports(const struct resolved_ranges *ports)
{
	size_t n = 0;

	for (size_t i = 0; i < ports->n; i++)
		n += (size_t)(ports->at[i].last - ports->at[i].first + 1);
	return n;
}

static bool only_hosts(const struct resolved_addresses *a)
{
	for (size_t i = 0; i < a->n4; i++)
		if (!a->v4[i].in || a->v4[i].len != 32)
			return false;
	for (size_t i = 0; i < a->n6; i++)
		if (!a->v6[i].in || a->v6[i].len != 128)
			return false;
	return true;
}

// Combinations of an address of the service.
static size_t count_each(const struct resolved_service *s)
{
	return count_ports(&s->ports) * count_protos(&s->proto);
}

bool vips_fit(const struct resolved *r, const struct resolved_service *s)
{
	const struct resolved_addresses *a = &r->addresses[s->vip];
	size_t n = a->n4 + a->n6;

	return !s->any_port && s->proto.given && n <= VIPS_OF_SERVICE &&
	       n * count_each(s) <= VIPS_OF_SERVICE && only_hosts(a);
}

static void add_protos(const struct resolved_service *s, struct vip *vip, uint32_t port,
		       struct vip_combos *list)
{
	for (unsigned proto = 0; proto <= UINT8_MAX; proto++)
		if (bits_has(s->proto.bits, proto)) {
			vip->key = vip_key(htons((uint16_t)port), (uint8_t)proto);
			vec_push(list, *vip);
		}
}

static void add_ports(const struct resolved_service *s, struct vip vip, struct vip_combos *list)
{
	for (size_t i = 0; i < s->ports.n; i++)
		for (uint32_t port = s->ports.at[i].first; port <= s->ports.at[i].last; port++)
			add_protos(s, &vip, port, list);
}

static void add_service(const struct resolved *r, uint32_t number, struct vip_combos *v4,
			struct vip_combos *v6)
{
	const struct resolved_service *s = &r->services[number];
	const struct resolved_addresses *a = &r->addresses[s->vip];
	struct vip vip = {.service = number + 1};

	for (size_t i = 0; i < a->n4; i++) {
		vip.addr[0] = htonl(a->v4[i].addr);
		add_ports(s, vip, v4);
	}
	for (size_t i = 0; i < a->n6; i++) {
		const uint64_t halves[2] = {a->v6[i].hi, a->v6[i].lo};

		for (int h = 0; h < 2; h++) {
			uint32_t words[2] = {htonl((uint32_t)(halves[h] >> 32)),
					     htonl((uint32_t)halves[h])};

			memcpy(&vip.addr[h], words, sizeof(words));
		}
		add_ports(s, vip, v6);
	}
}

// True: every service is in the lists.
static bool add_services(const struct resolved *r, struct vip_combos *v4, struct vip_combos *v6)
{
	bool all = true;

	for (uint32_t n = 0; n < r->n_services; n++) {
		const struct resolved_service *s = &r->services[n];
		const struct resolved_addresses *a = &r->addresses[s->vip];
		bool fits = vips_fit(r, s) && v4->n + a->n4 * count_each(s) <= VIPS_MAX &&
			    v6->n + a->n6 * count_each(s) <= VIPS_MAX;

		if (fits)
			add_service(r, n, v4, v6);
		all &= fits;
	}
	return all;
}

// ---- buckets ------------------------------------------------------------------------------------

struct vip_line {
	uint64_t spread;
	const struct vip *vip[VIPS4];
	uint8_t n;
};
_Static_assert(VIPS6 <= VIPS4, "a line of either family");

struct vip_family {
	const struct vip_combos *list;
	bool v6;
	uint64_t seed;
	struct vip_line *lines;
	size_t n_lines;
};

static uint64_t hash_of(const struct vip_family *f, const struct vip *vip)
{
	return f->v6 ? vip_hash6(vip->addr, vip->key, f->seed)
		     : vip_hash4(vip_name4((uint32_t)vip->addr[0], vip->key), f->seed);
}

static size_t place_of(const struct vip_family *f, const struct vip_line *line,
		       const struct vip *vip)
{
	uint64_t hash = hash_of(f, vip);

	return (size_t)(f->v6 ? vip_place6(hash, line->spread) : vip_place4(hash, line->spread));
}

static bool fill_lines(struct vip_family *f)
{
	uint8_t most = f->v6 ? VIPS6 : VIPS4;

	memset(f->lines, 0, f->n_lines * sizeof(*f->lines));
	for (size_t i = 0; i < f->list->n; i++) {
		const struct vip *vip = &f->list->at[i];
		struct vip_line *line = &f->lines[vip_line(hash_of(f, vip), f->n_lines)];

		if (line->n == most)
			return false;
		line->vip[line->n++] = vip;
	}
	return true;
}

static bool is_spread(const struct vip_family *f, const struct vip_line *line)
{
	unsigned taken = 0;

	for (size_t i = 0; i < line->n; i++) {
		unsigned place = 1u << place_of(f, line, line->vip[i]);

		if (taken & place)
			return false;
		taken |= place;
	}
	return true;
}

static bool spread_line(const struct vip_family *f, struct vip_line *line, uint64_t *state)
{
	for (int i = 0; i < SPREADS; i++) {
		line->spread = splitmix64(state) | 1;
		if (is_spread(f, line))
			return true;
	}
	return false;
}

static bool spread_lines(struct vip_family *f, uint64_t *state)
{
	for (size_t i = 0; i < f->n_lines; i++)
		if (!spread_line(f, &f->lines[i], state))
			return false;
	return true;
}

// Adds buckets until one of some seeds gives all combinations room. This ends: with as many buckets
// as the square of the combinations, half of all seeds do. VIPS_MAX combinations take some
// thousands.
static void find_lines(struct vip_family *f, uint64_t state)
{
	size_t most = f->v6 ? VIPS6 : VIPS4;

	for (f->n_lines = (f->list->n + most - 1) / most;; f->n_lines += f->n_lines / 4 + 1) {
		f->lines = mem_realloc(f->lines, f->n_lines, sizeof(*f->lines));
		for (int i = 0; i < SEEDS; i++) {
			f->seed = splitmix64(&state) | 1;
			if (fill_lines(f) && spread_lines(f, &state))
				return;
		}
	}
}

static void put4(const struct vip_family *f, const struct vip_line *line, struct vip_line4 *to)
{
	to->spread = line->spread;
	for (size_t i = 0; i < line->n; i++) {
		const struct vip *vip = line->vip[i];
		size_t place = place_of(f, line, vip);

		to->name[place] = vip_name4((uint32_t)vip->addr[0], vip->key);
		to->service[place] = vip->service;
	}
}

static void put6(const struct vip_family *f, const struct vip_line *line, struct vip_line6 *to)
{
	to->spread = line->spread;
	for (size_t i = 0; i < line->n; i++) {
		const struct vip *vip = line->vip[i];

		to->vip[place_of(f, line, vip)] = (struct vip6){
			{vip->addr[0], vip->addr[1]},
			vip->key,
			vip->service,
		};
	}
}

static void build_family(const struct vip_combos *list, bool v6, uint64_t seed, struct tables *t)
{
	struct vip_family f = {.list = list, .v6 = v6, .seed = 1};
	size_t offset;

	if (list->n)
		find_lines(&f, seed);
	offset = tables_add(t, f.n_lines * LINE_BYTES);
	for (size_t i = 0; i < f.n_lines; i++) {
		void *to = t->at + offset + i * LINE_BYTES;

		if (v6)
			put6(&f, &f.lines[i], to);
		else
			put4(&f, &f.lines[i], to);
	}
	tables_address(t, VIP_CONSTANT(v6 ? V6_LINES : V4_LINES), offset);
	tables_number(t, VIP_CONSTANT(v6 ? V6_LINES_N : V4_LINES_N), f.n_lines);
	tables_number(t, VIP_CONSTANT(v6 ? V6_SEED : V4_SEED), f.seed);
	free(f.lines);
}

void vips_build(const struct resolved *r, uint64_t seed, struct tables *t)
{
	struct vip_combos v4 = {0}, v6 = {0};
	bool all = add_services(r, &v4, &v6);

	build_family(&v4, false, seed, t);
	build_family(&v6, true, seed, t);
	tables_number(t, VIP_CONSTANT(VIPS_ALL), all);
	vec_free(&v4);
	vec_free(&v6);
}
