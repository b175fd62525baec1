// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/ring_step.c: each rule, and flows through random histories of one slot.
#include "tests/unit/table/pool.h"

#include <time.h>

#include "ctl/table/ring_step.h"

#define NOW   (1ull << 40 | 12345)
#define IDLE  16000u
#define TICKS (IDLE / 16)

enum { A = 1, B, C, D };

static const struct ring_rules rules = {.now = NOW, .hold_ticks = TICKS};
static const uint64_t tick = (NOW >> SERVICE_SLOT_SHIFT) & SLOT_SINCE;

// ---- ring_step ----------------------------------------------------------------------------------

static void test_from_stable(void **state)
{
	assert_int_equal(ring_step(slot_pack(A, 0, 0), B, &rules), slot_pack(B, A, tick));
	assert_int_equal(ring_step(slot_pack(A, 0, 0), A, &rules), slot_pack(A, 0, 0));
	assert_int_equal(ring_step(0, B, &rules), slot_pack(B, B, tick)); // no former owner
}

static void test_from_pins_only(void **state)
{
	uint64_t old = slot_pack(A, D, tick - TICKS - 1), young = slot_pack(A, D, tick - TICKS);

	assert_int_equal(ring_step(slot_pack(A, A, 5), B, &rules), slot_pack(B, A, tick));
	assert_int_equal(ring_step(slot_pack(A, A, 5), A, &rules), slot_pack(A, A, 5));
	// It was not written since it expired: it is pins only nevertheless.
	assert_int_equal(ring_step(old, B, &rules), slot_pack(B, A, tick));
	assert_int_equal(ring_step(old, D, &rules), slot_pack(D, A, tick));
	assert_int_equal(ring_step(old, A, &rules), old);
	assert_int_equal(ring_step(young, B, &rules), slot_pack(B, D, tick - TICKS));
	assert_int_equal(ring_step(young, D, &rules), slot_pack(D, D, tick));
}

static void test_from_changing(void **state)
{
	uint64_t slot = slot_pack(B, A, tick - 10);

	assert_int_equal(ring_step(slot, C, &rules), slot_pack(C, A, tick - 10)); // same clock
	assert_int_equal(ring_step(slot, A, &rules), slot_pack(A, A, tick));      // pins only
	assert_int_equal(ring_step(slot, B, &rules), slot);
}

// Only changing slots that would expire before that.
static void test_guard(void **state)
{
	uint64_t ring[] = {
		slot_pack(A, 0, 0),
		slot_pack(A, A, tick - 5),
		slot_pack(B, A, tick - TICKS - 1),  // over
		slot_pack(B, A, tick - TICKS),      // just not
		slot_pack(B, A, tick - TICKS + 11), // long enough
		slot_pack(B, A, tick + 7),          // until the end of a trial
	};
	uint64_t before[ARRAY_SIZE(ring)];

	memcpy(before, ring, sizeof(ring));
	assert_int_equal(ring_guard(ring, ARRAY_SIZE(ring), 10, &rules), 1);
	assert_int_equal(ring[3], slot_pack(B, A, tick - TICKS + 10));
	ring[3] = before[3];
	assert_memory_equal(ring, before, sizeof(ring));
	assert_int_equal(ring_guard(ring, ARRAY_SIZE(ring), 2 * TICKS, &rules), 2);
	assert_int_equal(ring[3], slot_pack(B, A, tick));
	assert_int_equal(ring[4], slot_pack(B, A, tick));
}

static void test_nobody_and_move(void **state)
{
	struct ring_rules move = rules;
	uint64_t slots[] = {0, slot_pack(A, 0, 0), slot_pack(B, A, tick), slot_pack(A, A, tick)};

	move.move = true;
	for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
		assert_int_equal(ring_step(slots[i], BACKEND_NONE, &rules), slots[i]);
		assert_int_equal(ring_step(slots[i], C, &move), slot_pack(C, 0, 0));
	}
}

// ---- ring_tidy, ring_trial, ring_hold -----------------------------------------------------------

static void test_tidy(void **state)
{
	uint64_t old = slot_pack(B, A, tick - TICKS - 1), young = slot_pack(B, A, tick - TICKS);

	for (int foreign = 0; foreign < 2; foreign++) {
		assert_int_equal(ring_tidy(slot_pack(A, 0, 0), foreign, &rules),
				 slot_pack(A, 0, 0));
		assert_int_equal(ring_tidy(young, foreign, &rules), young);
		assert_int_equal(ring_tidy(0, foreign, &rules), 0);
	}
	assert_int_equal(ring_tidy(old, true, &rules), slot_pack(B, B, tick));
	assert_int_equal(ring_tidy(old, false, &rules), slot_pack(B, 0, 0));
	assert_int_equal(ring_tidy(slot_pack(B, B, 7), true, &rules), slot_pack(B, B, 7));
	assert_int_equal(ring_tidy(slot_pack(B, B, 7), false, &rules), slot_pack(B, 0, 0));
}

