// SPDX-License-Identifier: GPL-2.0-only
// Which packets are sampled: as many as the share says, and independently of each other. The
// record's layout.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>

#include "common/sample.h"
#include "ctl/base/mem.h"

#define RUNS    400
#define PACKETS 20000

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

struct series {
	uint64_t packets, bytes; // of the counter before
	uint32_t fixed;          // length of all packets; 0: 60 … 1,499
};

struct chosen {
	double n, pairs; // packets, and those whose predecessor is chosen too
};

static struct chosen choose(const struct series *s, uint64_t seed, uint32_t share)
{
	uint64_t bytes = s->bytes;
	struct chosen c = {0};
	bool before = false;

	for (uint64_t p = 1; p <= PACKETS; p++) {
		bool now;

		bytes += s->fixed ? s->fixed : 60 + draw() % 1440;
		now = sample_chooses(s->packets + p, bytes, seed, share);
		c.n += now;
		c.pairs += now && before;
		before = now;
	}
	return c;
}

// Over many seeds the number of chosen packets has mean and variance of the binomial distribution.
// Limits: four standard deviations of both.
static void check(const struct series *s, uint32_t share)
{
	double part = share / 4294967296.0, variance = PACKETS * part * (1 - part);
	double sum = 0, squares = 0, pairs = 0;

	for (int run = 0; run < RUNS; run++) {
		struct chosen c = choose(s, draw(), share);
		double off = c.n - PACKETS * part;

		sum += off;
		squares += off * off;
		pairs += c.pairs;
	}
	assert_true(sum * sum < 16 * RUNS * variance);
	assert_true(squares / RUNS / variance > 1 - 0.3 && squares / RUNS / variance < 1 + 0.3);
	if (part > 0.01) {
		double expected = (double)RUNS * PACKETS * part * part;

		assert_true(pairs > 0.97 * expected && pairs < 1.03 * expected);
	}
}

static void as_many_as_the_share_says(void **unused)
{
	static const uint32_t shares[] = {1u << 22, 1u << 25, 1u << 28, 1u << 31, 3u << 30};
	static const struct series all[] = {
		{0, 0, 0},
		{0, 0, 60},
		{0, 0, 64},
		{0, 0, 1500},
		{123456789012, 98765432109876, 0},
		{123456789012, 98765432109876, 60},
	};

	for (size_t s = 0; s < ARRAY_SIZE(all); s++)
		for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
			check(&all[s], shares[i]);
}

// Two CPUs that have counted equally many packets, of other lengths, choose independently.
static void equal_counts_differ_by_their_bytes(void **unused)
{
	const uint32_t share = 1u << 28;
	double both = 0, expected = RUNS * PACKETS / 256.0;

	for (int run = 0; run < RUNS; run++) {
		uint64_t seed = draw(), a = 0, b = 0;

		for (uint64_t p = 1; p <= PACKETS; p++) {
			a += 60 + draw() % 1440;
			b += 60 + draw() % 1440;
			both += sample_chooses(p, a, seed, share) &&
				sample_chooses(p, b, seed, share);
		}
	}
	assert_true(both > 0.95 * expected && both < 1.05 * expected);
}

static void none_and_nearly_all(void **unused)
{
	uint32_t left_out = 0;

	for (uint64_t p = 1; p < 100000; p++) {
		assert_false(sample_chooses(p, p * 60, 7, 0));
		left_out += !sample_chooses(p, p * 60, 7, ~0u);
	}
	assert_true(left_out <= 1);
}

// The reader and both compilers of the datapath agree on the record without padding.
static void the_record_has_no_holes(void **unused)
{
	assert_int_equal(offsetof(struct sampled, ifindex), 8);
	assert_int_equal(offsetof(struct sampled, reason), 12);
	assert_int_equal(offsetof(struct sampled, captured), 14);
	assert_int_equal(offsetof(struct sampled, rule), 16);
	assert_int_equal(offsetof(struct sampled, share), 20);
	assert_int_equal(offsetof(struct sampled, length), 24);
	assert_int_equal(offsetof(struct sampled, bytes), 28);
	assert_int_equal(offsetof(struct sampled, packet), 32);
	assert_true(WEIR_SAMPLES_BYTES / (sizeof(struct sampled) + 8) > 3 * 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_as_the_share_says),
		cmocka_unit_test(equal_counts_differ_by_their_bytes),
		cmocka_unit_test(none_and_nearly_all),
		cmocka_unit_test(the_record_has_no_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
