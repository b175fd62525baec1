// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/top_model.h: rates of three windows, and the order of rows.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <string.h>

#include "ctl/base/text.h"
#include "ctl/cmd/top_model.h"

#define S 1000000000ull

struct world {
	struct rates_list lists[RATES_PARTS];
	struct top_model m;
	struct top_choice choice;
};

static void world_free(struct world *w)
{
	for (enum rates_part part = 0; part < RATES_PARTS; part++)
		rates_free(&w->lists[part]);
	top_model_free(&w->m);
}
#define CLEANUP_WORLD CLEANUP(world_free)

// The time of a reading of one part.
static void at(struct world *w, enum rates_part part, uint64_t now_ns)
{
	rates_at(&w->lists[part], now_ns);
}

static void count(struct rates_row *row, uint64_t packets, uint64_t bytes)
{
	row->known = true;
	row->now.packets += packets;
	row->now.bytes += bytes;
	row->moved = (struct counter){packets, bytes};
}

static void assert_near(double rate, double want)
{
	assert_true(rate > want - 0.01 && rate < want + 0.01);
}

static const struct top_row *find(const struct top_rows *rows, const char *first)
{
	vec_each (rows, row)
		if (!strcmp(row->series->labels[0], first))
			return row;
	return NULL;
}

static void test_windows(void **state)
{
	CLEANUP_WORLD struct world w = {0};
	CLEANUP_TOP_ROWS struct top_rows rows = {0};
	struct rates_row *row = rates_add(&w.lists[RATES_RULES], "ssh", "a:1", "pass", 1);
	double history[4];

	at(&w, RATES_RULES, S);
	top_model_add(&w.m, w.lists); // the first reading has no rate
	assert_false(top_knows(&w.m, TOP_RULES, TOP_60S));
	assert_int_equal(top_history_ns(&w.m, TOP_RULES, 4), 0);
	for (unsigned n = 0; n < 70; n++) { // 10 a second, 40 in the last 5
		at(&w, RATES_RULES, (n + 2) * S);
		count(row, n < 65 ? 10 : 40, n < 65 ? 1000 : 4000);
		top_model_add(&w.m, w.lists);
		top_model_add(&w.m, w.lists); // the same reading again
	}
	top_rows_of(&w.m, TOP_RULES, &w.choice, &rows);
	assert_int_equal(rows.n, 1);
	assert_true(rows.at[0].rates[TOP_1S] == 40.0);
	assert_true(rows.at[0].rates[TOP_10S] == 25.0);
	assert_near(rows.at[0].rates[TOP_60S], (54 * 10 + 5 * 40) / 59.0);
	top_history(&w.m, TOP_RULES, rows.at[0].series, false, history, 4);
	assert_true(history[0] == 40.0 && history[3] == 40.0);
	assert_int_equal(top_history_ns(&w.m, TOP_RULES, 4), 4 * S);
	top_rows_free(&rows);
	w.choice.bits = true;
	top_rows_of(&w.m, TOP_RULES, &w.choice, &rows);
	assert_true(rows.at[0].rates[TOP_1S] == 32000.0);
}

// Since the start, if that is less than the window.
static void test_start(void **state)
{
	CLEANUP_WORLD struct world w = {0};
	CLEANUP_TOP_ROWS struct top_rows rows = {0};
	struct rates_row *row = rates_add(&w.lists[RATES_RULES], "ssh", "a:1", "pass", 1);
	double history[3];

	at(&w, RATES_RULES, S);
	at(&w, RATES_RULES, 3 * S); // 2 s
	count(row, 10, 1000);
	top_model_add(&w.m, w.lists);
	top_rows_of(&w.m, TOP_RULES, &w.choice, &rows);
	assert_true(rows.at[0].rates[TOP_60S] == 5.0);
	assert_false(top_knows(&w.m, TOP_RULES, TOP_1S)); // measured for longer
	assert_true(top_knows(&w.m, TOP_RULES, TOP_10S));
	top_history(&w.m, TOP_RULES, rows.at[0].series, false, history, 3);
	assert_true(history[0] == 0.0 && history[1] == 0.0 && history[2] == 5.0);
}

