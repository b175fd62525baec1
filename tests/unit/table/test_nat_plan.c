// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/nat_plan.c: numbers of ends and blocks, what is done with an end, and
// refusals.
#include "tests/unit/table/served.h"

#include <arpa/inet.h>

#include "ctl/table/nat_cells.h"
#include "ctl/table/nat_near.h"
#include "ctl/table/nat_plan.h"

#define VIP 0xc0000201 // 192.0.2.1

static struct nat_table table;
static struct nat_plan_options options;
static uint8_t kept[NAT_ENDS];
static size_t living[2][NAT_BLOCKS];

static int empty(void **state)
{
	memset(&table, 0, sizeof(table));
	memset(kept, 0, sizeof(kept));
	memset(living, 0, sizeof(living));
	options = (struct nat_plan_options){
		.table = &table, .kept = kept, .living = living, .hz = SERVED_HZ};
	return 0;
}

// ---- policies -----------------------------------------------------------------------------------

static void begin(struct made *m)
{
	served_init(m, 4);
	m->r.addresses = made_alloc(m, 4, sizeof(*m->r.addresses));
}

// A service of tcp with this VIP: or 2001:db8::/64 with its low bits.
static struct resolved_service *add(struct made *m, const char *name, uint8_t mode, int family,
				    uint16_t port)
{
	struct resolved_service *s = served_add(m, name, 1);
	struct resolved_addresses *vip =
		made_addresses(m, NULL, family == 4 ? 1 : 0, family == 6 ? 1 : 0);

	if (family == 4)
		*(struct resolved_prefix4 *)vip->v4 = made_prefix4(VIP, 32, true);
	else
		*(struct resolved_prefix6 *)vip->v6 =
			made_prefix6(0x20010db8ull << 32, VIP, 128, true);
	s->vip = (uint32_t)m->r.n_addresses - 1;
	s->mode = mode;
	s->ports = made_range(m, port, port);
	s->connections = mode == SERVICE_NAT ? 53000 : 0;
	return s;
}

// 10.1.0.BYTE/len, or 2001:db8:1::BYTE/len.
static void give_sources(struct made *m, struct resolved_service *s, int family,
			 const uint8_t *bytes, size_t n, uint8_t len)
{
	struct prefix *p = made_alloc(m, n, sizeof(*p));

	for (size_t i = 0; i < n; i++) {
		p[i] = (struct prefix){{4, {10, 1, 0, bytes[i]}}, len};
		if (family == 6)
			p[i].addr = (struct addr){6, {0x20, 1, 0xd, 0xb8, 0, 1}};
		p[i].addr.bytes[family == 4 ? 3 : 15] = bytes[i];
	}
	s->source = p;
	s->n_source = n;
}
#define SOURCES(m, s, family, len, ...)                            \
	give_sources(m, s, family, (const uint8_t[]){__VA_ARGS__}, \
		     ARRAY_SIZE(((const uint8_t[]){__VA_ARGS__})), len)

static int plan_code(struct made *m, struct nat_plan **ret)
{
	CLEANUP_FREE struct lb_service *services = mem_zalloc(4, sizeof(*services));
	struct lb_state lb = {.services = services, .n_services = m->r.n_services};

	for (size_t s = 0; s < 4; s++)
		services[s].id = (uint16_t)(100 + s);
	return nat_plan(&m->r, &lb, &options, m->diag, ret);
}

static struct nat_plan *plan(struct made *m)
{
	struct nat_plan *p = NULL;

	if (plan_code(m, &p))
		diag_print(m->diag, stdout, false);
	return p;
}

// The table after the plan, as control/nat_apply writes it.
static void carry_out(const struct nat_plan *p)
{
	memcpy(table.end, p->end, sizeof(table.end));
	for (int v6 = 0; v6 < 2; v6++) {
		memcpy(table.block[v6], p->wish.block[v6], sizeof(p->wish.block[v6]));
		for (int fullnat = 0; fullnat < 2; fullnat++) {
			const struct nat_list *l = &p->wish.list[fullnat][v6];

			for (size_t i = 0; i < l->n; i++)
				nat_set_add(&options.exist[v6], l->at[i]);
			if (l->n)
				assert_int_equal(
					nat_cells_change((uint64_t *)table.cell[fullnat][v6], l->at,
							 l->n),
					0);
		}
	}
}

