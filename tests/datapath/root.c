// SPDX-License-Identifier: GPL-2.0-only
// The root program: policy programs, the deadline, bypass, interface numbers.
#include <pthread.h>
#include <stdio.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/iface_table.h"
#include "tests/datapath/rig.h"

#define ENTRIES 16

static struct knobs *knobs_of(const struct rig *rig)
{
	return rig->instance->knobs;
}

static struct frame *good(void)
{
	static struct frame f;

	frame_udp(&f, "192.0.2.1", "192.0.2.2", 0);
	return &f;
}

static struct frame *bad(void)
{
	static struct frame f;

	frame_malformed(&f);
	return &f;
}

static void test_programs(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_FD int drop = rig_tiny(rig, DROPPED);

	EXPECT(t, rig, good(), PASS_DEFAULT, 28);
	rig_program(rig, PROG_PREVIOUS, drop);
	EXPECT(t, rig, good(), PASS_DEFAULT, 28);
	rig_policy(rig, PROG_ACTIVE, rig_lenient(rig));
	EXPECT(t, rig, bad(), PASS_MALFORMED, bad()->len);
	rig_policy(rig, PROG_ACTIVE, rig->policy);
	EXPECT(t, rig, bad(), DROP_IP4_SHORT, bad()->len);
	rig_program(rig, PROG_ACTIVE, drop);
	CHECK(t, rig_verdict(rig, good(), 1) == DROPPED, "the new program does not run");
}

static void test_empty_program(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);

	rig_program(rig, PROG_PREVIOUS, -1);
	EXPECT(t, rig, good(), PASS_DEFAULT, 28);
	rig_program(rig, PROG_ACTIVE, -1);
	EXPECT(t, rig, good(), PASS_NO_POLICY, good()->len);
	EXPECT(t, rig, bad(), PASS_NO_POLICY, bad()->len);
	rig_policy(rig, PROG_PREVIOUS, rig->policy);
	EXPECT(t, rig, good(), PASS_NO_POLICY, good()->len);
	knobs_of(rig)->deadline = 1;
	EXPECT(t, rig, good(), PASS_DEFAULT, 28);
	rig_program(rig, PROG_PREVIOUS, -1);
	rig_policy(rig, PROG_ACTIVE, rig->policy);
	EXPECT(t, rig, good(), PASS_NO_POLICY, good()->len);
}

static void test_deadline(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_FD int drop = rig_tiny(rig, DROPPED);

	rig_policy(rig, PROG_PREVIOUS, rig_lenient(rig));
	EXPECT(t, rig, bad(), DROP_IP4_SHORT, bad()->len);
	knobs_of(rig)->deadline = rig_after_ms(rig, 3600 * 1000);
	EXPECT(t, rig, bad(), DROP_IP4_SHORT, bad()->len);
	knobs_of(rig)->deadline = rig_clock(rig).jiffies - 1;
	EXPECT(t, rig, bad(), PASS_MALFORMED, bad()->len);
	rig_program(rig, PROG_PREVIOUS, drop);
	CHECK(t, rig_verdict(rig, good(), 1) == DROPPED, "not the previous program");
	knobs_of(rig)->deadline = 0;
	EXPECT(t, rig, good(), PASS_DEFAULT, 28);
}

static void test_deadline_passes(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_FD int drop = rig_tiny(rig, DROPPED);
	uint64_t deadline = rig_after_ms(rig, 300);
	uint32_t verdict;

	rig_program(rig, PROG_PREVIOUS, drop);
	knobs_of(rig)->deadline = deadline;
	verdict = rig_verdict(rig, good(), 1);
	if (rig_clock(rig).jiffies < deadline)
		CHECK(t, verdict == PASSED, "the previous program runs too early");
	else
		test_skip(t, "too slow for a deadline of 300 ms");
	rig_wait(rig, deadline + 1);
	CHECK(t, rig_verdict(rig, good(), 1) == DROPPED, "the previous program does not run");
}

