// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/lb_state.c: members, services, numbers.
#include "tests/unit/table/served.h"

// ---- members ------------------------------------------------------------------------------------

static void test_state(void **state)
{
	static const struct {
		uint8_t health;
		uint8_t of[3]; // by override
		uint8_t gone;  // without one
	} cases[] = {
		{BACKEND_UP, {BACKEND_UP, BACKEND_DRAIN, BACKEND_DOWN}, BACKEND_DRAIN},
		{BACKEND_FAILING,
		 {BACKEND_FAILING, BACKEND_FAILING, BACKEND_DOWN},
		 BACKEND_FAILING},
		{BACKEND_DOWN, {BACKEND_DOWN, BACKEND_FAILING, BACKEND_DOWN}, BACKEND_DOWN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct lb_member m = {.health = cases[i].health, .gone = 1};

		assert_int_equal(lb_member_state(&m), cases[i].gone);
		m.gone = 0;
		for (m.override = BACKEND_UP; m.override <= BACKEND_DOWN; m.override++)
			assert_int_equal(lb_member_state(&m), cases[i].of[m.override]);
	}
}

static void test_ramp(void **state)
{
	struct lb_member m = {.weight = 1, .missing = 15};

	assert_int_equal(lb_member_ramp(&m), 1);
	m.weighed = 1; // a command has set the weight
	assert_int_equal(lb_member_ramp(&m), LB_RAMP);
	m.weighed = 0;
	m.missing = 0;
	assert_int_equal(lb_member_ramp(&m), LB_RAMP);
}

static void test_weight_and_address(void **state)
{
	struct lb_member m = {.family = 6, .weight = 7, .override_weight = 3, .addr = {1, 2}};
	struct addr a;

	assert_int_equal(lb_member_weight(&m), 7);
	m.weighed = 1;
	assert_int_equal(lb_member_weight(&m), 3);
	m.override_weight = 0;
	assert_int_equal(lb_member_weight(&m), 0);
	lb_member_address(&m, &a);
	assert_int_equal(a.family, 6);
	assert_memory_equal(a.bytes, m.addr, 16);
}

static void test_expire(void **state)
{
	struct lb_member m[] = {
		{.override = BACKEND_DOWN,
		 .weighed = 1,
		 .override_weight = 9,
		 .weight = 2,
		 .until_s = 99},
		{.override = BACKEND_DRAIN, .until_s = 100},
		{.override = BACKEND_DRAIN, .until_s = 101},
		{.override = BACKEND_DOWN, .weighed = 1, .override_weight = 9},
	};
	struct lb_state b = {.members = m, .n_members = ARRAY_SIZE(m)};

	assert_int_equal(lb_state_expire(&b, 98), 0);
	assert_int_equal(lb_state_expire(&b, 100), 2);
	assert_int_equal(lb_state_expire(&b, 100), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(m[i].override, BACKEND_UP);
		assert_int_equal(m[i].until_s, 0);
	}
	assert_int_equal(lb_member_weight(&m[0]), 9); // is not for a time
	assert_true(m[2].override == BACKEND_DRAIN && m[2].until_s == 101);
	assert_true(m[3].override == BACKEND_DOWN && m[3].weighed && m[3].override_weight == 9);
}

// ---- services -----------------------------------------------------------------------------------

static void test_rules(void **state)
{
	struct lb_service s = {.idle_tcp = 1600, .idle_udp = 3201, .hold = 2};

	assert_int_equal(lb_service_rules(&s, 77, 100).now, 77);
	assert_int_equal(lb_service_rules(&s, 77, 100).hold_ticks, slot_ticks(3201, 2));
	s.idle_udp = 0;
	assert_int_equal(lb_service_rules(&s, 77, 100).hold_ticks, slot_ticks(1600, 2));
	s.udp_move = 1;
	s.protocols = SERVICE_UDP;
	assert_true(lb_service_rules(&s, 77, 100).move);
	s.protocols = SERVICE_UDP | SERVICE_TCP;
	assert_false(lb_service_rules(&s, 77, 100).move);
	s.mode = SERVICE_NAT;
	assert_true(lb_service_rules(&s, 77, 100).move);
	s.mode = SERVICE_FULLNAT;
	assert_true(lb_service_rules(&s, 77, 100).move);
	s.mode = SERVICE_DR;
	s.udp_move = 0;
	s.protocols = SERVICE_UDP;
	assert_false(lb_service_rules(&s, 77, 100).move);
}

// Times wrap after 65,536 ticks.
static void test_path(void **state)
{
	const uint32_t path = path_pack(1400, 65530);

	assert_int_equal(path_mtu(path), 1400);
	assert_int_equal(path_mtu(path_pack(65535, 0)), 65535);
	assert_int_equal(path_age(path, 65530), 0);
	assert_int_equal(path_age(path, 65530 + 100), 100);
	assert_int_equal(path_age(path, 65530 - 1), 0); // another CPU is a tick ahead
	assert_true(path_lives(path, 65530 + 586, 586));
	assert_false(path_lives(path, 65530 + 587, 586));
	assert_false(path_lives(0, 0, 586));
}

static void test_row(void **state)
{
	const struct lb_service s = {
		.key = {{1, 2}},
		.size = 4093,
		.first_slot = 11,
		.buckets = 12,
		.hold = 4,
		.idle_tcp = 1000 * 900,
		.idle_udp = 1000 * 60 + 1,
		.id = 13,
		.mode = SERVICE_GUE,
		.hash = SERVICE_HASH_SOURCE,
		.protocols = SERVICE_TCP | SERVICE_UDP,
		.udp_move = 1,
	};
	struct service row, want = {
				    .key = ring_flow_key(&s.key),
				    .size = 4093,
				    .first_slot = 11,
				    .buckets = 12,
				    .hold_ticks = 900000 * 4 / 16,
				    .life_tcp = 879 + 125, // ticks of 1024 jiffies, rounded up
				    .life_udp = 59 + 8,
				    .life_most = 879 + 125,
				    .linger = 59 + 8,
				    .path_ticks = 586,
				    .id = 13,
				    .mode = SERVICE_GUE,
				    .hash = SERVICE_HASH_SOURCE,
				    .udp_move = 1,
				    .pin_shift = 10,
			    };

	lb_service_value(&s, 1000, &row);
	assert_memory_equal(&row, &want, sizeof(row));
}

// The checksum of the words by RFC 1071.
static uint16_t sum_of(const uint8_t *bytes, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i += 2)
		sum += (uint32_t)(bytes[i] << 8 | bytes[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum << 8 | sum >> 8); // as in memory
}

static void set_address(uint32_t to[4], unsigned family, uint64_t *random)
{
	uint8_t bytes[16] = {0};

	for (unsigned i = 0; i < (family == 4 ? 4 : 16); i++)
		bytes[i] = (uint8_t)unit_random(random);
	memcpy(to, bytes, sizeof(bytes));
}

static bool bit_is_set(const uint32_t source[4], unsigned bit)
{
	uint8_t bytes[16];

	memcpy(bytes, source, sizeof(bytes));
	return bytes[bit / 8] >> (7 - bit % 8) & 1;
}

// The sum belongs to a header whose variable fields are zero. Adding the flow's bits of the source
// gives the sum of the header as sent.
static void test_backend_complete(void **state)
{
	uint64_t random = 5;

	for (unsigned i = 0; i < 2000; i++) {
		struct backend b = {.family = i % 2 ? 4 : 6, .sum = (uint16_t)i};
		unsigned bits = b.family == 4 ? 32 : 128;
		uint8_t header[64] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64};
		size_t at = 12;

		b.source_len = (uint8_t)unit_below(&random, bits + 1);
		set_address(b.addr, b.family, &random);
		set_address(b.source, b.family, &random);
		lb_backend_complete(&b);
		for (unsigned bit = b.source_len; bit < bits; bit++)
			assert_false(bit_is_set(b.source, bit));
		if (b.family == 6) {
			memcpy(header, (uint8_t[4]){0, 17, 6080 >> 8, 6080 & 255}, 4);
			memset(header + 4, 0, 8);
		}
		memcpy(header + at, b.source, 16);
		memcpy(header + at + 16, b.addr, 16);
		assert_int_equal(b.sum, sum_of(header, sizeof(header)));
	}
}

