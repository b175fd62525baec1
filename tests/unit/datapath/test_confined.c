// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/datapath/confined.c: missing capabilities of a process, and their messages.
#include "ctl/datapath/confined.h"

#include <errno.h>

#include "tests/unit/base/unit.h"

static void test_lacks(void **state)
{
	const uint64_t bpf = CONFINED_BIT(CAP_BPF), net = CONFINED_BIT(CAP_NET_ADMIN);
	const uint64_t perfmon = CONFINED_BIT(CAP_PERFMON), admin = CONFINED_BIT(CAP_SYS_ADMIN);

	assert_int_equal(confined_lacks(0, CONFINED_LOAD), bpf | net | perfmon);
	assert_int_equal(confined_lacks(bpf | perfmon, CONFINED_LOAD), net);
	assert_int_equal(confined_lacks(bpf | net | perfmon, CONFINED_LOAD), 0);
	assert_int_equal(confined_lacks(bpf | net | perfmon, CONFINED_ATTACH), admin);
	assert_int_equal(confined_lacks(admin, CONFINED_ATTACH), 0); // it includes the others
	assert_int_equal(confined_lacks(~(admin | perfmon), CONFINED_ATTACH), admin | perfmon);
}

// Only a denial is explained by privileges.
static void test_other_errors_keep_their_hint(void **state)
{
	struct err err = {0};

	err_system(&err, EBUSY, "cannot attach");
	err_hint(&err, "driver 'x'");
	confined_explain(&err, CONFINED_ATTACH);
	assert_string_equal(err.hint, "driver 'x'");
	confined_explain(NULL, CONFINED_ATTACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lacks),
		cmocka_unit_test(test_other_errors_keep_their_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
