// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/vips.c through common/vips.h, against a search in the services.
#include "tests/unit/table/made.h"

#include <arpa/inet.h>

#include "common/vips.h"
#include "ctl/table/tables.h"
#include "ctl/table/vips.h"

#define SEED 0xfeedfacecafebeefull

static const uint8_t protos[] = {6, 17, 132, 1};

// ---- services -----------------------------------------------------------------------------------

// One service.
struct wanted {
	size_t n4, n6; // addresses
	unsigned len4; // of prefixes
	size_t ranges; // of ports; 0: any
	uint16_t range;
	unsigned protos; // bits of the array above
};

static struct made begin(size_t services)
{
	struct made m;

	made_init(&m, 0, services);
	m.r.services = made_alloc(&m, services, sizeof(*m.r.services));
	return m;
}

// Addresses of service n begin with its number, so that services do not meet.
static void add(struct made *m, const struct wanted *w)
{
	uint32_t n = (uint32_t)m->r.n_services++;
	struct resolved_service *s = &m->r.services[n];
	struct resolved_addresses *a = &m->r.addresses[n];
	struct resolved_prefix4 *v4 = made_alloc(m, w->n4, sizeof(*v4));
	struct resolved_prefix6 *v6 = made_alloc(m, w->n6, sizeof(*v6));
	struct range16 *ports = made_alloc(m, w->ranges, sizeof(*ports));

	for (uint32_t i = 0; i < w->n4; i++)
		v4[i] = made_prefix4(0x0a000000 | n << 12 | i << 1, w->len4, true);
	for (uint32_t i = 0; i < w->n6; i++)
		v6[i] = made_prefix6(0x20010db800000000ull | n, (uint64_t)i << 40 | n, 128, true);
	for (uint16_t i = 0; i < w->ranges; i++)
		ports[i] = (struct range16){(uint16_t)(80 + i * 1000),
					    (uint16_t)(80 + i * 1000 + w->range)};
	*a = (struct resolved_addresses){.v4 = v4, .v6 = v6, .n4 = w->n4, .n6 = w->n6};
	*s = (struct resolved_service){
		.name = "web",
		.vip = n,
		.any_port = !w->ranges,
		.ports = {w->ranges != 0, ports, w->ranges},
		.proto.given = w->protos != 0,
	};
	for (size_t p = 0; p < ARRAY_SIZE(protos); p++)
		if (w->protos >> p & 1)
			bits_set(s->proto.bits, protos[p]);
	m->r.n_addresses = m->r.n_services;
}

// ---- packets ------------------------------------------------------------------------------------

struct packet {
	struct addr to;
	uint16_t port;
	uint8_t proto;
};

static bool has_port(const struct resolved_service *s, uint16_t port)
{
	for (size_t i = 0; i < s->ports.n; i++)
		if (port >= s->ports.at[i].first && port <= s->ports.at[i].last)
			return true;
	return s->any_port;
}

// The number of the service and 1; 0: none, or *ret_elsewhere: one that is not in lines.
static uint32_t by_search(const struct resolved *r, const struct packet *p, bool *ret_elsewhere)
{
	*ret_elsewhere = false;
	for (uint32_t n = 0; n < r->n_services; n++) {
		const struct resolved_service *s = &r->services[n];

		if (!resolved_contains(&r->addresses[s->vip], &p->to, NULL) ||
		    !has_port(s, p->port) || (s->proto.given && !bits_has(s->proto.bits, p->proto)))
			continue;
		*ret_elsewhere = !vips_fit(r, s);
		return *ret_elsewhere ? 0 : n + 1;
	}
	return 0;
}

static uint32_t by_lines(const struct tables *t, const struct packet *p)
{
	uint32_t key = vip_key(htons(p->port), p->proto), v4;
	__u64 v6[2];

	memcpy(&v4, p->to.bytes, sizeof(v4));
	memcpy(v6, p->to.bytes, sizeof(v6));
	return p->to.family == 4 ? vip_service4(t, v4, key) : vip_service6(t, v6, key);
}

static struct addr address4(uint32_t addr)
{
	struct addr a = {.family = 4};

	addr = htonl(addr);
	memcpy(a.bytes, &addr, sizeof(addr));
	return a;
}

static struct addr address6(const struct resolved_prefix6 *p)
{
	struct addr a = {.family = 6};