// A backend that is this host, and a free number, have none.
static void test_backend_without_address(void **state)
{
	struct backend b = {.sum = 7, .here = 1};

	lb_backend_complete(&b);
	assert_int_equal(b.sum, 0);
}

static void test_find(void **state)
{
	struct lb_service s[] = {{.name = "a", .first_member = 0, .n_members = 1},
				 {.name = "ab", .first_member = 1, .n_members = 4}};
	struct lb_member m[] = {{.family = 4, .addr = {10}},
				{.family = 4, .addr = {10}, .port = 80},
				{.family = 4, .addr = {10}, .port = 81},
				{.family = 6, .addr = {10}, .port = 82},
				{.family = 0, .port = 83}};
	const struct lb_state b = {s, 2, m, 5, NULL, 0};
	const struct addr four = {4, {10}}, six = {6, {10}}, other = {4, {11}};

	assert_ptr_equal(lb_state_find(&b, "ab"), &s[1]);
	assert_ptr_equal(lb_state_find(&b, "a"), &s[0]);
	assert_null(lb_state_find(&b, "abc"));
	assert_ptr_equal(lb_state_find_member(&b, &s[0], &four, 0), &m[0]);
	assert_null(lb_state_find_member(&b, &s[0], &six, 0));
	assert_ptr_equal(lb_state_find_member(&b, &s[1], &four, 0), &m[1]);
	assert_ptr_equal(lb_state_find_member(&b, &s[1], &four, 81), &m[2]);
	assert_null(lb_state_find_member(&b, &s[1], &four, 82));
	assert_ptr_equal(lb_state_find_member(&b, &s[1], &six, 82), &m[3]);
	assert_ptr_equal(lb_state_find_member(&b, &s[1], NULL, 0), &m[4]);
	assert_null(lb_state_find_member(&b, &s[0], NULL, 0));
	assert_null(lb_state_find_member(&b, &s[1], &other, 0));
}

