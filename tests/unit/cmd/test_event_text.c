// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/event_text.h: entries of the journal.
#include "ctl/cmd/event_text.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/json.h"
#include "tests/unit/base/unit.h"

#define PACKET                                                                                   \
	"{\"schema\":1,\"time\":\"T\",\"monotonic_us\":7,\"interface\":\"eth0\",\"verdict\":"    \
	"\"drop\",\"reason\":\"rule-drop\",\"packet\":\"udp a > b\",\"length\":50,\"missed\":0," \
	"\"logged\":true,\"rule\":\"x\",\"vlans\":[5,6],\"flags\":[\"syn\",\"ack\"]}\n"

static char *fields_of(const char *line)
{
	struct text fields = {0};

	event_fields(line, strlen(line), &fields);
	return text_take(&fields);
}

static void test_packet(void **state)
{
	CLEANUP_FREE char *fields = fields_of(PACKET);

	assert_string_equal(fields, "MESSAGE=eth0 drop rule-drop \"x\": udp a > b, 50 bytes\n"
				    "PRIORITY=6\n"
				    "SYSLOG_IDENTIFIER=weir\n"
				    "WEIR_TIME=T\n"
				    "WEIR_MONOTONIC_US=7\n"
				    "WEIR_INTERFACE=eth0\n"
				    "WEIR_VERDICT=drop\n"
				    "WEIR_REASON=rule-drop\n"
				    "WEIR_PACKET=udp a > b\n"
				    "WEIR_LENGTH=50\n"
				    "WEIR_MISSED=0\n"
				    "WEIR_LOGGED=true\n"
				    "WEIR_RULE=x\n"
				    "WEIR_VLANS=5\n"
				    "WEIR_VLANS=6\n"
				    "WEIR_FLAGS=syn\n"
				    "WEIR_FLAGS=ack\n");
}

static void test_changes(void **state)
{
	CLEANUP_FREE char *done =
		fields_of("{\"at_ms\":5,\"verb\":\"block\",\"by\":\"root\",\"command\":\"block x\","
			  "\"result\":\"done\",\"added\":2}");
	CLEANUP_FREE char *refused =
		fields_of("{\"at_ms\":5,\"verb\":\"apply\",\"by\":\"root\",\"command\":\"apply f\","
			  "\"result\":\"refused\",\"text\":\"a trial is running\"}");

	assert_non_null(strstr(done, "MESSAGE=root: block x: done, 2 added\nPRIORITY=5\n"));
	assert_non_null(strstr(refused,
			       "MESSAGE=root: apply f: refused: a trial is running\nPRIORITY=4\n"));
}

// A value with several lines has its length before it; the message is one line.
static void test_several_lines(void **state)
{
	static const char line[] =
		"{\"at_ms\":5,\"verb\":\"block\",\"command\":\"a\\nPRIORITY=0\"}";
	static const char value[] = "a\nPRIORITY=0";
	struct text fields = {0};
	uint64_t len_le = htole64(strlen(value));
	struct text expected = {0};

	event_fields(line, strlen(line), &fields);
	text_add(&expected, "WEIR_COMMAND\n");
	text_addn(&expected, (const char *)&len_le, sizeof(len_le));
	text_addf(&expected, "%s\n", value);
	assert_non_null(memmem(fields.at, fields.len, expected.at, expected.len));
	assert_memory_equal(fields.at, "MESSAGE=: a?PRIORITY=0: ", 24);
	text_free(&fields);
	text_free(&expected);
}

static void test_names(void **state)
{
	CLEANUP_FREE char *fields = fields_of("{\"a b=c\\nd\":1,\"none\":null,\"o\":{\"x\":1},"
					      "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
					      "xxxxxxxxxxxxxxxxxxxxxxxxxx\":2}");
	char longest[65];

	assert_non_null(strstr(fields, "\nWEIR_A_B_C_D=1\n"));
	assert_null(strstr(fields, "NONE"));
	memset(longest, 'X', sizeof(longest) - 1);
	memcpy(longest, "WEIR_", 5);
	longest[64] = '\0';
	assert_non_null(strstr(fields, longest));
}

static void test_missed(void **state)
{
	struct text line = {0};
	CLEANUP_JSON struct json *document = NULL;
	CLEANUP_FREE char *fields = NULL;

	event_missed_line(3, "no \"room\"", &line);
	assert_int_equal(line.at[line.len - 1], '\n');
	document = json_parse(line.at, line.len, NULL, 0);
	assert_int_equal(json_get_u64(document, "missed"), 3);
	assert_string_equal(json_get_string(document, "why"), "no \"room\"");
	fields = fields_of(line.at);
	assert_non_null(
		strstr(fields, "MESSAGE=3 events were left out: no \"room\"\nPRIORITY=4\n"));
	text_free(&line);
}

// Texts that are no document of an event.
static void test_other_texts(void **state)
{
	static const char *const lines[] = {"", "\n", "[1]\n", "null\n", "{\"x\"\n", "\xff\xfe\n"};

	for (size_t n = 0; n < ARRAY_SIZE(lines); n++) {
		CLEANUP_FREE char *fields = fields_of(lines[n]);

		assert_non_null(strstr(fields, "PRIORITY=4\nSYSLOG_IDENTIFIER=weir\n"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packet),        cmocka_unit_test(test_changes),
		cmocka_unit_test(test_several_lines), cmocka_unit_test(test_names),
		cmocka_unit_test(test_missed),        cmocka_unit_test(test_other_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
