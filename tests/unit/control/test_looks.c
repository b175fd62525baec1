// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/looks.h: verdicts by example, and the file with damage, with strangers
// and with other writers.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/sum.h"
#include "ctl/datapath/bpffs.h"

static const char pattern[] = "/tmp/weir-looks-XXXXXX";
static char run_folder[sizeof(pattern)];
#undef WEIR_RUN_FOLDER
#define WEIR_RUN_FOLDER run_folder
#include "ctl/control/looks.c"

#define T0       1790000000000ull // wall clock
#define MINUTE   60000ull
#define PROGS_ID 77

// ---- verdicts -----------------------------------------------------------------------------------

static bool judge(struct look *l, uint64_t opened, uint64_t packets, uint64_t now_ms)
{
	return look_judge(l, &(struct look_count){.packets = packets, .opened = opened}, true,
			  now_ms);
}

static void test_the_first_look_has_the_sums(void **state)
{
	struct look l = {0};

	assert_false(judge(&l, 9, 9, T0)); // too few
	assert_false(l.silent);
	assert_true(judge(&l, 9, 10, T0));
	assert_true(l.silent);
	assert_int_equal(l.judged.opened, 9);
	assert_int_equal(l.judged.packets, 10);
	assert_int_equal(l.since_ms, 0);
	l = (struct look){0};
	assert_true(judge(&l, 89, 100, T0));
	assert_false(l.silent);
}

static void test_one_that_dies_after_long_service(void **state)
{
	struct look l = {0};

	assert_true(judge(&l, 102, 612, T0));
	assert_false(l.silent);
	assert_false(judge(&l, 111, 621, T0 + MINUTE)); // too few since then: they add up
	assert_false(l.silent);
	assert_true(judge(&l, 290, 800, T0 + 2 * MINUTE));
	assert_true(l.silent);
	assert_int_equal(l.judged.opened, 188);
	assert_int_equal(l.judged.packets, 188);
	assert_int_equal(l.since_ms, T0);
	assert_false(judge(&l, 292, 808, T0 + 3 * MINUTE)); // the verdict stays
	assert_true(l.silent);
	assert_true(judge(&l, 294, 812, T0 + 4 * MINUTE)); // it answers
	assert_false(l.silent);
	assert_int_equal(l.since_ms, T0 + 2 * MINUTE);
}

static void test_older_connections_do_not_hide_it(void **state)
{
	struct look l = {0};

	judge(&l, 100, 1000, T0);
	assert_true(judge(&l, 189, 1100, T0 + MINUTE));
	assert_false(l.silent);
	assert_true(judge(&l, 279, 1200, T0 + 2 * MINUTE));
	assert_true(l.silent);
}

static void test_openings_of_an_instant(void **state)
{
	struct look l = {0};

	judge(&l, 100, 1000, T0);
	assert_false(judge(&l, 150, 1050, T0 + 10)); // another reader: no answer can be here yet
	assert_false(l.silent);
	assert_true(judge(&l, 150, 1200, T0 + 20)); // the answers have arrived
	assert_false(l.silent);
	assert_true(judge(&l, 250, 1300, T0 + 20 + LOOK_SILENT_MS));
	assert_true(l.silent);
	assert_true(judge(&l, 350, 1400, T0)); // the clock was set back
	assert_true(l.silent);
	assert_true(judge(&l, 351, 1500, T0 + 1)); // a good one may be short
	assert_false(l.silent);
}

static void test_counters_that_began_anew(void **state)
{
	struct look l = {0};

	judge(&l, 100, 1000, T0);
	judge(&l, 200, 1100, T0 + MINUTE);
	assert_true(l.silent);
	assert_true(judge(&l, 1, 5, T0 + 2 * MINUTE));
	assert_false(l.silent);
	assert_int_equal(l.at.packets, 0);
	assert_true(judge(&l, 10, 10, T0 + 2 * MINUTE + 1));
	assert_true(l.silent);
	assert_int_equal(l.since_ms, 0);
	assert_true(judge(&l, 9, 1000, T0 + 3 * MINUTE)); // fewer openings
	assert_false(l.silent);
	assert_int_equal(l.since_ms, 0);
}

static void test_without_new_flows(void **state)
{
	struct look l = {0};

	judge(&l, 10, 10, T0);
	assert_true(l.silent);
	assert_true(look_judge(&l, &(struct look_count){11, 11}, false, T0 + MINUTE));
	assert_false(l.silent); // drained: that it is silent means nothing
	assert_false(look_judge(&l, &(struct look_count){12, 12}, false, T0 + 2 * MINUTE));
	assert_true(look_judge(&l, &(struct look_count){30, 30}, false, T0 + 3 * MINUTE));
	assert_false(l.silent);
	assert_false(judge(&l, 39, 39, T0 + 4 * MINUTE)); // again: only packets from now on
	assert_true(judge(&l, 40, 40, T0 + 5 * MINUTE));
	assert_true(l.silent);
}