// Interfaces that a trial attached pass everything after its deadline; the others use the previous
// program.
static void test_brought(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_FD int drop = rig_tiny(rig, DROPPED);
	uint64_t later = rig_after_ms(rig, 3600 * 1000);

	rig_overlay_text(rig, "block-from 192.0.2.1");
	rig_program(rig, PROG_PREVIOUS, drop);
	rig_iface(rig, 5);
	rig_iface(rig, 63);
	knobs_of(rig)->brought = 1ull << 63 | 1;
	EXPECT(t, rig, good(), DROP_BLOCK_FROM, 28); // there is no trial
	knobs_of(rig)->deadline = later;
	EXPECT(t, rig, good(), DROP_BLOCK_FROM, 28);
	EXPECT(t, rig, bad(), DROP_IP4_SHORT, bad()->len);
	knobs_of(rig)->deadline = rig_clock(rig).jiffies - 1;
	EXPECT(t, rig, good(), PASS_BYPASS, good()->len);
	EXPECT(t, rig, bad(), PASS_BYPASS, bad()->len);
	rig_iface(rig, 5);
	CHECK(t, rig_verdict(rig, good(), 1) == DROPPED, "not the previous program on another");
	knobs_of(rig)->brought = 0;
	rig_iface(rig, 63);
	CHECK(t, rig_verdict(rig, good(), 1) == DROPPED, "not the previous program");
}

static void test_bypass(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	uint64_t later = rig_after_ms(rig, 3600 * 1000);

	rig_overlay_text(rig, "block-from 192.0.2.1");
	rig_iface(rig, 6);
	rig_iface(rig, 5);
	knobs_of(rig)->bypass_until[5] = later;
	EXPECT(t, rig, good(), DROP_BLOCK_FROM, 28); // the sum is not set
	knobs_of(rig)->bypass = later;
	EXPECT(t, rig, good(), PASS_BYPASS, good()->len);
	EXPECT(t, rig, bad(), PASS_BYPASS, bad()->len);
	rig_iface(rig, 6);
	EXPECT(t, rig, good(), DROP_BLOCK_FROM, 28);
	EXPECT(t, rig, bad(), DROP_IP4_SHORT, bad()->len);
	rig_iface(rig, 0);
	EXPECT(t, rig, good(), DROP_BLOCK_FROM, 28);
	rig_iface(rig, 5);
	knobs_of(rig)->bypass_until[5] = 0;
	EXPECT(t, rig, good(), DROP_BLOCK_FROM, 28);
}

static void test_bypass_ends(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	uint64_t end = rig_after_ms(rig, 300);
	uint32_t verdict;

	rig_overlay_text(rig, "block-from 192.0.2.1");
	knobs_of(rig)->bypass_until[RIG_IFACE] = end;
	knobs_of(rig)->bypass = rig_after_ms(rig, 3600 * 1000);
	verdict = rig_verdict(rig, good(), 1);
	if (rig_clock(rig).jiffies < end)
		CHECK(t, verdict == PASSED, "no bypass");
	else
		test_skip(t, "too slow for a bypass of 300 ms");
	rig_wait(rig, end);
	EXPECT(t, rig, good(), DROP_BLOCK_FROM, 28);
}

// Every program runs in bypass as if there were no policy programs.
static void test_bypass_before_programs(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	uint64_t later = rig_after_ms(rig, 3600 * 1000);

	knobs_of(rig)->bypass_until[RIG_IFACE] = knobs_of(rig)->bypass = later;
	knobs_of(rig)->deadline = 1;
	rig_program(rig, PROG_ACTIVE, -1);
	rig_program(rig, PROG_PREVIOUS, -1);
	EXPECT(t, rig, good(), PASS_BYPASS, good()->len);
}

