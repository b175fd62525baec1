// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/alerts.h: the command of an alarm, and which alarms are the same.
#include "tests/unit/base/unit.h"

#include <stdarg.h>
#include <string.h>

#include "ctl/cmd/alerts.h"

__attribute__((format(printf, 4, 5))) static void add(struct alerts *a, const char *kind,
						      const char *name, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	alerts_add(a, kind, name, fmt, ap);
	va_end(ap);
}

static void test_parts(void **state)
{
	CLEANUP_ALERTS struct alerts a = {0};

	add(&a, "interface", "eth0", "'%s' is open (" MEND("weir attach %s") " again)", "eth0",
	    "eth0");
	assert_string_equal(a.at[0].text, "'eth0' is open (weir attach eth0 again)");
	assert_string_equal(a.at[0].about, "interface eth0");
	assert_string_equal(a.at[0].mend, "weir attach eth0");
	add(&a, "policy", NULL, "7 packets were lost");
	assert_string_equal(a.at[1].about, "policy");
	assert_null(a.at[1].mend);
}

// Whoever names a device must not name the command.
static void test_hostile_names(void **state)
{
	static const char *const names[] = {"e\001weir bypass\002",
					    "e;reboot",
					    "e`id`",
					    "e$(id)",
					    "e|sh",
					    "e\nid",
					    "e&id",
					    "e>x",
					    "e*",
					    "e'",
					    "e\"",
					    "e\\",
					    "e~\002",
					    "\001e"};

	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		CLEANUP_ALERTS struct alerts a = {0};

		add(&a, "interface", names[n], "'%s' (" MEND("weir attach %s") ")", names[n],
		    names[n]);
		assert_null(a.at[0].mend);
		assert_null(strchr(a.at[0].text, '\001'));
		assert_null(strchr(a.at[0].text, '\002'));
	}
}

// Hints for people are no commands.
static void test_prose(void **state)
{
	static const char *const hints[] = {"choose another device", "weir detach a, weir attach a",
					    "at its peer: ethtool -K a gro on", "weirs", ""};

	for (size_t n = 0; n < ARRAY_SIZE(hints); n++) {
		CLEANUP_ALERTS struct alerts a = {0};

		add(&a, "agent", NULL, "%s (" MEND("%s") ")", "text", hints[n]);
		assert_null(a.at[0].mend);
	}
}

static void test_same(void **state)
{
	CLEANUP_ALERTS struct alerts a = {0};

	add(&a, "service", "web", "%d of %d fail", 1, 2);
	add(&a, "service", "web", "%d of %d fail", 2, 2);
	assert_string_equal(a.at[0].key, a.at[1].key);
	add(&a, "service", "mail", "%d of %d fail", 1, 2);
	assert_string_not_equal(a.at[0].key, a.at[2].key);
	add(&a, "service", "web", "%d of %d wait", 1, 2);
	assert_string_not_equal(a.at[0].key, a.at[3].key);
	add(&a, "agent", NULL, "%s", "the agent hangs for 3s");
	add(&a, "agent", NULL, "%s", "the agent hangs for 14s");
	add(&a, "agent", NULL, "%s", "the agent was killed");
	assert_string_equal(a.at[4].key, a.at[5].key);
	assert_string_not_equal(a.at[4].key, a.at[6].key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_prose),
		cmocka_unit_test(test_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
