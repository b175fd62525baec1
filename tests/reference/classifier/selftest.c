// SPDX-License-Identifier: GPL-2.0-only
// Runs the fixed cases through the reference classifier, and its look-ups against a plainer one.
#include <stdio.h>
#include <string.h>

#include "lists.h"
#include "packet_text.h"
#include "ref.h"
#include "rng.h"
#include "selftest_cases.h"

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

static void answer(struct ref_policy *policy, const char *text, char *buf, size_t size)
{
	static struct build_frame frame;
	struct ref_packet packet;
	struct ref_result result;
	char iface[16];

	if (!packet_text_build(text, &frame, &packet, iface)) {
		snprintf(buf, size, "the case's packet is wrong");
		return;
	}
	ref_match(policy, &packet, &result);
	ref_format(&result, true, buf, size);
}

/* Keeps the policy from case to case. */
static void run_case(const struct selftest_case *one, struct ref_policy **policy)
{
	char what[4096], got[4096];

	if (one->policy) {
		ref_policy_free(*policy);
		*policy = NULL;
		if (ref_policy_parse(one->policy, strlen(one->policy), ".", policy, got,
				     sizeof(got)) < 0 &&
		    one->packet)
			*policy = NULL;
	}
	if (*policy && one->packet)
		answer(*policy, one->packet, got, sizeof(got));
	else if (*policy)
		snprintf(got, sizeof(got), "taken");
	else if (!one->packet && !strncmp(got, "unsupported: ", 13))
		snprintf(got, sizeof(got), "unsupported");
	snprintf(what, sizeof(what), "%s: %s | %s", one->topic,
		 one->policy ? one->policy : "as before", one->packet ? one->packet : "-");
	check(!strcmp(got, one->answer), what, got, one->answer);
}

/* Entries that the caller puts into a dynamic set. */
static void test_dynamic(void)
{
	static const char text[] = "set d dynamic mask 24/64; drop to @d";
	struct ref_policy *policy = NULL;
	char got[256];

	if (ref_policy_parse(text, strlen(text), ".", &policy, got, sizeof(got)) == 0) {
		bool added = !ref_dynamic_add(policy, "d", "192.0.2.1") &&
			     !ref_dynamic_add(policy, "d", "2001:db8::1") &&
			     ref_dynamic_add(policy, "e", "192.0.2.1") < 0 &&
			     ref_dynamic_add(policy, "d", "192.0.2.0/24") < 0;

		check(added, "dynamic set", "no entry", "an entry");
		answer(policy, "udp from 1.1.1.1 1 to 192.0.2.255 2", got, sizeof(got));
		check(!strcmp(got, "drop rule:1"), "dynamic set", got, "drop rule:1");
		answer(policy, "udp from 1.1.1.1 1 to 192.0.3.0 2", got, sizeof(got));
		check(!strcmp(got, "pass default"), "dynamic set", got, "pass default");
		answer(policy, "udp from ::1 1 to 2001:db8::ffff 2", got, sizeof(got));
		check(!strcmp(got, "drop rule:1"), "dynamic set", got, "drop rule:1");
	}
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
	struct ref_policy *policy = NULL;
	struct rng rng = {.state = 1};

	for (const struct selftest_case *one = selftest_cases; one->topic; one++)
		run_case(one, &policy);
	ref_policy_free(policy);
	test_dynamic();
	test_whole_ranges();
	for (int i = 0; i < 50; i++) {
		test_hash(&rng);
		test_range(&rng);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