// Short readings share a slot: the rate has the time of a second.
static void test_short_readings(void **state)
{
	CLEANUP_WORLD struct world w = {0};
	CLEANUP_TOP_ROWS struct top_rows rows = {0};
	struct rates_row *row = rates_add(&w.lists[RATES_RULES], "ssh", "a:1", "pass", 1);

	for (unsigned n = 0; n <= 605; n++) {
		at(&w, RATES_RULES, (n + 10) * S / 10);
		count(row, n == 605 ? 100 : 1, 60);
		top_model_add(&w.m, w.lists);
	}
	top_rows_of(&w.m, TOP_RULES, &w.choice, &rows);
	assert_true(top_knows(&w.m, TOP_RULES, TOP_1S));
	assert_near(rows.at[0].rates[TOP_1S], 114 / 1.5);
	assert_true(rows.at[0].rates[TOP_60S] > 10 && rows.at[0].rates[TOP_60S] < 13);
	assert_int_equal(w.m.tables[TOP_RULES].n, TOP_SLOTS);
}

// Interfaces become reasons and interfaces; a row that counts nothing for a minute is removed.
static void test_sums_and_ends(void **state)
{
	CLEANUP_WORLD struct world w = {0};
	CLEANUP_TOP_ROWS struct top_rows reasons = {0}, interfaces = {0}, none = {0};
	struct rates_list *l = &w.lists[RATES_INTERFACES];

	rates_add(l, "eth0", "default", "pass", 1);
	rates_add(l, "eth0", "block-from", "drop", 1);
	rates_add(l, "eth1", "default", "pass", 2);
	rates_add(l, "eth1", "malformed", "drop", 2);
	rates_at(l, S);
	rates_at(l, 2 * S);
	count(&l->at[0], 5, 500);
	count(&l->at[1], 1, 100);
	count(&l->at[2], 7, 700);
	top_model_add(&w.m, w.lists);
	w.choice.sort = TOP_BY_1S;
	top_rows_of(&w.m, TOP_REASONS, &w.choice, &reasons);
	assert_int_equal(reasons.n, 2);
	assert_string_equal(reasons.at[0].series->labels[0], "default");
	assert_string_equal(reasons.at[0].series->labels[1], "pass");
	assert_true(reasons.at[0].rates[TOP_1S] == 12.0);
	top_rows_of(&w.m, TOP_INTERFACES, &w.choice, &interfaces);
	assert_int_equal(interfaces.n, 3);
	assert_true(find(&interfaces, "eth1")->rates[TOP_10S] == 7.0);
	for (size_t n = 0; n < l->n; n++)
		l->at[n].moved = (struct counter){0};
	for (unsigned n = 0; n < TOP_SLOTS; n++) {
		rates_at(l, (n + 3) * S);
		top_model_add(&w.m, w.lists);
	}
	top_rows_of(&w.m, TOP_REASONS, &w.choice, &none);
	assert_int_equal(none.n, 0);
	assert_int_equal(w.m.tables[TOP_REASONS].series.n, 0);
}

// With `all`, rows without a count are shown while they exist.
static void test_all(void **state)
{
	CLEANUP_WORLD struct world w = {.m.all = true};
	CLEANUP_TOP_ROWS struct top_rows rows = {0}, none = {0};

	rates_add(&w.lists[RATES_RULES], "idle", "a:1", "drop", 1);
	at(&w, RATES_RULES, S);
	at(&w, RATES_RULES, 2 * S);
	top_model_add(&w.m, w.lists);
	top_rows_of(&w.m, TOP_RULES, &w.choice, &rows);
	assert_int_equal(rows.n, 1);
	rates_free(&w.lists[RATES_RULES]);
	at(&w, RATES_RULES, 2 * S);
	at(&w, RATES_RULES, 3 * S);
	top_model_add(&w.m, w.lists);
	top_rows_of(&w.m, TOP_RULES, &w.choice, &none);
	assert_int_equal(none.n, 0);
}

