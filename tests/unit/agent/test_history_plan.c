// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/agent/history_plan.h: times, gaps, minutes, and who has room.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <string.h>

#include "ctl/agent/history_plan.h"

#define WALL_MS 1790000000000ull

// A document of one second about one rule.
static void second(struct history *h, uint64_t now_ms, uint64_t span_ms, float rate)
{
	history_begin(h, now_ms, span_ms, WALL_MS);
	history_set(h, RATES_RULES, "ssh", (struct history_value){rate, rate * 100});
	history_end(h);
}

static struct json *written(const struct history *h, enum history_span span, const char *series)
{
	CLEANUP(json_writer_free) struct json_writer w = {0};
	struct json *j;

	json_write_object(&w, NULL);
	history_write(h, span, &series, series ? 1 : 0, &w);
	json_write_end(&w);
	assert_in_range(w.text.len, 1, 300000);
	j = json_parse(w.text.at, w.text.len, NULL, 0);
	assert_non_null(j);
	return j;
}

// The value `back` before the last one; -1: not measured.
static double value(const struct history *h, enum history_span span, const char *series,
		    size_t back)
{
	CLEANUP_JSON struct json *j = written(h, span, series), *holder = json_object();
	const struct json *values = json_get(json_at(json_get(j, "series"), 0), "packets_per_s");
	CLEANUP_TEXT struct text t = {0};
	const struct json *one = json_at(values, json_length(values) - 1 - back);
	CLEANUP_JSON struct json *copy = NULL;

	assert_int_equal(json_length(values), span == HISTORY_5M ? 300 : 1440);
	if (json_kind(one) == JSON_IS_NOTHING)
		return -1;
	text_add(&t, "{\"v\":");
	json_print(one, false, &t);
	text_add(&t, "}");
	copy = json_parse(t.at, t.len, NULL, 0);
	return json_get_real(copy, "v");
}

static void test_seconds(void **state)
{
	struct history *h = history_new();

	for (unsigned n = 0; n < 10; n++)
		second(h, 5000 + n * 1000 + (n % 2) * 90, 1000, (float)n);
	for (size_t back = 0; back < 10; back++)
		assert_true(value(h, HISTORY_5M, "rules/ssh", back) == (double)(9 - back));
	assert_true(value(h, HISTORY_5M, "rules/ssh", 10) < 0);
	assert_false(history_has(h, "rules/web"));
	history_free(h);
}

// A reader that was stopped for three seconds measured them; an agent that did not run has not.
static void test_gaps(void **state)
{
	struct history *h = history_new();

	second(h, 5000, 1000, 1);
	second(h, 9000, 4000, 2);
	second(h, 12000, 1000, 3);
	assert_true(value(h, HISTORY_5M, "rules/ssh", 0) == 3);
	assert_true(value(h, HISTORY_5M, "rules/ssh", 1) < 0);
	assert_true(value(h, HISTORY_5M, "rules/ssh", 2) < 0);
	for (size_t back = 3; back < 7; back++)
		assert_true(value(h, HISTORY_5M, "rules/ssh", back) == 2);
	assert_true(value(h, HISTORY_5M, "rules/ssh", 7) == 1);
	second(h, 9000000, 1000, 4); // much later
	assert_true(value(h, HISTORY_5M, "rules/ssh", 1) < 0);
	second(h, 8000000, 1000, 5); // never by a monotonic clock
	assert_true(value(h, HISTORY_5M, "rules/ssh", 0) == 5);
	history_free(h);
}

// One document a second, received at about half a second: each second has its own value.
static void test_uneven(void **state)
{
	static const int late_ms[] = {-1, 1, -1, 1, 1, -1, -200, 200, -200, 0};
	struct history *h = history_new();
	size_t n = ARRAY_SIZE(late_ms);

	for (size_t i = 0; i < n; i++)
		second(h, (uint64_t)((int)(5500 + i * 1000) + late_ms[i]), 1000, (float)(i + 1));
	for (size_t i = 0; i < n; i++)
		assert_true(value(h, HISTORY_5M, "rules/ssh", n - 1 - i) == (double)(i + 1));
	assert_true(value(h, HISTORY_5M, "rules/ssh", n) < 0);
	history_free(h);
}