static uint32_t number_of(const struct nat_plan *p, uint16_t port)
{
	uint32_t found = 0;

	for (uint32_t n = 1; n < NAT_ENDS; n++)
		if ((uint16_t)p->end[n].port_proto == htons(port)) {
			assert_int_equal(found, 0);
			found = n;
		}
	return found;
}

// ---- ends ---------------------------------------------------------------------------------------

static void test_ends(void **state)
{
	struct made m;
	CLEANUP_FREE struct nat_plan *p = NULL;
	struct resolved_service *s;
	uint32_t n;

	begin(&m);
	add(&m, "dr", SERVICE_DR, 4, 22);
	s = add(&m, "nat", SERVICE_NAT, 4, 80);
	s->proto.bits[0] |= 1 << 17;
	s = add(&m, "full", SERVICE_FULLNAT, 6, 443);
	SOURCES(&m, s, 6, 128, 1);
	p = plan(&m);
	n = number_of(p, 443);
	assert_int_equal(p->end[n].family, 6);
	assert_int_equal(p->end[n].port_proto, nat_port_proto(htons(443), 6));
	assert_int_equal(ntohl(p->end[n].vip[0]), 0x20010db8);
	assert_int_equal(ntohl(p->end[n].vip[3]), VIP);
	assert_int_equal(p->use[n].mode, NAT_USE_FULLNAT);
	assert_int_equal(p->use[n].service, 2);
	assert_int_equal(p->use[n].id, 102);
	for (n = 1; n < 3; n++) {
		assert_int_equal(p->end[n].port_proto, nat_port_proto(htons(80), n == 1 ? 6 : 17));
		assert_int_equal(ntohl(p->end[n].vip[0]), VIP);
		assert_int_equal(p->end[n].family, 4);
		assert_int_equal(p->use[n].mode, NAT_USE_NAT);
		assert_int_equal(p->use[n].service, 1);
	}
	assert_int_equal(p->end[4].port_proto, 0);
	assert_int_equal(p->use[0].mode, NAT_USE_NONE);
	made_free(&m);
}

// Without such a service, nothing is loaded.
static void test_no_need(void **state)
{
	struct made m;

	begin(&m);
	add(&m, "dr", SERVICE_DR, 4, 80);
	assert_null(plan(&m));
	made_free(&m);
}

// On trial, the answers of connections that may live are still sent: for as long as they live.
static void test_trial_without_services(void **state)
{
	CLEANUP_FREE struct nat_plan *p = NULL;
	struct made m;

	begin(&m);
	options.trial = true;
	assert_int_equal(nat_plan(&m.r, NULL, &options, m.diag, &p), 0);
	assert_null(p);
	kept[7] = 1;
	table.end[7] = (struct nat_end){.port_proto = nat_port_proto(htons(80), 6), .family = 4};
	table.lives = nat_lives(30, 900, 60);
	assert_int_equal(nat_plan(&m.r, NULL, &options, m.diag, &p), 0);
	assert_non_null(p);
	assert_int_equal(p->use[7].mode, NAT_USE_NONE);
	assert_int_equal(p->wish.life, 900);
	assert_int_equal(nat_wish_blocks(&p->wish), 0);
	made_free(&m);
}

// Services in another order, and one more: each end keeps its number. A number that is free again
// rests before it is given to another end.
static void test_numbers_stay(void **state)
{
	struct made a, b;
	CLEANUP_FREE struct nat_plan *p = NULL, *q = NULL;
	uint32_t n80, n81;

	begin(&a);
	add(&a, "a", SERVICE_NAT, 4, 80);
	add(&a, "b", SERVICE_NAT, 4, 81);
	p = plan(&a);
	carry_out(p);
	n80 = number_of(p, 80);
	n81 = number_of(p, 81);
	memset(&table.end[n80], 0, sizeof(table.end[n80]));
	begin(&b);
	add(&b, "c", SERVICE_NAT, 4, 82);
	add(&b, "b", SERVICE_NAT, 4, 81);
	q = plan(&b);
	assert_int_equal(number_of(q, 81), n81);
	assert_int_equal(q->use[n81].service, 1);
	assert_true(number_of(q, 82) != n80 && number_of(q, 82) != n81);
	made_free(&a);
	made_free(&b);
}

