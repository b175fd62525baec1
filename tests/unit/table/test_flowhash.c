// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of common/flowhash.h and of ring_flow_key(): vectors, the messages word by word, and
// the quality of the hash, measured like SipHash: it must pass every test that SipHash passes.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "common/flowhash.h"
#include "common/service.h"
#include "ctl/base/mem.h"
#include "ctl/table/ring.h"

static const struct hash_key keys[] = {
	{{0, 0}},
	{{0x0706050403020100, 0x0f0e0d0c0b0a0908}},
	{{1, 0}},
	{{UINT64_MAX, UINT64_MAX}},
	{{0x0123456789abcdef, 0xfedcba9876543210}},
};

// A flow as a message: the words of docs/ring.md.
struct message {
	uint32_t word[FLOW_WORDS];
	unsigned n;
};

static uint64_t by_rule(const struct flow_key *key, const struct message *m)
{
	uint64_t x = 0;

	for (unsigned i = 0; i < m->n; i += 2)
		x += (key->word[i] + m->word[i]) * (key->word[i + 1] + m->word[i + 1]);
	for (unsigned i = 0; i < 2; i++) {
		x ^= x >> 32;
		x *= key->mix[i];
	}
	return x ^ x >> 32;
}

static uint64_t by_function(const struct flow_key *key, const struct message *m)
{
	const uint32_t *w = m->word;

	switch (m->n) {
	case 2:
		return flow_source4(key, w[0]);
	case 4:
		return flow_tuple4(key, w[0], w[1], w[2], (uint8_t)w[3]);
	default:
		return flow_tuple6(key, w, w + 4, w[8], (uint8_t)w[9]);
	}
}

// ---- vectors ------------------------------------------------------------------------------------

static const uint8_t source4[8] = {192, 0, 2, 1};
static const uint8_t tuple4[16] = {192, 0, 2, 1, 198, 51, 100, 200, 0x12, 0x34, 0x01, 0xbb, 6};
static const uint8_t tuple6[40] = {
	0x20, 0x01, 0x0d, 0xb8, 0,    1,    0,    2,    0,    3,    0,  4, 0,
	5,    0,    6,    0x20, 0x01, 0x0d, 0xb8, 0xff, 0xfe, 0,    0,  0, 0,
	0,    0x99, 0,    0x80, 0x7f, 0x01, 0x12, 0x34, 0x01, 0xbb, 17,
};

static struct message message_of(const uint8_t *bytes, unsigned n)
{
	struct message m = {.n = n};

	for (unsigned i = 0; i < 4 * n; i++)
		m.word[i / 4] |= (uint32_t)bytes[i] << i % 4 * 8;
	return m;
}

// As in docs/ring.md.
static void test_vectors(void **state)
{
	const struct message messages[] = {message_of(tuple4, 4), message_of(tuple6, 10),
					   message_of(source4, 2)};
	const uint64_t zero[] = {0x172ada4df0d91552, 0xb38ff08c7f8899f1, 0x006c4ed69eabbd44};
	const uint64_t counted[] = {0xb8620371f77c0777, 0x92fb28e9ba3b5e8f, 0x5b404b8245e10c98};
	struct flow_key none = ring_flow_key(&keys[0]), key = ring_flow_key(&keys[1]);
	const struct message source6 = message_of(tuple6, 4);

	assert_int_equal(none.word[0], 0x827f0ea7504d9ac2);
	assert_int_equal(none.mix[1], 0xa428a25fe2a4c09f);
	assert_int_equal(key.word[0], 0xa50cf5b2f87debf8);
	assert_int_equal(key.mix[1], 0x798c03547719f567);
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		assert_int_equal(by_function(&none, &messages[i]), zero[i]);
		assert_int_equal(by_function(&key, &messages[i]), counted[i]);
	}
	assert_int_equal(flow_source6(&none, source6.word), 0x8b02a055d436da64);
	assert_int_equal(flow_source6(&key, source6.word), 0x67bf21975ca8baef);
}

// Ports and protocol are words as in the packet.
static void test_words(void **state)
{
	const struct message m = message_of(tuple6, 10);

	assert_int_equal(flow_ports(0x1234, 443), m.word[8]);
	assert_int_equal(flow_proto(17), m.word[9]);
}