static void add_rules(struct world *w)
{
	static const struct {
		const char *name;
		uint64_t id, packets;
	} rules[] = {{"web", 1, 30}, {"ssh", 2, 10}, {"Mail", 3, 20}, {"ssh", 4, 5}};

	for (size_t n = 0; n < ARRAY_SIZE(rules); n++)
		rates_add(&w->lists[RATES_RULES], rules[n].name, "a:1", "pass", rules[n].id);
	at(w, RATES_RULES, S);
	at(w, RATES_RULES, 2 * S);
	for (size_t n = 0; n < ARRAY_SIZE(rules); n++)
		count(&w->lists[RATES_RULES].at[n], rules[n].packets, 60);
	top_model_add(&w->m, w->lists);
}

static void assert_order(struct world *w, const char *want)
{
	CLEANUP_TOP_ROWS struct top_rows rows = {0};
	CLEANUP_TEXT struct text names = {0};

	top_rows_of(&w->m, TOP_RULES, &w->choice, &rows);
	vec_each (&rows, row)
		text_addf(&names, "%s%u ", row->series->labels[0], (unsigned)row->series->id);
	assert_string_equal(text_get(&names), want);
}

static void test_order_and_filter(void **state)
{
	CLEANUP_WORLD struct world w = {.choice.sort = TOP_BY_10S};

	add_rules(&w);
	assert_order(&w, "web1 Mail3 ssh2 ssh4 ");
	w.choice.reverse = true;
	assert_order(&w, "ssh4 ssh2 Mail3 web1 ");
	w.choice = (struct top_choice){.sort = TOP_BY_NAME};
	assert_order(&w, "Mail3 ssh2 ssh4 web1 ");
	w.choice = (struct top_choice){.sort = TOP_BY_1S, .bits = true}; // all equal: by name
	assert_order(&w, "Mail3 ssh2 ssh4 web1 ");
	snprintf(w.choice.filter, sizeof(w.choice.filter), "%s", "SSH");
	assert_order(&w, "ssh2 ssh4 ");
	snprintf(w.choice.filter, sizeof(w.choice.filter), "%s", "none");
	assert_order(&w, "");
}

// Origins and their lists; entries are read more seldom, with a slot for each reading.
static void test_rare(void **state)
{
	CLEANUP_WORLD struct world w = {0};
	CLEANUP_TOP_ROWS struct top_rows rows = {0};

	for (unsigned n = 0; n < 3; n++) {
		rates_free(&w.lists[RATES_LISTS]);
		w.lists[RATES_LISTS] = (struct rates_list){0};
		count(rates_add(&w.lists[RATES_LISTS], "feed", "me", "block", 0), 100, 6000);
		if (!n)
			rates_add(&w.lists[RATES_ORIGINS], "me", "block", NULL, 0);
		count(&w.lists[RATES_ORIGINS].at[0], 150, 9000);
		at(&w, RATES_ORIGINS, (n + 1) * 10 * S);
		for (unsigned m = 0; m < 10; m++)
			top_model_add(&w.m, w.lists);
	}
	assert_int_equal(w.m.tables[TOP_OWNERS].n, 2);
	assert_false(top_knows(&w.m, TOP_OWNERS, TOP_1S));
	assert_true(top_knows(&w.m, TOP_OWNERS, TOP_10S));
	top_rows_of(&w.m, TOP_OWNERS, &w.choice, &rows);
	assert_int_equal(rows.n, 2);
	assert_string_equal(rows.at[0].series->labels[1], "");
	assert_true(rows.at[0].rates[TOP_10S] == 15.0);
	assert_string_equal(rows.at[1].series->labels[1], "feed");
	assert_string_equal(rows.at[1].series->labels[2], "block");
	assert_true(rows.at[1].rates[TOP_60S] == 10.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_short_readings),
		cmocka_unit_test(test_sums_and_ends),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_order_and_filter),
		cmocka_unit_test(test_rare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