// Its connections stay as they are while the VIP is in a service of another mode; an end that no
// connection uses is forgotten. On trial the programs stay, for answers of a service that is gone.
static void test_former(void **state)
{
	struct made a, b;
	CLEANUP_FREE struct nat_plan *p = NULL, *q = NULL, *none = NULL, *trial = NULL;
	uint32_t n;

	begin(&a);
	add(&a, "a", SERVICE_NAT, 4, 80);
	p = plan(&a);
	carry_out(p);
	table.lives = nat_lives(1, 77, 1);
	n = number_of(p, 80);
	begin(&b);
	add(&b, "x", SERVICE_DR, 4, 443);
	add(&b, "a", SERVICE_DR, 4, 80);
	none = plan(&b);
	assert_null(none);
	kept[n] = 1;
	q = plan(&b);
	assert_int_equal(q->use[n].mode, NAT_USE_FORMER);
	assert_int_equal(q->use[n].service, 1);
	assert_int_equal(q->use[n].id, 101);
	assert_int_equal(q->wish.life, 77);
	assert_int_equal(nat_wish_blocks(&q->wish), 0);
	b.r.services[1].ports = made_range(&b, 81, 90);
	none = plan(&b);
	assert_null(none);
	options.trial = true;
	trial = plan(&b);
	assert_int_equal(trial->use[n].mode, NAT_USE_NONE);
	assert_int_equal(trial->wish.life, 77);
	made_free(&a);
	made_free(&b);
}

static void test_too_many_ends(void **state)
{
	struct made m;
	struct nat_plan *p = NULL;

	begin(&m);
	add(&m, "a", SERVICE_NAT, 4, 1)->ports = made_range(&m, 1, NAT_ENDS - 1);
	p = plan(&m);
	assert_non_null(p);
	free(p);
	add(&m, "b", SERVICE_NAT, 6, 1);
	assert_int_equal(plan_code(&m, &p), -EINVAL);
	assert_true(served_says(&m, DIAG_ERROR, 2,
				"service 'b': modes nat and fullnat have room for 4095 "
				"combinations of VIP, port and protocol",
				"fewer ports, or fewer addresses"));
	made_free(&m);
}

// ---- blocks -------------------------------------------------------------------------------------

// The connections of all services together, in blocks of 53,000.
static void test_blocks_of_nat(void **state)
{
	struct made m;
	CLEANUP_FREE struct nat_plan *p = NULL;

	begin(&m);
	add(&m, "a", SERVICE_NAT, 4, 80)->connections = 53001;
	add(&m, "b", SERVICE_NAT, 4, 81)->connections = 52999;
	add(&m, "c", SERVICE_NAT, 6, 80)->connections = 1024;
	p = plan(&m);
	assert_int_equal(p->wish.list[0][0].n, 2);
	assert_int_equal(p->wish.list[0][1].n, 1);
	assert_int_equal(p->wish.list[1][0].n, 0);
	assert_int_equal(nat_wish_places(&p->wish), 3 * 64512);
	assert_int_equal(nat_wish_bytes(&p->wish), (2 * 16 + 32) * 65536);
	made_free(&m);
}

// Sources in the order of the policy, all of a prefix; a source of two services once.
static void test_blocks_of_fullnat(void **state)
{
	struct made m;
	CLEANUP_FREE struct nat_plan *p = NULL;
	struct resolved_service *s;
	const struct nat_list *l;

	begin(&m);
	s = add(&m, "a", SERVICE_FULLNAT, 4, 80);
	SOURCES(&m, s, 4, 31, 8);
	s = add(&m, "b", SERVICE_FULLNAT, 4, 81);
	SOURCES(&m, s, 4, 32, 9, 8);
	add(&m, "c", SERVICE_NAT, 4, 82);
	p = plan(&m);
	l = &p->wish.list[1][0];
	assert_int_equal(l->n, 2);
	assert_int_equal(ntohl(p->wish.block[0][l->at[0]].source[0]), 0x0a010008);
	assert_int_equal(ntohl(p->wish.block[0][l->at[1]].source[0]), 0x0a010009);
	l = &p->wish.list[0][0];
	assert_int_equal(l->n, 1);
	assert_int_equal(p->wish.block[0][l->at[0]].source[0], 0);
	made_free(&m);
}

