// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/watch_event.h: documents of `weir watch`, read again.
#include "ctl/cmd/watch_event.h"

#include <string.h>

#include "ctl/base/mem.h"
#include "tests/unit/base/unit.h"

#define HEAD \
	"{\"monotonic_us\":7,\"interface\":\"eth0\",\"verdict\":\"drop\",\"reason\":\"block-from\","

static struct json *parse(const char *text)
{
	return json_parse(text, strlen(text), NULL, 0);
}

static void check_text(const char *document, const char *head, const char *tail)
{
	CLEANUP_JSON struct json *j = parse(document);
	CLEANUP_TEXT struct text h = {0}, t = {0};
	struct watch_event e;

	assert_true(watch_event_read(j, &e));
	watch_event_text(&e, "<", ">", &h, &t);
	assert_string_equal(text_get(&h), head);
	assert_string_equal(text_get(&t), tail);
}

static void test_text(void **state)
{
	check_text(HEAD "\"packet\":\"arp\",\"length\":42}",
		   "eth0 <drop> block-from:", "arp, 42 bytes");
	check_text(HEAD "\"packet\":\"p\",\"length\":1,\"rule\":\"r\",\"entry\":\"10.0.0.0/8\"}",
		   "eth0 <drop> block-from \"r\" 10.0.0.0/8:", "p, 1 bytes");
	check_text(HEAD "\"packet\":\"p\",\"length\":1,\"entry\":\"10.0.0.1\"}",
		   "eth0 <drop> block-from:", "p, 1 bytes");
}

static void test_values(void **state)
{
	CLEANUP_JSON struct json *j =
		parse(HEAD "\"packet\":\"p\",\"length\":9,\"missed\":4,\"logged\":true,"
			   "\"from\":\"192.0.2.1\",\"to\":\"2001:db8::1\"}");
	struct watch_event e;
	addr_text text;

	assert_true(watch_event_read(j, &e));
	assert_int_equal(e.monotonic_us, 7);
	assert_int_equal(e.length, 9);
	assert_int_equal(e.missed, 4);
	assert_true(e.logged);
	assert_true(e.ip);
	assert_string_equal(addr_format(&e.from, text), "192.0.2.1");
	assert_string_equal(addr_format(&e.to, text), "2001:db8::1");
}

static void test_other_documents(void **state)
{
	static const char *const documents[] = {
		"{}",
		"[]",
		"{\"missed\":3}",
		"{\"error\":{\"text\":\"x\"}}",
		HEAD "\"packet\":5}",
		"{\"monotonic_us\":\"7\",\"interface\":\"e\",\"verdict\":\"d\",\"reason\":\"r\","
		"\"packet\":\"p\"}",
	};
	struct watch_event e = {.length = 77};

	for (size_t n = 0; n < ARRAY_SIZE(documents); n++) {
		CLEANUP_JSON struct json *j = parse(documents[n]);

		assert_false(watch_event_read(j, &e));
		assert_int_equal(e.length, 77);
	}
}

static void test_addresses_that_are_none(void **state)
{
	CLEANUP_JSON struct json *j = parse(HEAD "\"packet\":\"p\",\"from\":\"x\",\"to\":\"::\"}");
	struct watch_event e;

	assert_true(watch_event_read(j, &e));
	assert_false(e.ip);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_other_documents),
		cmocka_unit_test(test_addresses_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