static void test_rule(void **state)
{
	static const unsigned sizes[] = {2, 4, 10};
	uint64_t s = 7;

	for (unsigned i = 0; i < 3000; i++) {
		struct flow_key key = ring_flow_key(&(struct hash_key){{unit_random(&s), i}});
		struct message m = {.n = sizes[i % 3]};

		for (unsigned w = 0; w < m.n; w++)
			m.word[w] = (uint32_t)unit_random(&s);
		m.word[m.n - 1] &= m.n == 2 ? 0 : 0xff;
		assert_int_equal(by_function(&key, &m), by_rule(&key, &m));
		m.n = 4;
		assert_int_equal(flow_source6(&key, m.word), by_rule(&key, &m));
	}
}

// All twelve differ, with every key, and the factors of the finalizer are odd.
static void test_keys(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		struct flow_key key = ring_flow_key(&keys[k]);

		assert_true(key.mix[0] & key.mix[1] & 1);
		assert_true(key.mix[0] != key.mix[1]);
		for (unsigned i = 0; i < FLOW_WORDS; i++)
			for (unsigned j = 0; j < i; j++)
				assert_true(key.word[i] != key.word[j]);
	}
}

// ---- quality ------------------------------------------------------------------------------------

#define FLOWS  (1u << 18)
#define SLOTS  4093u
#define CELLS  65536u
#define TRIALS 1024u // trials of the avalanche, for each bit of the message

// A hash to be measured.
struct subject {
	struct hash_key sip;
	struct flow_key flow;
};
typedef uint64_t hash_function(const struct subject *s, const struct message *m);

static uint64_t hash_flow(const struct subject *s, const struct message *m)
{
	return by_function(&s->flow, m);
}

static uint64_t hash_sip(const struct subject *s, const struct message *m)
{
	return hash_bytes(&s->sip, m->word, 4ull * m->n, HASH_ROUNDS, HASH_ROUNDS_FINAL);
}

// The measure must refuse the products without the finalizer, and with half a finalizer.
static uint64_t hash_bare(const struct subject *s, const struct message *m)
{
	uint64_t x = 0;

	for (unsigned i = 0; i < m->n; i += 2)
		x += (s->flow.word[i] + m->word[i]) * (s->flow.word[i + 1] + m->word[i + 1]);
	return x;
}

static uint64_t hash_half(const struct subject *s, const struct message *m)
{
	uint64_t x = hash_bare(s, m) * s->flow.mix[0];

	return x ^ x >> 32;
}

enum pattern { SOURCES, PORTS, NETWORK, RANDOM, PATTERNS };

// Flow i of a pattern to one service: 443, tcp.
static struct message drawn(enum pattern pattern, unsigned family, uint32_t i, uint64_t *random)
{
	struct message m = message_of(family == 4 ? tuple4 : tuple6, family == 4 ? 4 : 10);
	unsigned last = family == 4 ? 0 : 3; // word of the source
	uint32_t sport = 40000, host = 1;

	switch (pattern) {
	case SOURCES:
		host = i;
		break;
	case PORTS:
		sport = i & 0xffff;
		host = i >> 16;
		break;
	case NETWORK:
		sport = i >> 8;
		host = i & 0xff;
		break;
	default:
		for (unsigned w = 0; w < last; w++)
			m.word[w] = (uint32_t)unit_random(random);
		host = (uint32_t)unit_random(random);
		sport = (uint32_t)unit_random(random) & 0xffff;
		break;
	}
	m.word[last] = __builtin_bswap32(0x0a000000 + host);
	m.word[m.n - 2] = flow_ports((uint16_t)sport, 443);
	m.word[m.n - 1] = 6;
	return m;
}

// How far the chi-square of n counts is from what chance gives: the square of its standard
// deviations.
static double deviation(const uint32_t *counts, uint32_t n)
{
	double mean = (double)FLOWS / n, sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (counts[i] - mean) * (counts[i] - mean) / mean;
	sum -= n - 1;
	return sum * sum / (2.0 * (n - 1));
}