// Spans that are not whole seconds, as after a reading that was tried again: no second is left out,
// and the numbers follow the clock.
static void test_drift(void **state)
{
	struct history *h = history_new();

	for (uint64_t i = 0; i < 100; i++)
		second(h, 5000 + i * 1400, 1400, 7);
	for (size_t back = 0; back < 138; back++)
		assert_true(value(h, HISTORY_5M, "rules/ssh", back) == 7);
	assert_true(value(h, HISTORY_5M, "rules/ssh", 142) < 0);
	history_free(h);
}

// A minute is the mean of its measured seconds, and a quiet series has zeros.
static void test_minutes(void **state)
{
	struct history *h = history_new();
	uint64_t now_ms = 120000;

	for (unsigned n = 0; n < 60; n++)
		second(h, now_ms += 1000, 1000, n < 30 ? 10 : 20);
	for (unsigned n = 0; n < 120; n++) {
		history_begin(h, now_ms += 1000, 1000, WALL_MS);
		history_set(h, RATES_RULES, "web", (struct history_value){1, 1});
		history_end(h);
	}
	assert_true(value(h, HISTORY_24H, "rules/ssh", 1) == 0);
	assert_true(value(h, HISTORY_24H, "rules/ssh", 3) > 14);
	assert_true(value(h, HISTORY_24H, "rules/ssh", 3) < 16);
	assert_true(value(h, HISTORY_24H, "rules/web", 0) == 1);
	assert_true(value(h, HISTORY_24H, "rules/ssh", 5) < 0);
	history_free(h);
}

static void set_many(struct history *h, unsigned first, unsigned n, float rate)
{
	char name[32];

	for (unsigned i = first; i < first + n; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		history_set(h, RATES_RULES, name, (struct history_value){rate, rate});
	}
}

// A thousand series have room; others of the part are summed, and busier ones take the room of the
// idlest one after another. Nothing is lost.
static void test_room(void **state)
{
	struct history *h = history_new();

	history_begin(h, 5000, 1000, WALL_MS);
	set_many(h, 0, 1005, 2);
	history_end(h);
	assert_int_equal(history_count(h), HISTORY_SERIES);
	assert_true(history_has(h, "rules/r999") && !history_has(h, "rules/r1000"));
	assert_true(value(h, HISTORY_5M, "other/rules", 0) == 10);
	history_begin(h, 6000, 1000, WALL_MS);
	set_many(h, 2000, 20, 500);
	history_end(h);
	assert_int_equal(history_count(h), HISTORY_SERIES);
	assert_true(history_has(h, "rules/r2009") && !history_has(h, "rules/r2010"));
	assert_true(value(h, HISTORY_5M, "other/rules", 0) == 10 * 500);
	assert_true(value(h, HISTORY_5M, "other/rules", 1) == 10 + 10 * 2);
	history_free(h);
}

static size_t count_values(const struct json *series)
{
	const struct json *values = json_get(series, "packets_per_s");
	size_t n = 0;

	for (size_t at = 0; at < json_length(values); at++)
		n += json_kind(json_at(values, at)) != JSON_IS_NOTHING;
	return n;
}

static void set_totals(struct history *h, float rate)
{
	static const char *const names[] = {"passed", "sent", "dropped"};

	for (size_t n = 0; n < ARRAY_SIZE(names); n++)
		history_set(h, RATES_TOTALS, names[n], (struct history_value){rate, rate});
}

// Rules with the longest names.
static void set_long(struct history *h, float rate)
{
	char name[RATES_LABEL_MAX + 1];

	for (unsigned n = 0; n < HISTORY_BUSIEST; n++) {
		snprintf(name, sizeof(name), "%-*u", RATES_LABEL_MAX, n);
		history_set(h, RATES_RULES, name, (struct history_value){rate, rate});
	}
}

