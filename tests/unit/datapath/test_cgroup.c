// SPDX-License-Identifier: GPL-2.0-only
// The mount of cgroup 2 in texts of mountinfo: layouts of distributions, containers, damage.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/cgroup.h"

#define OTHERS                                                                       \
	"22 1 0:21 / /proc rw,relatime - proc proc rw\n"                             \
	"30 22 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755\n" \
	"31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime shared:10 - cgroup cgroup rw,cpu\n"

static void assert_mount(const char *text, const char *path)
{
	CLEANUP_FREE char *found = cgroup_mount(text);

	if (path)
		assert_string_equal(found, path);
	else
		assert_null(found);
}

static void test_layouts(void **state)
{
	assert_mount("30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n",
		     "/sys/fs/cgroup");
	assert_mount(OTHERS "40 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		     "/sys/fs/cgroup/unified");
	assert_mount("40 30 0:28 / /mnt/a\\040b\\134 rw shared:1 master:2 - cgroup2 none rw",
		     "/mnt/a b\\");
}

static void test_parts(void **state)
{
	assert_mount("40 30 0:28 /../.. /part rw - cgroup2 none rw\n", "/part");
	assert_mount("40 30 0:28 /docker/1 /part rw - cgroup2 none rw\n"
		     "41 30 0:28 /docker/2 /later rw - cgroup2 none rw\n"
		     "42 30 0:28 / /whole rw - cgroup2 none rw\n",
		     "/whole");
}

static void test_none(void **state)
{
	assert_mount("", NULL);
	assert_mount("\n\n", NULL);
	assert_mount(OTHERS, NULL);
	assert_mount("40 30 0:28 / /cgroup2 rw - tmpfs cgroup2 rw\n", NULL);
	assert_mount("40 30 0:28 / /cut rw -", NULL);
	assert_mount("40 30 0:28 / /cut rw", NULL);
	assert_mount("40 30 0:28 / \n- cgroup2", NULL);
}

// Backslashes at the end of the field, and numbers that are no escape.
static void test_escapes(void **state)
{
	assert_mount("1 1 1 / /a\\04 rw - cgroup2 x x", "/a\\04");
	assert_mount("1 1 1 / /a\\ rw - cgroup2 x x", "/a\\");
	assert_mount("1 1 1 / /a\\400 rw - cgroup2 x x", "/a\\400");
}

// This machine: found and opened, or the message names what is missing.
static void test_this_machine(void **state)
{
	struct err err = {0};
	uint64_t id = 0;
	int fd = -1;
	int code = cgroup_open_root(&fd, &id, &err);

	if (code) {
		assert_non_null(strstr(err.text, "cgroup"));
		return;
	}
	assert_int_not_equal(id, 0);
	assert_int_equal(close(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),      cmocka_unit_test(test_parts),
		cmocka_unit_test(test_none),         cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