// A source that is removed and returns has its block, if that is there still; a number is not given
// again while the block exists.
static void test_sources_return(void **state)
{
	struct made m;
	CLEANUP_FREE struct nat_plan *p = NULL, *q = NULL, *r = NULL;
	struct resolved_service *s;
	uint8_t one, two;

	begin(&m);
	s = add(&m, "a", SERVICE_FULLNAT, 4, 80);
	SOURCES(&m, s, 4, 32, 1);
	p = plan(&m);
	carry_out(p);
	one = p->wish.list[1][0].at[0];
	SOURCES(&m, s, 4, 32, 2);
	q = plan(&m);
	two = q->wish.list[1][0].at[0];
	assert_int_not_equal(one, two);
	carry_out(q);
	SOURCES(&m, s, 4, 32, 2, 1);
	r = plan(&m);
	assert_int_equal(r->wish.list[1][0].n, 2);
	assert_int_equal(r->wish.list[1][0].at[0], two);
	assert_int_equal(r->wish.list[1][0].at[1], one);
	made_free(&m);
}

// With fewer connections the blocks remain that take most of the new ones; with more, those that
// were removed return.
static void test_own_blocks_return(void **state)
{
	struct made m;
	CLEANUP_FREE struct nat_plan *p = NULL, *q = NULL, *r = NULL, *s = NULL;
	uint8_t last;

	begin(&m);
	add(&m, "a", SERVICE_NAT, 4, 80)->connections = 53000;
	p = plan(&m);
	carry_out(p);
	m.r.services[0].connections = 3 * 53000;
	q = plan(&m);
	assert_int_equal(q->wish.list[0][0].n, 3);
	assert_int_equal(q->wish.list[0][0].at[0], p->wish.list[0][0].at[0]);
	carry_out(q);
	last = q->wish.list[0][0].at[2];
	assert_int_equal(nat_cells_change((uint64_t *)table.cell[0][0], &last, 1), 0);
	m.r.services[0].connections = 53000;
	r = plan(&m);
	assert_int_equal(r->wish.list[0][0].n, 1);
	assert_int_equal(r->wish.list[0][0].at[0], last);
	m.r.services[0].connections = 4 * 53000;
	s = plan(&m);
	assert_int_equal(s->wish.list[0][0].n, 4);
	assert_int_equal(s->wish.list[0][0].at[0], last);
	for (int i = 1; i < 4; i++)
		assert_int_equal(s->wish.list[0][0].at[i], i == 3 ? 3 : i - 1);
	made_free(&m);
}

static void test_too_many_blocks(void **state)
{
	struct made m;
	struct nat_plan *p = NULL;
	struct resolved_service *s;

	begin(&m);
	add(&m, "a", SERVICE_NAT, 4, 80)->connections = 255 * 53000;
	p = plan(&m);
	assert_int_equal(p->wish.list[0][0].n, 255);
	free(p);
	s = add(&m, "b", SERVICE_FULLNAT, 4, 81);
	SOURCES(&m, s, 4, 32, 1);
	assert_int_equal(plan_code(&m, &p), -EINVAL);
	assert_true(served_says(&m, DIAG_ERROR, 2,
				"service 'b': a family has room for 255 sources, and 53000 "
				"connections of mode nat take as much as one; a removed one counts "
				"while it is used",
				"a smaller number of connections, or fewer sources"));
	made_free(&m);
}

// The longest idle of TCP; UDP has a life of its own.
static void test_life(void **state)
{
	struct made m;
	CLEANUP_FREE struct nat_plan *p = NULL;
	struct resolved_service *s;

	begin(&m);
	add(&m, "a", SERVICE_NAT, 4, 80)->idle_tcp_ms = 60000;
	add(&m, "b", SERVICE_NAT, 4, 81)->idle_tcp_ms = 3600000;
	s = add(&m, "c", SERVICE_NAT, 4, 82);
	s->idle_tcp_ms = 7200000;
	s->proto.bits[0] = 1 << 17;
	p = plan(&m);
	assert_int_equal(p->wish.life, pin_life(3600ull * SERVED_HZ, pin_shift(SERVED_HZ)));
	made_free(&m);
}