// The answer without names is bounded (see written), also for a whole day with the longest numbers
// and names.
static void test_busiest(void **state)
{
	struct history *h = history_new();

	for (unsigned n = 1; n <= 400; n++) {
		history_begin(h, n * 216000ull, 216000, WALL_MS);
		set_totals(h, 1.234e-5f);
		set_long(h, 1.2346e6f);
		set_many(h, 0, 200, 1.2345e6f);
		set_many(h, 500, 1, 9e6f);
		history_end(h);
	}
	for (enum history_span span = HISTORY_5M; span <= HISTORY_24H; span++) {
		CLEANUP_JSON struct json *j = written(h, span, NULL);
		const struct json *series = json_get(j, "series");

		assert_int_equal(json_length(series), HISTORY_BUSIEST + 3);
		assert_string_equal(json_get_string(json_at(series, 0), "series"),
				    "totals/dropped");
		assert_string_equal(json_get_string(json_at(series, 3), "series"), "rules/r500");
		assert_int_equal(count_values(json_at(series, 0)), span == HISTORY_5M ? 300 : 288);
		assert_int_equal(json_get_u64(j, "interval_s"), span == HISTORY_5M ? 1 : 300);
	}
	history_free(h);
}

// A day without a packet, and the series is forgotten.
static void test_idle(void **state)
{
	struct history *h = history_new();

	second(h, 5000, 1000, 7);
	assert_int_equal(history_count(h), 1);
	for (unsigned n = 1; n <= 1500; n++) {
		history_begin(h, 5000 + n * 60000ull, 60000, WALL_MS);
		history_end(h);
	}
	assert_int_equal(history_count(h), 0);
	assert_false(history_has(h, "rules/ssh"));
	history_free(h);
}

static void test_document(void **state)
{
	static const char text[] =
		"{\"span_us\":1000000,\"totals\":[{\"total\":\"passed\",\"packets_per_s\":3}],"
		"\"interfaces\":[{\"interface\":\"eth0\",\"reason\":\"allow\",\"packets_per_s\":2.5}],"
		"\"rules\":7,\"lists\":[{\"packets_per_s\":1}],"
		"\"others\":{\"rules\":{\"packets_per_s\":40,\"bytes_per_s\":1}}}";
	CLEANUP_JSON struct json *j = json_parse(text, strlen(text), NULL, 0), *end = json_object();
	struct history *h = history_new();

	assert_false(history_take(h, end, 5000, WALL_MS));
	assert_true(history_take(h, j, 5000, WALL_MS));
	assert_true(value(h, HISTORY_5M, "totals/passed", 0) == 3);
	assert_true(value(h, HISTORY_5M, "interfaces/eth0/allow", 0) == 2.5);
	assert_true(value(h, HISTORY_5M, "other/rules", 0) == 40);
	assert_true(value(h, HISTORY_5M, "lists///", 0) == 1);
	history_free(h);
}

// Lines in parts of any size; of one that is too long, the rest is no line.
static void test_lines(void **state)
{
	static const char text[] = "one\n"
				   "\n"
				   "0123456789abcdefghij0123456789\n"
				   "three\n"
				   "end";

	for (size_t size = 1; size < sizeof(text); size++) {
		CLEANUP_TEXT struct text found = {0};
		struct history_lines l = {0};

		for (size_t at = 0; at < sizeof(text) - 1; at += size) {
			size_t left = sizeof(text) - 1 - at, len = size < left ? size : left;
			const char *part = text + at;

			while (len) {
				enum history_line got = history_lines_take(&l, 10, &part, &len);

				if (got == HISTORY_LINE_WHOLE)
					text_addn(&found, l.line.at, l.line.len);
				if (got == HISTORY_LINE_LONG)
					text_add(&found, "long\n");
			}
		}
		assert_string_equal(text_get(&found), "one\n\nlong\nthree\n");
		text_free(&l.line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seconds),  cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_minutes),  cmocka_unit_test(test_room),
		cmocka_unit_test(test_busiest),  cmocka_unit_test(test_idle),
		cmocka_unit_test(test_document), cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_drift),    cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