	for (int i = 0; i < 8; i++) {
		a.bytes[i] = (uint8_t)(p->hi >> (56 - 8 * i));
		a.bytes[8 + i] = (uint8_t)(p->lo >> (56 - 8 * i));
	}
	return a;
}

// An address of a service, or the next one; one of its ports, or a neighbouring one.
static struct packet drawn(const struct resolved *r, uint64_t *random)
{
	const struct resolved_service *s =
		&r->services[unit_below(random, (uint32_t)r->n_services)];
	const struct resolved_addresses *a = &r->addresses[s->vip];
	uint32_t other = unit_below(random, 8) == 0;
	struct packet p = {.port = (uint16_t)unit_random(random),
			   .proto = protos[unit_below(random, ARRAY_SIZE(protos))]};

	if (a->n4 && (!a->n6 || unit_below(random, 2)))
		p.to = address4(a->v4[unit_below(random, (uint32_t)a->n4)].addr + other);
	else
		p.to = address6(&a->v6[unit_below(random, (uint32_t)a->n6)]);
	if (p.to.family == 6)
		p.to.bytes[15] = (uint8_t)(p.to.bytes[15] + other);
	if (s->ports.n && unit_below(random, 4)) {
		const struct range16 *range =
			&s->ports.at[unit_below(random, (uint32_t)s->ports.n)];

		p.port = (uint16_t)(range->first - 1 +
				    unit_below(random, range->last - range->first + 3u));
	}
	return p;
}

static uint64_t constant(const struct tables *t, int name)
{
	return t->constant[VIP_CONSTANT(name)].value;
}

// ---- tests --------------------------------------------------------------------------------------

static struct wanted some_service(uint64_t *random)
{
	return (struct wanted){
		.n4 = unit_below(random, 6),
		.n6 = 1 + unit_below(random, 4),
		.len4 = unit_below(random, 10) ? 32 : 31,
		.ranges = unit_below(random, 10) ? 1 + unit_below(random, 3) : 0,
		.range = (uint16_t)unit_below(random, unit_below(random, 10) ? 3 : 200),
		.protos = unit_below(random, 10) ? 1 + unit_below(random, 15) : 0,
	};
}

static void test_random(void **state)
{
	size_t found = 0, elsewhere = 0, absent = 0;
	uint64_t random = 3;

	for (unsigned round = 0; round < 120; round++) {
		size_t n = 1 + unit_below(&random, round % 10 ? 12 : 120);
		struct made m = begin(n);
		struct tables t = {0};
		bool all = true, other;

		for (size_t i = 0; i < n; i++) {
			struct wanted w = some_service(&random);

			add(&m, &w);
			all &= vips_fit(&m.r, &m.r.services[i]);
		}
		vips_build(&m.r, SEED + round, &t);
		assert_int_equal(constant(&t, VIPS_ALL), all);
		for (unsigned i = 0; i < 2000; i++) {
			struct packet p = drawn(&m.r, &random);
			uint32_t want = by_search(&m.r, &p, &other);

			assert_int_equal(by_lines(&t, &p), want);
			found += want != 0;
			elsewhere += other;
			absent += !want && !other;
			assert_false(all && other);
		}
		tables_free(&t);
		made_free(&m);
	}
	print_message("%zu found, %zu elsewhere, %zu absent\n", found, elsewhere, absent);
	assert_true(found > 20000 && elsewhere > 20000 && absent > 20000);
}

static bool fits(const struct wanted *w)
{
	struct made m = begin(1);
	bool fit;

	add(&m, w);
	fit = vips_fit(&m.r, &m.r.services[0]);
	made_free(&m);
	return fit;
}

#define FITS(...) fits(&(struct wanted){__VA_ARGS__})

static void test_which_fit(void **state)
{
	assert_true(FITS(.n4 = 1, .len4 = 32, .ranges = 1, .protos = 1));
	assert_true(FITS(.n6 = 1, .len4 = 32, .ranges = 1, .protos = 2));
	assert_true(FITS(.n4 = 100, .n6 = 28, .len4 = 32, .ranges = 1, .protos = 3));
	assert_false(FITS(.n4 = 101, .n6 = 28, .len4 = 32, .ranges = 1, .protos = 3));
	assert_true(FITS(.n4 = 1, .len4 = 32, .ranges = 2, .range = 127, .protos = 1));
	assert_false(FITS(.n4 = 1, .len4 = 32, .ranges = 2, .range = 128, .protos = 1));
	assert_false(FITS(.n4 = 1, .len4 = 31, .ranges = 1, .protos = 1));
	assert_false(FITS(.n4 = 1, .len4 = 32, .protos = 1));
	assert_false(FITS(.n4 = 1, .len4 = 32, .ranges = 1));
}