// ---- the file -----------------------------------------------------------------------------------

static const struct lb_service web = {.name = "web"}, mail = {.name = "mail"};

static struct lb_member member(uint8_t last, uint16_t id)
{
	return (struct lb_member){.addr = {10, 0, 0, last}, .family = 4, .id = id};
}

struct backend_seen {
	const struct lb_service *service;
	struct lb_member member;
	struct look_count count;
};

// Runs one command. ret: the looks, in the order of the backends.
static void look_at(const struct backend_seen *all, size_t n, uint32_t progs_id, uint64_t now_ms,
		    struct look *ret)
{
	CLEANUP_LOOKS struct looks looks;

	looks_open("main", progs_id, &looks);
	for (size_t i = 0; i < n; i++)
		ret[i] = *looks_at(&looks, all[i].service, &all[i].member, &all[i].count, true,
				   now_ms);
	looks_save(&looks);
}

static char *path(const char *name)
{
	static char text[256];

	snprintf(text, sizeof(text), "%s/main%s", run_folder, name);
	return text;
}

static int set_up(void **state)
{
	memcpy(run_folder, pattern, sizeof(pattern));
	assert_non_null(mkdtemp(run_folder));
	return file_mkdirs(path(""), 0755, NULL);
}

static int tear_down(void **state)
{
	return file_remove_tree(run_folder, NULL);
}

static void test_looks_are_kept(void **state)
{
	struct backend_seen all[] = {
		{&web, member(1, 5), {1000, 10}},
		{&web, member(2, 6), {1000, 10}},
		{&mail, member(1, 7), {1000, 10}},
		{&mail, {.id = 8}, {1000, 10}}, // here
	};
	struct backend_seen later[4];
	struct look looks[4];

	look_at(all, 4, PROGS_ID, T0, looks);
	for (size_t i = 0; i < 4; i++)
		assert_false(looks[i].silent);
	for (size_t i = 0; i < 4; i++) { // in another order
		later[i] = all[3 - i];
		later[i].count = (struct look_count){1100, i % 2 ? 110 : 11};
	}
	look_at(later, 4, PROGS_ID, T0 + MINUTE, looks);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(looks[i].silent, i % 2);
		assert_int_equal(looks[i].since_ms, T0);
	}
	look_at(&later[1], 1, PROGS_ID, T0 + 2 * MINUTE, looks);
	assert_true(looks[0].silent); // the verdict, and what it is about, too
	assert_int_equal(looks[0].judged.packets, 100);
	assert_int_equal(looks[0].since_ms, T0);
}

// This backend has no earlier reading: the sums count, which are good.
static void test_looks_at_another(void **state)
{
	const struct backend_seen before = {&web, member(1, 5), {1000, 10}};
	const struct {
		struct backend_seen of;
		uint32_t progs_id;
		bool silent;
	} cases[] = {
		{{&web, member(1, 5), {1100, 110}}, PROGS_ID, true},
		{{&web, member(2, 5), {1100, 110}}, PROGS_ID, false},  // another address
		{{&mail, member(1, 5), {1100, 110}}, PROGS_ID, false}, // service
		{{&web, member(1, 6), {1100, 110}}, PROGS_ID, false},  // number, so counters
		{{&web, {.id = 5}, {1100, 110}}, PROGS_ID, false},     // here
		{{&web, member(1, 5), {1100, 110}}, PROGS_ID + 1, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct look look;

		unlink(path("/looks"));
		look_at(&before, 1, PROGS_ID, T0, &look);
		look_at(&cases[i].of, 1, cases[i].progs_id, T0 + MINUTE, &look);
		assert_int_equal(look.silent, cases[i].silent);
	}
}

static void test_a_damaged_file_is_none(void **state)
{
	struct backend_seen one = {&web, member(1, 5), {1000, 10}};
	CLEANUP_FREE char *good = NULL;
	struct look look;
	size_t len;

	look_at(&one, 1, PROGS_ID, T0, &look);
	assert_int_equal(file_read(path("/looks"), 65536, &good, &len, NULL), 0);
	one.count = (struct look_count){1100, 110};
	for (size_t cut = 0; cut + 1 < len; cut++) { // the last one is the newline
		assert_int_equal(file_replace(path("/looks"), good, cut, 0600, NULL), 0);
		look_at(&one, 1, PROGS_ID, T0 + MINUTE, &look);
		assert_false(look.silent);
		assert_int_equal(look.since_ms, 0);
	}
	assert_int_equal(file_replace(path("/looks"), good, len, 0600, NULL), 0);
	look_at(&one, 1, PROGS_ID, T0 + MINUTE, &look);
	assert_true(look.silent);
}

static void test_strange_documents(void **state)
{
	static const char *const texts[] = {
		"[]",
		"weir-state 1\nlook 7\n",
		"weir-state 1\nlook {\"service\":\"web\"}\n",
		"weir-state 1\nlook {\"service\":\"web\",\"address\":\"x\"}\n",
		"weir-state 1\nother {}\n",
	};
	const struct backend_seen one = {&web, member(1, 5), {1100, 110}};
	struct look look;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(sum_write(path("/looks"), texts[i], strlen(texts[i]), NULL), 0);
		look_at(&one, 1, PROGS_ID, T0, &look);
		assert_false(look.silent);
		assert_int_equal(look.at.packets, 1100);
	}
}