static void test_trial(void **state)
{
	struct ring_rules move = rules;
	uint64_t young = slot_pack(B, A, tick), old = slot_pack(B, A, tick - TICKS - 1);

	move.move = true;
	assert_int_equal(ring_trial(slot_pack(A, 0, 0), &rules), slot_pack(A, A, tick));
	assert_int_equal(ring_trial(slot_pack(A, 0, 0), &move), slot_pack(A, 0, 0));
	assert_int_equal(ring_trial(young, &rules), young);
	assert_int_equal(ring_trial(old, &rules), old);
	assert_int_equal(ring_trial(0, &rules), 0);
}

static void test_extend(void **state)
{
	uint64_t young = slot_pack(B, A, tick), old = slot_pack(B, A, tick - TICKS - 1);
	uint64_t ring[] = {slot_pack(A, 0, 0), slot_pack(A, A, 7), young, old, 0};
	struct ring_rules later = rules;

	assert_int_equal(ring_extend(ring, ARRAY_SIZE(ring), rules.now + IDLE, &rules), 1);
	assert_int_equal(ring[0], slot_pack(A, 0, 0));
	assert_int_equal(ring[1], slot_pack(A, A, 7));
	assert_int_equal(ring[2], slot_pack(B, A, slot_time(rules.now + IDLE)));
	assert_int_equal(ring[3], old);
	assert_int_equal(ring[4], 0);
	// It expires neither now nor an idle after the end.
	assert_int_equal(slot_phase(ring[2], rules.now, TICKS), SLOT_CHANGING);
	later.now += 2 * IDLE;
	assert_int_equal(slot_phase(ring[2], later.now, TICKS), SLOT_CHANGING);
	later.now += 2 * 16;
	assert_int_equal(slot_phase(ring[2], later.now, TICKS), SLOT_PINS_ONLY);
	assert_int_equal(ring_extend(ring, ARRAY_SIZE(ring), later.now, &later), 0);
}

static void test_hold(void **state)
{
	static const uint32_t up[] = {1, 2, 4, 8, 16, 16};

	for (size_t i = 0; i + 1 < ARRAY_SIZE(up); i++)
		assert_int_equal(ring_hold(up[i], 1, IDLE, IDLE), up[i + 1]);
	assert_int_equal(ring_hold(9, 5, 0, IDLE), 16);
	assert_int_equal(ring_hold(8, 0, IDLE - 1, IDLE), 8);
	assert_int_equal(ring_hold(8, 0, IDLE, IDLE), 1);
}

// ---- whole rings --------------------------------------------------------------------------------

#define SIZE 65537

static uint64_t slots[SIZE], foreign[SIZE / 64 + 1];
static uint16_t owners[SIZE];

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void test_change_of_a_ring(void **state)
{
	const struct hash_key key = {{1, 2}};
	struct arena p = arena_of(1000);
	size_t changed, moved = 0;
	double took;

	arena_fill(&p, &key, SIZE, owners);
	assert_int_equal(ring_change(slots, owners, SIZE, &rules), SIZE);
	assert_int_equal(ring_tidy_all(slots, foreign, SIZE, &rules), SIZE);
	for (uint32_t i = 0; i < SIZE; i++)
		assert_int_equal(slots[i], slot_pack(owners[i], 0, 0));
	assert_int_equal(ring_change(slots, owners, SIZE, &rules), 0);
	p.n = 999;
	arena_fill(&p, &key, SIZE, owners);
	took = cpu_ms();
	changed = ring_change(slots, owners, SIZE, &rules);
	took = cpu_ms() - took;
	print_message("%zu of %d slots changed in %.3f ms\n", changed, SIZE, took);
	for (uint32_t i = 0; i < SIZE; i++) {
		assert_int_equal(slot_owner(slots[i]), owners[i]);
		moved += slot_phase(slots[i], NOW, TICKS) == SLOT_CHANGING;
	}
	assert_int_equal(moved, changed);
	assert_in_range(changed, 60, 2000);
	memset(slots, 0, sizeof(slots));
}

// ---- pins ---------------------------------------------------------------------------------------

#define TIME       100u
#define PIN_IDLE   15u
#define PIN_LINGER 4u
#define FLOW(i)    ((uint32_t)(((uint64_t)(i) << 32) / 4093 + 1)) // owner of slot i of 4093

static uint64_t bits(const uint64_t *set, uint32_t size)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < size; i++)
		n += set[i / 64] >> i % 64 & 1;
	return n;
}

static void owned_by(uint32_t size, uint32_t owner)
{
	for (uint32_t i = 0; i < size; i++)
		slots[i] = slot_pack(owner, owner, tick);
}