struct quality {
	double slots, buckets, halves; // the greatest deviation(), of too many and of too even
	double avalanche;              // the greatest difference from one half
};

static void worst(double *of, double value)
{
	value = value < 0 ? -value : value;
	*of = value > *of ? value : *of;
}

// Slots come from the lower half, buckets from the upper; in `cells` the upper bits of both meet.
static void measure_spread(hash_function *hash, const struct subject *s, enum pattern pattern,
			   unsigned family, struct quality *q)
{
	CLEANUP_FREE uint32_t *slots = mem_zalloc(SLOTS, 4), *buckets = mem_zalloc(SLOTS, 4);
	CLEANUP_FREE uint32_t *cells = mem_zalloc(CELLS, 4);
	uint64_t random = 99;

	for (uint32_t i = 0; i < FLOWS; i++) {
		struct message m = drawn(pattern, family, i, &random);
		uint64_t h = hash(s, &m);

		slots[slot_of(h, SLOTS)]++;
		buckets[pin_bucket_of(h, SLOTS)]++;
		cells[(h >> 56) << 8 | (h >> 24 & 0xff)]++;
	}
	worst(&q->slots, deviation(slots, SLOTS));
	worst(&q->buckets, deviation(buckets, SLOTS));
	worst(&q->halves, deviation(cells, CELLS));
}

// How often each bit of the hash changes with this bit of the message.
static void measure_bit(hash_function *hash, const struct subject *s, enum pattern pattern,
			unsigned family, unsigned bit, struct quality *q)
{
	uint32_t changed[64] = {0};
	uint64_t random = 5;

	for (uint32_t i = 0; i < TRIALS; i++) {
		struct message m = drawn(pattern, family, i * 251, &random);
		uint64_t h = hash(s, &m);

		m.word[bit / 32] ^= 1u << bit % 32;
		h ^= hash(s, &m);
		for (unsigned out = 0; out < 64; out++)
			changed[out] += (uint32_t)(h >> out & 1);
	}
	for (unsigned out = 0; out < 64; out++)
		worst(&q->avalanche, (double)changed[out] / TRIALS - 0.5);
}

static struct quality measure(hash_function *hash, unsigned family)
{
	struct quality q = {0};

	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		struct subject s = {keys[k], ring_flow_key(&keys[k])};

		for (enum pattern p = 0; p < PATTERNS; p++) {
			unsigned bits = family == 4 ? 96 : 288; // all but the protocol's

			measure_spread(hash, &s, p, family, &q);
			for (unsigned bit = 0; bit < bits; bit++)
				measure_bit(hash, &s, p, family, bit, &q);
		}
	}
	print_message("slots %.1f, buckets %.1f, halves %.1f, avalanche %.3f\n", q.slots, q.buckets,
		      q.halves, q.avalanche);
	return q;
}

// Among 20 deviations, one of 4.5 occurs by chance once in 7,000 keys. A bit's share of 1024 trials
// has a deviation of 0.016: 0.1 is 6.4 deviations.
#define DEVIATION_MAX (4.5 * 4.5)
#define AVALANCHE_MAX 0.1

static bool is_good(const struct quality *q)
{
	return q->slots < DEVIATION_MAX && q->buckets < DEVIATION_MAX &&
	       q->halves < DEVIATION_MAX && q->avalanche < AVALANCHE_MAX;
}

static void test_quality4(void **state)
{
	struct quality flow = measure(hash_flow, 4), sip = measure(hash_sip, 4);

	assert_true(is_good(&sip));
	assert_true(is_good(&flow));
}

static void test_quality6(void **state)
{
	struct quality flow = measure(hash_flow, 6), sip = measure(hash_sip, 6);

	assert_true(is_good(&sip));
	assert_true(is_good(&flow));
}

static void test_measure_refuses(void **state)
{
	struct quality bare = measure(hash_bare, 4), half = measure(hash_half, 4);

	assert_false(is_good(&bare));
	assert_false(is_good(&half));
	assert_true(bare.slots > DEVIATION_MAX && half.avalanche > AVALANCHE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_rule),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_quality4),
		cmocka_unit_test(test_quality6),
		cmocka_unit_test(test_measure_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
