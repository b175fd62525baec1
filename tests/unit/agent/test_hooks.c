// SPDX-License-Identifier: GPL-2.0-only
// Which alarms are the same one: counts and times change while it lasts, addresses do not.
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/hook_alarms.h"
#include "tests/unit/base/unit.h"

static void keys(void **state)
{
	static const struct {
		const char *alarm, *key;
	} cases[] = {
		{"1,204 packets passed because no program was active",
		 "packets passed because no program was active"},
		{"'near0' is BYPASSED for 1m 3s more: every packet passes",
		 "'near0' is BYPASSED for more: every packet passes"},
		{"'near0' is BYPASSED for 59s more: every packet passes",
		 "'near0' is BYPASSED for more: every packet passes"},
		{"its answer is 3h old, the TTL is 5m", "its answer is old, the TTL is"},
		{"service 'web': 10.1.0.11 fails its checks for 250ms: refused",
		 "service 'web': 10.1.0.11 fails its checks for refused"},
		{"service 'web': 2001:db8::1 fails", "service 'web': 2001:db8::1 fails"},
		{"set 3com is full", "set 3com is full"},
		{"", ""},
	};

	for (size_t n = 0; n < sizeof(cases) / sizeof(*cases); n++) {
		char *key = hook_alarm_key(cases[n].alarm);

		assert_string_equal(key, cases[n].key);
		free(key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(keys)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