// ---- cells --------------------------------------------------------------------------------------

static void test_ninth_block(void **state)
{
	struct made m;
	struct resolved_service *s;
	struct nat_plan *p = NULL;

	begin(&m);
	s = add(&m, "a", SERVICE_FULLNAT, 4, 80);
	for (uint8_t i = 1; i <= 8; i++) {
		SOURCES(&m, s, 4, 32, i);
		p = plan(&m);
		assert_non_null(p);
		carry_out(p);
		free(p);
	}
	SOURCES(&m, s, 4, 32, 9);
	living[0][0] = 1234;
	living[0][1] = 1;
	assert_int_equal(plan_code(&m, &p), -EINVAL);
	assert_true(
		served_says(&m, DIAG_ERROR, 1,
			    "service 'a': 1234 connections are in blocks that 7 earlier "
			    "changes have replaced: there is no room for another change",
			    "later, when they have ended; --force drops the oldest connections"));
	options.force = true;
	assert_int_equal(plan_code(&m, &p), 0);
	free(p);
	made_free(&m);
}

// ---- answers ------------------------------------------------------------------------------------

static void put(uint64_t *near, const struct lb_member *m, uint16_t port, uint8_t proto)
{
	uint32_t addr[4];

	memcpy(addr, m->addr, sizeof(addr));
	nat_near_put(near, m->family, addr, nat_port_proto(htons(port), proto));
}

// The backends of nat with their own port or each port of the service, removed ones too. Answers of
// fullnat are known by the source.
static void test_answers(void **state)
{
	struct lb_member members[] = {
		{.addr = {10, 0, 0, 1}, .family = 4},
		{.addr = {10, 0, 0, 2}, .family = 4, .port = 8080, .gone = 1},
		{.addr = {10, 0, 0, 3}, .family = 4},
	};
	struct lb_service services[] = {{.n_members = 2}, {.first_member = 2, .n_members = 1}};
	struct lb_state lb = {
		.services = services, .n_services = 2, .members = members, .n_members = 3};
	uint64_t expected[NAT_NEAR_WORDS] = {0};
	CLEANUP_FREE struct nat_plan *p = NULL;
	struct resolved_service *s;
	struct made m;

	begin(&m);
	s = add(&m, "nat", SERVICE_NAT, 4, 80);
	s->ports = made_range(&m, 80, 81);
	s->proto.bits[0] |= 1 << 17;
	s = add(&m, "full", SERVICE_FULLNAT, 4, 443);
	SOURCES(&m, s, 4, 32, 1);
	assert_int_equal(nat_plan(&m.r, &lb, &options, m.diag, &p), 0);
	for (unsigned proto = 6; proto <= 17; proto += 11) {
		put(expected, &members[0], 80, (uint8_t)proto);
		put(expected, &members[0], 81, (uint8_t)proto);
		put(expected, &members[1], 8080, (uint8_t)proto);
	}
	assert_memory_equal(p->wish.near, expected, sizeof(expected));
	made_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_ends, empty),
		cmocka_unit_test_setup(test_no_need, empty),
		cmocka_unit_test_setup(test_trial_without_services, empty),
		cmocka_unit_test_setup(test_numbers_stay, empty),
		cmocka_unit_test_setup(test_former, empty),
		cmocka_unit_test_setup(test_too_many_ends, empty),
		cmocka_unit_test_setup(test_blocks_of_nat, empty),
		cmocka_unit_test_setup(test_blocks_of_fullnat, empty),
		cmocka_unit_test_setup(test_sources_return, empty),
		cmocka_unit_test_setup(test_own_blocks_return, empty),
		cmocka_unit_test_setup(test_too_many_blocks, empty),
		cmocka_unit_test_setup(test_life, empty),
		cmocka_unit_test_setup(test_ninth_block, empty),
		cmocka_unit_test_setup(test_answers, empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