static void test_excluded_address(void **state)
{
	struct made m = begin(1);

	add(&m, &(struct wanted){.n4 = 2, .len4 = 32, .ranges = 1, .protos = 1});
	assert_true(vips_fit(&m.r, &m.r.services[0]));
	((struct resolved_prefix4 *)m.r.addresses[0].v4)[1].in = false;
	assert_false(vips_fit(&m.r, &m.r.services[0]));
	made_free(&m);
}

static void test_no_service(void **state)
{
	const struct packet p = {address4(0x0a000000), 80, 6};
	struct made m = begin(1);
	struct tables t = {0};

	vips_build(&m.r, SEED, &t);
	assert_int_equal(constant(&t, V4_LINES_N), 0);
	assert_int_equal(constant(&t, V6_LINES_N), 0);
	assert_int_equal(constant(&t, VIPS_ALL), 1);
	assert_int_equal(by_lines(&t, &p), 0);
	tables_free(&t);
	made_free(&m);
}

// The maximum: other services are found elsewhere, and buckets stay within some megabytes.
static void test_many(void **state)
{
	struct made m = begin(40);
	struct packet last4 = {.proto = 6}, last6 = last4, beyond = last4;
	struct tables t = {0};

	for (size_t i = 0; i < 40; i++)
		add(&m,
		    &(struct wanted){.n4 = 128, .n6 = 128, .len4 = 32, .ranges = 1, .protos = 1});
	vips_build(&m.r, SEED, &t);
	last4.port = last6.port = beyond.port = 80;
	last4.to = address4(m.r.addresses[31].v4[127].addr);
	last6.to = address6(&m.r.addresses[31].v6[127]);
	beyond.to = address4(m.r.addresses[32].v4[0].addr);
	assert_int_equal(by_lines(&t, &last4), 32);
	assert_int_equal(by_lines(&t, &last6), 32);
	assert_int_equal(by_lines(&t, &beyond), 0);
	assert_int_equal(constant(&t, VIPS_ALL), 0);
	print_message("4096 combinations: %zu lines of IPv4, %zu of IPv6\n",
		      (size_t)constant(&t, V4_LINES_N), (size_t)constant(&t, V6_LINES_N));
	assert_true(t.n < 8u << 20);
	tables_free(&t);
	made_free(&m);
}

// Each slot of a bucket: only the name is found there, and none that differs in a bit.
static void test_every_bit(void **state)
{
	const __u64 name = vip_name4(0xc0000201, 0x0601bb);
	__u64 addr6[2] = {0x0123456789abcdef, 0xfedcba9876543210};

	for (unsigned i = 0; i < VIPS4; i++) {
		struct vip_line4 line = {.spread = 1};
		__u64 hash = (__u64)i << (64 - VIPS4_LOG2);

		line.name[i] = name;
		line.service[i] = 7;
		assert_int_equal(vip_find4(&line, hash, name), 7);
		assert_int_equal(vip_find4(&line, hash ^ 1ull << 63, name), 0);
		for (int bit = 0; bit < 64; bit++)
			assert_int_equal(vip_find4(&line, hash, name ^ 1ull << bit), 0);
	}
	for (unsigned i = 0; i < VIPS6; i++) {
		struct vip_line6 line = {.spread = 1};
		__u64 hash = (__u64)i << (64 - VIPS6_LOG2);

		line.vip[i] = (struct vip6){{addr6[0], addr6[1]}, 0x0601bb, 9};
		assert_int_equal(vip_find6(&line, hash, addr6, 0x0601bb), 9);
		assert_int_equal(vip_find6(&line, hash ^ 1ull << 63, addr6, 0x0601bb), 0);
		for (int bit = 0; bit < 128; bit++) {
			addr6[bit / 64] ^= 1ull << bit % 64;
			assert_int_equal(vip_find6(&line, hash, addr6, 0x0601bb), 0);
			addr6[bit / 64] ^= 1ull << bit % 64;
		}
		for (int bit = 0; bit < 32; bit++)
			assert_int_equal(vip_find6(&line, hash, addr6, 0x0601bb ^ 1u << bit), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_which_fit),
		cmocka_unit_test(test_excluded_address),
		cmocka_unit_test(test_no_service),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_every_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
