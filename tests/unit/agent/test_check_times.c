// SPDX-License-Identifier: GPL-2.0-only
// Histograms of checks: limits belong to their bucket, services come and go.
#include "ctl/agent/check_times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct json *bucket(const struct json *service, uint64_t le_us)
{
	const struct json *buckets = json_get(service, "buckets");

	for (size_t n = 0; n < json_length(buckets); n++)
		if (json_get_u64(json_at(buckets, n), "le_us") == le_us)
			return json_at(buckets, n);
	return NULL;
}

static void add(struct check_times *t, uint32_t us, bool good, bool unknown)
{
	check_times_add(t, &(struct probe_result){.took_us = us, .good = good, .unknown = unknown});
}

static void test_buckets(void **state)
{
	struct all_check_times all = {0};
	struct check_times *t = check_times_of(&all, "web");
	struct json *list;
	const struct json *web;

	add(t, 0, true, false);
	add(t, 1000, true, false);
	add(t, 1001, false, false);
	add(t, 5000001, false, true);
	list = check_times_json(&all);
	web = json_at(list, 0);
	assert_int_equal(json_length(list), 1);
	assert_string_equal(json_get_string(web, "service"), "web");
	assert_int_equal(json_get_u64(bucket(web, 500), "checks"), 1);
	assert_int_equal(json_get_u64(bucket(web, 1000), "checks"), 2);
	assert_int_equal(json_get_u64(bucket(web, 2500), "checks"), 3);
	assert_int_equal(json_get_u64(bucket(web, 5000000), "checks"), 3);
	assert_int_equal(json_get_u64(web, "ended"), 4);
	assert_int_equal(json_get_u64(web, "us"), 5002002);
	assert_int_equal(json_get_u64(web, "good"), 2);
	assert_int_equal(json_get_u64(web, "failed"), 1);
	assert_int_equal(json_get_u64(web, "unknown"), 1);
	json_free(list);
	check_times_free(&all);
}

// A policy that keeps a service keeps its counters, at the same address.
static void test_services(void **state)
{
	struct all_check_times all = {0};
	struct check_times *web = check_times_of(&all, "web"), *dns = check_times_of(&all, "dns");
	const char *const kept[] = {"dns", "new"};

	assert_ptr_not_equal(web, dns);
	add(dns, 1, true, false);
	check_times_keep(&all, kept, 2);
	assert_int_equal(all.n, 1);
	assert_ptr_equal(check_times_of(&all, "dns"), dns);
	assert_int_equal(dns->ended, 1);
	assert_int_equal(check_times_of(&all, "web")->ended, 0);
	check_times_free(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
