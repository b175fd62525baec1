// SPDX-License-Identifier: GPL-2.0-only
// Holds the look-ups of the reference classifier against plainer ones.
#include <stdio.h>
#include <string.h>

#include "lists.h"
#include "ref.h"
#include "rng.h"

static unsigned int passed, failed;

static void check(bool good, const char *what, const char *got, const char *wanted)
{
	if (good) {
		passed++;
		return;
	}
	failed++;
	printf("FAILED %s\n  got    %s\n  wanted %s\n", what, got, wanted);
}

/* Entries that the caller puts into a dynamic set; what they match is in the file `cases`. */
static void test_dynamic(void)
{
	static const char text[] = "set d dynamic mask 24/64; drop to @d";
	struct ref_policy *policy = NULL;
	char msg[256];
	bool good = ref_policy_parse(text, strlen(text), ".", &policy, msg, sizeof(msg)) == 0;

	good = good && !ref_dynamic_add(policy, "d", "192.0.2.1") &&
	       !ref_dynamic_add(policy, "d", "2001:db8::1") &&
	       ref_dynamic_add(policy, "e", "192.0.2.1") < 0 &&
	       ref_dynamic_add(policy, "d", "192.0.2.0/24") < 0;
	check(good, "dynamic set", "another result", "two entries, and two that are refused");
	ref_policy_free(policy);
}

static struct prefix random_prefix(struct rng *rng)
{
	struct prefix prefix = {.addr.family = rng_chance(rng, 50) ? 4 : 6};

	prefix.len = rng_below(rng, 9);
	if (rng_chance(rng, 20))
		prefix.len = addr_bits(prefix.addr.family);
	prefix.addr.value = (u128)rng_below(rng, 256) << 120;
	prefix.addr.value &= addr_mask(prefix.len);
	return prefix;
}

/* The hash and the walk over all items decide alike. */
static void test_hash(struct rng *rng)
{
	struct pool pool = {0};
	struct addresses walked = {0}, hashed = {0};
	bool alike = true;

	for (unsigned int i = rng_below(rng, 40); i > 0; i--) {
		struct prefix prefix = random_prefix(rng);
		bool negative = rng_chance(rng, 30);

		addresses_add(&pool, &walked, &prefix, negative);
		addresses_add(&pool, &hashed, &prefix, negative);
	}
	addresses_finish(&pool, &walked, false);
	addresses_finish(&pool, &hashed, true);
	for (unsigned int i = 0; i < 512; i++) {
		struct addr addr = {.value = (u128)(i / 2) << 120, .family = i % 2 ? 4 : 6};
		struct decision a = addresses_decide(&walked, addr, i + 1, 0);
		struct decision b = addresses_decide(&hashed, addr, i + 1, 0);

		alike &= a.in == b.in && a.len == b.len;
	}
	check(alike, "hash of prefixes", "another decision", "the same");
	pool_free(&pool);
}

/* The prefixes of a range hold its addresses, no other, and none twice. */
static void test_range(struct rng *rng)
{
	unsigned int family = rng_chance(rng, 50) ? 4 : 6;
	unsigned int shift = 128 - addr_bits(family);
	unsigned int a = rng_below(rng, 200), b = a + rng_below(rng, 200 - a);
	u128 base = rng_chance(rng, 50) ? 0 : (~(u128)0 << shift >> shift) - 199;
	struct prefix prefixes[PREFIXES_MAX];
	struct addr lo = {.value = (base + a) << shift, .family = family};
	struct addr hi = {.value = (base + b) << shift, .family = family};
	int count = prefixes_of_range(lo, hi, prefixes);
	bool exact = count > 0;

	for (unsigned int i = 0; i < 200; i++) {
		struct addr addr = {.value = (base + i) << shift, .family = family};
		int holders = 0;

		for (int j = 0; j < count; j++)
			holders += prefix_holds(&prefixes[j], addr);
		exact &= holders == (i >= a && i <= b);
	}
	check(exact, "range cut into prefixes", "another set", "the range");
}

static void test_whole_ranges(void)
{
	struct prefix prefixes[PREFIXES_MAX];
	int v4 = prefixes_parse("0.0.0.0-255.255.255.255", prefixes);
	bool one = v4 == 1 && prefixes[0].len == 0;
	int most = prefixes_parse("::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", prefixes);

	check(one, "whole IPv4 range", "several prefixes", "one");
	check(most == 254, "largest IPv6 range", "another count", "254");
}

int main(void)
{
	struct rng rng = {.state = 1};

	test_dynamic();
	test_whole_ranges();
	for (int i = 0; i < 50; i++) {
		test_hash(&rng);
		test_range(&rng);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