// ---- numbers ------------------------------------------------------------------------------------

static size_t ids_count(const struct lb_ids *ids)
{
	size_t n = 0;

	for (uint32_t id = 0; id < SERVICE_BACKENDS; id++)
		n += lb_ids_has(ids, id);
	return n;
}

static void test_ids(void **state)
{
	struct lb_service s = {.id = 64};
	struct lb_member m[] = {{.id = 1}, {.id = SERVICE_BACKENDS - 1}};
	uint64_t slots[] = {0, slot_pack(7, 0, 0), slot_pack(8, 9, 5), slot_pack(10, 10, 5)};
	static const uint32_t named[] = {64, 1, SERVICE_BACKENDS - 1, 7, 8, 9, 10};
	const struct lb_state b = {&s, 1, m, 2, slots, ARRAY_SIZE(slots)};
	const struct lb_state before = {NULL, 0, m, 1, slots, 3};
	struct lb_ids ids = {0}, new;

	lb_ids_add(&ids, 3); // stays
	lb_ids_of(&b, &ids);
	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		assert_true(lb_ids_has(&ids, named[i]));
	assert_int_equal(ids_count(&ids), ARRAY_SIZE(named) + 1);
	memset(&new, 0xff, sizeof(new));
	lb_ids_new(&b, &before, &new);
	assert_int_equal(ids_count(&new), 3);
	assert_true(lb_ids_has(&new, 64) && lb_ids_has(&new, 10));
	lb_ids_new(&b, NULL, &new);
	assert_int_equal(ids_count(&new), ARRAY_SIZE(named));
}

// A pin counts as naming a backend if and only if ring_walk keeps it.
static void test_ids_of_pins(void **state)
{
	uint64_t slots[16] = {0}, words[1000], kept[1000], foreign, s = 5;
	struct lb_ids ids = {0};
	struct ring_pins pins = {words, 0, 100, 15, 4, SERVICE_HASH_TUPLE};
	size_t living = 0;

	for (uint32_t i = 0; i < 1000; i++)
		words[i] = pin_pack((uint32_t)unit_random(&s), i, unit_below(&s, 3),
				    100 + SERVICE_PIN_AHEAD + 2 - unit_below(&s, 36));
	words[5] = 0;
	memcpy(kept, words, sizeof(kept));
	pins.n = 1000;
	lb_ids_of_pins(&pins, &ids);
	assert_memory_equal(words, kept, sizeof(kept)); // it frees none
	ring_walk(&pins, slots, 16, &foreign);
	for (uint32_t i = 1; i < 1000; i++) {
		assert_int_equal(lb_ids_has(&ids, i), words[i] != 0);
		living += words[i] != 0;
	}
	assert_false(lb_ids_has(&ids, 0));
	assert_in_range(living, 500, 990);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_ramp),
		cmocka_unit_test(test_weight_and_address),
		cmocka_unit_test(test_expire),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_row),
		cmocka_unit_test(test_backend_complete),
		cmocka_unit_test(test_backend_without_address),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_ids_of_pins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