// A command does not depend on writing the file: the next one has the previous look.
static void test_a_file_that_cannot_be_written(void **state)
{
	struct backend_seen one = {&web, member(1, 5), {1000, 10}};
	CLEANUP_FD int other = open(path(""), O_RDONLY | O_DIRECTORY);
	struct look look;

	look_at(&one, 1, PROGS_ID, T0, &look);
	one.count = (struct look_count){1100, 110};
	assert_int_equal(flock(other, LOCK_EX), 0); // another command writes
	look_at(&one, 1, PROGS_ID, T0 + MINUTE, &look);
	assert_int_equal(look.since_ms, T0);
	one.count = (struct look_count){1200, 210};
	look_at(&one, 1, PROGS_ID, T0 + 2 * MINUTE, &look);
	assert_true(look.silent);
	assert_int_equal(look.judged.packets, 200);
	assert_int_equal(look.since_ms, T0);
	flock(other, LOCK_UN);
	look_at(&one, 1, PROGS_ID, T0 + 2 * MINUTE, &look);
	one.count = (struct look_count){1300, 310};
	look_at(&one, 1, PROGS_ID, T0 + 3 * MINUTE, &look);
	assert_int_equal(look.since_ms, T0 + 2 * MINUTE);
	assert_int_equal(file_remove_tree(run_folder, NULL), 0);
	look_at(&one, 1, PROGS_ID, T0 + MINUTE, &look); // only the sums
	assert_false(look.silent);
	assert_false(file_exists(run_folder));
}

// Counters that the datapath changes; each command reads them after the file.
struct shared {
	uint64_t steps;
};

// Runs a command each time. The sums are openings, packets since the first look are not. Exit
// status 1: a verdict is silent.
static void look_often(struct shared *shared)
{
	for (int i = 0; i < 100; i++) {
		CLEANUP_LOOKS struct looks looks;
		struct lb_member one = member(1, 5);
		struct look_count now;
		uint64_t steps;

		looks_open("main", PROGS_ID, &looks);
		steps = __atomic_add_fetch(&shared->steps, 1, __ATOMIC_SEQ_CST);
		now = (struct look_count){1000000 + 20 * steps, 1000000 + steps};
		if (looks_at(&looks, &web, &one, &now, true, T0 + steps)->silent)
			_exit(1);
		looks_save(&looks);
	}
	_exit(0);
}

static void test_many_commands_at_once(void **state)
{
	const struct backend_seen one = {&web, member(1, 5), {1000000, 1000000}};
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct look look;
	pid_t pids[4];
	int status;

	assert_ptr_not_equal(shared, MAP_FAILED);
	look_at(&one, 1, PROGS_ID, T0, &look);
	look_at(&(struct backend_seen){&web, member(1, 5), {1000020, 1000001}}, 1, PROGS_ID, T0 + 1,
		&look);
	assert_false(look.silent);
	shared->steps = 1;
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		if (!pids[i])
			look_often(shared);
		assert_true(pids[i] > 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	munmap(shared, sizeof(*shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_look_has_the_sums),
		cmocka_unit_test(test_one_that_dies_after_long_service),
		cmocka_unit_test(test_older_connections_do_not_hide_it),
		cmocka_unit_test(test_openings_of_an_instant),
		cmocka_unit_test(test_counters_that_began_anew),
		cmocka_unit_test(test_without_new_flows),
		cmocka_unit_test_setup_teardown(test_looks_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_looks_at_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_damaged_file_is_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_strange_documents, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be_written, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_many_commands_at_once, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