static void test_iface_numbers(struct test *t)
{
	static const uint32_t numbers[] = {1, 2, WEIR_IFACES - 1, 0};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);

	for (size_t n = 0; n < ARRAY_SIZE(numbers); n++) {
		struct outcome o;

		rig_iface(rig, numbers[n]);
		o = rig_send(rig, good(), 0);
		CHECK(t, o.moved_n == 1 && o.moved[0].number == numbers[n],
		      "interface %u: %zu counters, the first of %u", numbers[n], o.moved_n,
		      o.moved[0].number);
		rig_program(rig, PROG_ACTIVE, -1);
		o = rig_send(rig, good(), 0);
		CHECK(t, o.moved_n == 1 && o.moved[0].number == numbers[n],
		      "interface %u, counted by entry: %zu counters, the first of %u", numbers[n],
		      o.moved_n, o.moved[0].number);
		rig_policy(rig, PROG_ACTIVE, rig->policy);
	}
}

// An ifindex in the bucket of the loopback interface, and not in the table.
static uint32_t that_meets(const struct rig *rig)
{
	const struct knobs *knobs = knobs_of(rig);
	uint32_t place = iface_bucket(knobs->iface_hash, rig->ifindex);

	for (uint32_t index = rig->ifindex + 1;; index++)
		if (iface_bucket(knobs->iface_hash, index) == place)
			return index;
}

// One look-up finds the interface in either table, with any multiplier, among the most interfaces;
// an interface that is not in the table has number 0.
static void test_iface_table(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct knobs *knobs = knobs_of(rig);
	struct outcome o;

	rig_iface(rig, 7);
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		uint64_t hash = knobs->iface_hash;

		if (n == 7)
			continue;
		CHECK(t, !iface_table_set(knobs, that_meets(rig), n), "no room for interface %u",
		      n);
		CHECK(t, hash != knobs->iface_hash, "with %u interfaces: the same multiplier", n);
		o = rig_send(rig, good(), 0);
		CHECK(t, o.moved_n == 1 && o.moved[0].number == 7,
		      "with %u interfaces: counted on %u", n, o.moved[0].number);
	}
	iface_table_set(knobs, rig->ifindex, 0);
	o = rig_send(rig, good(), 0);
	CHECK(t, o.moved_n == 1 && o.moved[0].number == 0, "after the removal counted on %u",
	      o.moved[0].number);
}

struct sender {
	struct rig *rig;
	bool stop;
	unsigned long rounds, wrong;
};

static void *send_on(void *arg)
{
	struct sender *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		s->wrong += rig_verdict(s->rig, good(), 100) != PASSED;
		s->rounds++;
	}
	return NULL;
}

// Every packet during a thousand swaps runs through one of the two policies.
static void test_swap(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct sender s = {.rig = rig};
	struct err err = {0};
	struct counter none, passed;
	pthread_t thread;

	good();
	pthread_create(&thread, NULL, send_on, &s);
	for (size_t n = 0; n < 1000; n++)
		rig_policy(rig, PROG_ACTIVE, n % 2 ? rig->policy : rig_lenient(rig));
	__atomic_store_n(&s.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (counters_read(rig->instance, rig->counters, &err))
		test_die(&err);
	none = counters_reason(rig->counters, REASON_PASS_NO_POLICY);
	passed = counters_reason(rig->counters, REASON_PASS_DEFAULT);
	CHECK(t, !none.packets && !s.wrong, "%llu packets without a policy",
	      (unsigned long long)none.packets);
	CHECK(t, passed.packets == s.rounds * 100 && passed.bytes == passed.packets * 28,
	      "%llu packets, %llu bytes counted of %lu sent", (unsigned long long)passed.packets,
	      (unsigned long long)passed.bytes, s.rounds * 100);
}

const struct named_test entry_tests[] = {
	{"root: programs", test_programs},
	{"root: an empty slot", test_empty_program},
	{"root: deadline", test_deadline},
	{"root: the deadline passes", test_deadline_passes},
	{"root: what a trial brought", test_brought},
	{"root: bypass", test_bypass},
	{"root: bypass ends", test_bypass_ends},
	{"root: bypass needs no slot", test_bypass_before_programs},
	{"root: interface numbers", test_iface_numbers},
	{"root: interface table", test_iface_table},
	{"root: swap under load", test_swap},
	{NULL, NULL},
};
