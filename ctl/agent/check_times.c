// SPDX-License-Identifier: GPL-2.0-only
// Histograms of checks.
#include "ctl/agent/check_times.h"

#include <string.h>

#include "ctl/base/mem.h"

// From a server on the same link to the longest timeouts.
static const uint32_t limits_us[CHECK_TIMES] = {500,   1000,   2500,   5000,   10000,   25000,
						50000, 100000, 250000, 500000, 1000000, 5000000};

struct check_times *check_times_of(struct all_check_times *all, const char *service)
{
	struct check_times *t;

	vec_each (all, one)
		if (!strcmp((*one)->service, service))
			return *one;
	t = mem_new(struct check_times);
	*t = (struct check_times){.service = mem_strdup(service)};
	vec_push(all, t);
	return t;
}

static void free_one(struct check_times *t)
{
	free(t->service);
	free(t);
}

static bool has_name(const char *const *services, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(services[i], name))
			return true;
	return false;
}

void check_times_keep(struct all_check_times *all, const char *const *services, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < all->n; i++) {
		if (has_name(services, n, all->at[i]->service))
			all->at[kept++] = all->at[i];
		else
			free_one(all->at[i]);
	}
	all->n = kept;
}

void check_times_free(struct all_check_times *all)
{
	check_times_keep(all, NULL, 0);
	vec_free(all);
}

void check_times_add(struct check_times *t, const struct probe_result *r)
{
	t->ended++;
	t->us += r->took_us;
	t->unknown += r->unknown;
	t->failed += !r->good && !r->unknown;
	for (size_t i = 0; i < CHECK_TIMES; i++)
		if (r->took_us <= limits_us[i]) {
			t->within[i]++;
			return;
		}
}

static struct json *buckets_json(const struct check_times *t)
{
	struct json *buckets = json_array();
	uint64_t so_far = 0;

	for (size_t i = 0; i < CHECK_TIMES; i++) {
		struct json *bucket = json_object();

		so_far += t->within[i];
		json_set(bucket, "le_us", json_u64(limits_us[i]));
		json_set(bucket, "checks", json_u64(so_far));
		json_append(buckets, bucket);
	}
	return buckets;
}

struct json *check_times_json(const struct all_check_times *all)
{
	struct json *list = json_array();

	vec_each (all, one) {
		const struct check_times *t = *one;
		struct json *service = json_object();

		json_set(service, "service", json_string(t->service));
		json_set(service, "buckets", buckets_json(t));
		json_set(service, "ended", json_u64(t->ended));
		json_set(service, "us", json_u64(t->us));
		json_set(service, "good", json_u64(t->ended - t->failed - t->unknown));
		json_set(service, "failed", json_u64(t->failed));
		json_set(service, "unknown", json_u64(t->unknown));
		json_append(list, service);
	}
	return list;
}