static void test_walk(void **state)
{
	uint64_t words[] = {
		0,
		pin_pack(FLOW(0), B, PIN_HALF, TIME),
		pin_pack(FLOW(1), A, PIN_TALKS, TIME),                 // its owner
		pin_pack(FLOW(63), B, PIN_HALF, TIME - PIN_IDLE),      // just lives
		pin_pack(FLOW(64), B, PIN_TALKS, TIME - PIN_IDLE - 1), // does not
		pin_pack(FLOW(4092), C, PIN_FOUND, TIME),
		pin_pack(FLOW(4092), A, PIN_FOUND, TIME),
		pin_pack(FLOW(7), BACKEND_NONE, PIN_FOUND, TIME), // no pin
		pin_pack(FLOW(130), B, PIN_CLOSED, TIME - PIN_LINGER),
		pin_pack(FLOW(131), B, PIN_CLOSED, TIME - PIN_LINGER - 1), // does not live either
	};
	struct ring_pins pins = {words,    ARRAY_SIZE(words), TIME,
				 PIN_IDLE, PIN_LINGER,        SERVICE_HASH_TUPLE};

	owned_by(4093, A);
	memset(foreign, 0xff, sizeof(foreign));
	assert_int_equal(ring_walk(&pins, slots, 4093, foreign), 6);
	assert_int_equal(bits(foreign, 4093), 4);
	assert_int_equal(foreign[130 / 64], 1ull << 130 % 64);
	assert_int_equal(foreign[0], 1 | 1ull << 63);
	assert_int_equal(foreign[4092 / 64], 1ull << 4092 % 64);
	assert_true(words[3] && !words[4] && !words[7] && words[8] && !words[9]);
	assert_int_equal(ring_walk(&pins, slots, 4093, foreign), 6);
}

// Pins of a service with `hash source` count for all slots.
static void test_walk_by_source(void **state)
{
	uint64_t words[8] = {0};
	struct ring_pins pins = {words, 8, TIME, PIN_IDLE, PIN_LINGER, SERVICE_HASH_SOURCE};

	owned_by(4093, A);
	slots[9] = slot_pack(B, B, tick);
	assert_int_equal(ring_walk(&pins, slots, 4093, foreign), 0);
	assert_int_equal(bits(foreign, 4093), 0);
	words[3] = pin_pack(FLOW(100), A, PIN_FOUND, TIME);
	assert_int_equal(ring_walk(&pins, slots, 4093, foreign), 1);
	assert_int_equal(bits(foreign, 4093), 1);
	assert_int_equal(foreign[0], 1 << 9);
	words[4] = pin_pack(FLOW(101), A, PIN_FOUND, TIME - 1);
	assert_int_equal(ring_walk(&pins, slots, 4093, foreign), 2);
	assert_int_equal(bits(foreign, 4093), 1);
	words[5] = pin_pack(FLOW(102), C, PIN_FOUND, TIME);
	assert_int_equal(ring_walk(&pins, slots, 4093, foreign), 3);
	assert_int_equal(bits(foreign, 4093), 4093);
}

static double walk_ms(const struct ring_pins *pins)
{
	double begin = cpu_ms();

	ring_walk(pins, slots, SIZE, foreign);
	return cpu_ms() - begin;
}

static void test_walk_time(void **state)
{
	const size_t n = 1 << 20;
	CLEANUP_FREE uint64_t *words = mem_zalloc(n, sizeof(*words));
	struct ring_pins pins = {words, n, TIME, PIN_IDLE, PIN_LINGER, SERVICE_HASH_TUPLE};
	uint64_t s = 41;
	double empty, used;

	owned_by(SIZE, A);
	memset(words, 0, n * sizeof(*words)); // no page is touched for the first time below
	empty = walk_ms(&pins);
	for (size_t i = 0; i < n / 16; i++)
		words[unit_below(&s, (unsigned)n)] =
			pin_pack((uint32_t)unit_random(&s), 1 + unit_below(&s, 4), PIN_TALKS, TIME);
	used = walk_ms(&pins);
	print_message("walk over %zu pins: none in use %.2f ms, 1 of 16 %.2f ms\n", n, empty, used);
	assert_in_range(bits(foreign, SIZE), SIZE / 3, SIZE * 2 / 3);
	memset(slots, 0, sizeof(slots));
}

// ---- flows through one slot ---------------------------------------------------------------------

// One slot, some flows, the decision table of docs/ring.md with exact pins: an active flow (at
// least one packet within each idle) keeps its backend while that lives. Clocks wrap many times.
#define FLOWS 24
#define SHIFT 2 // pins: ticks of 4 jiffies, so that their circle is 16 idles
#define LIFE  pin_life(IDLE, SHIFT)

