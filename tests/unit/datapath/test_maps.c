// SPDX-License-Identifier: GPL-2.0-only
// Each map of the programs is shared, belongs to a generation, or is known to be private to a
// program.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/parts.h"
#include "xdp/outgoing.skel.h"
#include "xdp/root.skel.h"

enum object_size {
	SIZE_SHARDS4 = 1,
	SIZE_SHARDS6,
	SIZE_NETS,
};

static const struct object {
	const char *file, *map;
	enum object_size size;
	enum bpf_map_type type;
	uint32_t key_size, value_size, max_entries, flags;
} shared[] = {
#define X(member, name, ...) {.file = (name), __VA_ARGS__},
	INSTANCE_OBJECTS(X)
#undef X
};

// Scratch memory, pace and fragments of one program; the answers of the test program.
static const char *const private_maps[] = {
	"packets",    "event_pace", "randomness",  "sum_buffers",   "encaps",
	"pathquotes", "nat_asks",   "nat_courses", "nat_fragments", "test",
};

static size_t times_shared(const struct bpf_object *obj, const struct bpf_map *map)
{
	size_t n = 0;

	for (size_t o = 0; o < ARRAY_SIZE(shared); o++)
		n += shared[o].map && bpf_object__find_map_by_name(obj, shared[o].map) == map;
	return n;
}

static size_t times_part(const struct policy_bpf *skel, const struct bpf_map *map)
{
	size_t n = 0;

	for (enum part p = 0; p < PARTS; p++)
		n += part_map(skel, p) == map;
	return n;
}

static size_t times_private(const struct bpf_map *map)
{
	size_t n = 0;

	for (size_t p = 0; p < ARRAY_SIZE(private_maps); p++)
		n += !strcmp(private_maps[p], bpf_map__name(map));
	return n;
}

static void each_map_of_a_policy_is_listed_once(void **state)
{
	struct policy_bpf *skel = policy_bpf__open();
	struct bpf_map *map;

	assert_non_null(skel);
	bpf_object__for_each_map(map, skel->obj)
	{
		size_t times =
			times_shared(skel->obj, map) + times_part(skel, map) + times_private(map);

		if (times != 1)
			fail_msg("map '%s' is listed %zu times", bpf_map__name(map), times);
	}
	policy_bpf__destroy(skel);
}

static void the_root_program_has_shared_maps_only(void **state)
{
	struct root_bpf *skel = root_bpf__open();
	struct bpf_map *map;

	assert_non_null(skel);
	bpf_object__for_each_map(
		map, skel->obj) if (times_shared(skel->obj, map) + times_private(map) != 1)
		fail_msg("map '%s' is not shared", bpf_map__name(map));
	root_bpf__destroy(skel);
}

static void the_programs_of_calls_have_shared_maps_only(void **state)
{
	struct outgoing_bpf *skel = outgoing_bpf__open();
	struct bpf_map *map;

	assert_non_null(skel);
	bpf_object__for_each_map(map, skel->obj)
	{
		if (!strcmp(bpf_map__name(map), "outgoing.rodata"))
			continue; // the network namespace
		if (times_shared(skel->obj, map) != 1)
			fail_msg("map '%s' is not shared", bpf_map__name(map));
	}
	outgoing_bpf__destroy(skel);
}

// The first policy of an instance makes the shared maps that have no type in the list: it must have
// each.
static void a_policy_has_each_shared_map(void **state)
{
	struct policy_bpf *skel = policy_bpf__open();

	assert_non_null(skel);
	for (size_t o = 0; o < ARRAY_SIZE(shared); o++)
		if (shared[o].map && !shared[o].type &&
		    !bpf_object__find_map_by_name(skel->obj, shared[o].map))
			fail_msg("no program has the shared map '%s'", shared[o].map);
	policy_bpf__destroy(skel);
}

static void names_in_bpffs_differ(void **state)
{
	for (size_t a = 0; a < ARRAY_SIZE(shared); a++)
		for (size_t b = 0; b < a; b++)
			assert_string_not_equal(shared[a].file, shared[b].file);
	for (enum part a = 0; a < PARTS; a++)
		for (enum part b = 0; b < a; b++)
			assert_string_not_equal(part_name(a), part_name(b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_map_of_a_policy_is_listed_once),
		cmocka_unit_test(the_root_program_has_shared_maps_only),
		cmocka_unit_test(the_programs_of_calls_have_shared_maps_only),
		cmocka_unit_test(a_policy_has_each_shared_map),
		cmocka_unit_test(names_in_bpffs_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
