// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/alerts.h: the command of an alarm, and which alarms are the same.
#include "tests/unit/base/unit.h"

#include <stdarg.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/cmd/alerts.h"

__attribute__((format(printf, 4, 5))) static void add(struct alerts *a, const char *kind,
						      const char *name, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	alerts_add(a, kind, name, NULL, fmt, ap);
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

// Only a format makes a command: a sentence has none, also with the marks.
static void test_marks_in_a_sentence(void **state)
{
	CLEANUP_ALERTS struct alerts a = {0};

	add(&a, "policy", NULL, "%s", "text (" MEND("weir bypass") ")");
	assert_null(a.at[0].mend);
	assert_string_equal(a.at[0].text, "text (weir bypass)");
}

// A name is one argument of the command, and no option.
static void test_names_that_are_words(void **state)
{
	static const char *const names[] = {"-v", "--all", "a b", "", " e", "e "};

	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		CLEANUP_ALERTS struct alerts a = {0};
		const char *name = names[n];

		add(&a, "interface", name, "'%s' (" MEND("weir attach %s") ")", name, name);
		add(&a, "interface", name, "(" MEND("weir %s %s --mode native") ")", "attach",
		    name);
		assert_null(a.at[0].mend);
		assert_null(a.at[1].mend);
	}
	for (size_t n = 0; n < 3; n++) {
		CLEANUP_FREE char *made = mem_printf("weir attach %s", names[n]);
		CLEANUP_ALERTS struct alerts a = {0};

		add(&a, "interface", names[n], "%s (" MEND("%s") ")", "text", made);
		add(&a, "list", names[n], "%s (" MEND("%s") ")", "text", "weir run");
		assert_null(a.at[0].mend);
		assert_string_equal(a.at[1].mend, "weir run");
	}
}

static void test_words(void **state)
{
	CLEANUP_ALERTS struct alerts a = {0};

	add(&a, "service", "web", "(" MEND("weir service --refresh") " shows the reason)");
	assert_string_equal(a.at[0].mend, "weir service --refresh");
	add(&a, "rule", "7", "(" MEND("weir rule delete %llu") ")", 7ull);
	assert_string_equal(a.at[1].mend, "weir rule delete 7");
	add(&a, "service", "web", "(" MEND("weir %s %s") " again)", "attach", "eth0");
	assert_string_equal(a.at[2].mend, "weir attach eth0");
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
	add(&a, "agent", NULL, "%s", "the agent has ended 59s ago");
	add(&a, "agent", NULL, "%s", "the agent has ended 1m 1s ago");
	add(&a, "agent", NULL, "%s", "the agent was killed");
	assert_string_equal(a.at[4].key, a.at[5].key);
	assert_string_not_equal(a.at[4].key, a.at[6].key);
	add(&a, "policy", NULL, "%d %s passed", 1, "packet");
	add(&a, "policy", NULL, "%d %s passed", 2, "packets");
	assert_string_equal(a.at[7].key, a.at[8].key);
}

static void add_same(struct alerts *a, const char *same, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	alerts_add(a, "agent", NULL, same, fmt, ap);
	va_end(ap);
}

// Names differ by their digits. A problem that the caller names is the same with any text.
static void test_others(void **state)
{
	CLEANUP_ALERTS struct alerts a = {0};

	add(&a, "services", NULL, "%s", "service 'web': no route to 10.0.0.11");
	add(&a, "services", NULL, "%s", "service 'web': no route to 10.0.0.12");
	assert_string_not_equal(a.at[0].key, a.at[1].key);
	add(&a, "backend", "web/10.0.0.11", "%d lost", 3);
	add(&a, "backend", "web/10.0.0.12", "%d lost", 3);
	assert_string_not_equal(a.at[2].key, a.at[3].key);
	add_same(&a, "ended", "%s", "missed for: feeds");
	add_same(&a, "ended", "%s", "missed for: feeds, host names");
	add_same(&a, "hangs", "%s", "missed for: feeds");
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
		cmocka_unit_test(test_names_that_are_words),
		cmocka_unit_test(test_marks_in_a_sentence),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