struct flow {
	uint64_t pin;
	uint64_t heard;
	uint32_t backend; // 0: it is over
};

struct history {
	uint64_t random, now, slot;
	uint32_t owner;
	struct flow flow[FLOWS];
	uint64_t moved, packets, pinned, stable, changes;
};

static struct ring_rules rules_at(const struct history *h)
{
	return (struct ring_rules){.now = h->now, .hold_ticks = slot_ticks(IDLE, 1)};
}

static uint32_t pin_to(struct history *h, struct flow *f, uint32_t backend, enum pin_level level)
{
	uint64_t pin = pin_pack(1, backend, level, pin_time(h->now, SHIFT));
	bool same = f->pin >> PIN_TIME_BITS == pin >> PIN_TIME_BITS;

	if (!same || pin_age(f->pin, pin_time_of(pin)) >= pin_fresh(LIFE))
		f->pin = pin;
	h->pinned++;
	return backend;
}

static uint32_t decide(struct history *h, struct flow *f, bool opens)
{
	enum slot_phase phase = slot_phase(h->slot, h->now, slot_ticks(IDLE, 1));

	if (phase == SLOT_STABLE)
		return slot_owner(h->slot);
	if (!pin_lives(f->pin, pin_time(h->now, SHIFT), LIFE, 0))
		f->pin = 0;
	if (f->pin)
		return pin_to(h, f, pin_backend(f->pin), opens ? pin_level(f->pin) : PIN_TALKS);
	if (phase == SLOT_PINS_ONLY)
		return slot_owner(h->slot);
	return opens ? pin_to(h, f, slot_owner(h->slot), PIN_HALF)
		     : pin_to(h, f, slot_former(h->slot), PIN_FOUND);
}

static void packet(struct history *h)
{
	struct flow *f = &h->flow[unit_below(&h->random, FLOWS)];
	bool lives = f->backend && h->now - f->heard <= IDLE;
	uint32_t to = decide(h, f, !lives);

	h->packets++;
	h->moved += lives && to != f->backend;
	f->backend = unit_below(&h->random, 50) ? to : 0; // that was its last
	f->heard = h->now;
}

static void change(struct history *h)
{
	struct ring_rules r = rules_at(h);

	h->owner = 1 + unit_below(&h->random, 4);
	h->changes += h->owner != slot_owner(h->slot);
	h->slot = ring_step(h->slot, h->owner, &r);
}

static void tidy(struct history *h)
{
	struct ring_rules r = rules_at(h);
	uint64_t words[FLOWS], bit = 0;
	struct ring_pins pins = {words,    FLOWS, pin_time(h->now, SHIFT),
				 LIFE + 2, 0,     SERVICE_HASH_SOURCE};

	for (size_t i = 0; i < FLOWS; i++)
		words[i] = h->flow[i].pin;
	ring_walk(&pins, &h->slot, 1, &bit);
	h->slot = ring_tidy(h->slot, bit, &r);
	h->stable += !slot_former(h->slot);
	for (size_t i = 0; i < FLOWS; i++)
		h->flow[i].pin = words[i];
}

static void live(struct history *h, uint64_t steps, unsigned quiet)
{
	change(h);
	for (uint64_t i = 0; i < steps; i++) {
		h->now += unit_below(&h->random, quiet);
		packet(h);
		if (!unit_below(&h->random, 200))
			change(h);
		if (!unit_below(&h->random, 100))
			tidy(h);
		if (!unit_below(&h->random, 2000)) // a pause without any event
			h->now += unit_below(&h->random, 20 * IDLE);
	}
}

static void test_no_flow_moves(void **state)
{
	static const unsigned quiet[] = {3, 100, 1000, 3000};
	// From boot; across the wraps of the clocks of slots and of pins.
	static const uint64_t start[] = {1, (1ull << 40) - 20000000, (7ull << 40) - 1000};

	for (size_t q = 0; q < ARRAY_SIZE(quiet) * ARRAY_SIZE(start); q++) {
		struct history h = {.random = q + 1, .now = start[q / ARRAY_SIZE(quiet)]};

		live(&h, 150000, quiet[q % ARRAY_SIZE(quiet)]);
		assert_int_equal(h.moved, 0);
		assert_true(h.changes > 400 && h.pinned > 1000 && h.pinned < h.packets);
		if (quiet[q % ARRAY_SIZE(quiet)] >= 1000) // time enough between two changes
			assert_true(h.stable > 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_stable),
		cmocka_unit_test(test_from_pins_only),
		cmocka_unit_test(test_from_changing),
		cmocka_unit_test(test_nobody_and_move),
		cmocka_unit_test(test_tidy),
		cmocka_unit_test(test_trial),
		cmocka_unit_test(test_extend),
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_change_of_a_ring),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_walk_by_source),
		cmocka_unit_test(test_walk_time),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_no_flow_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
