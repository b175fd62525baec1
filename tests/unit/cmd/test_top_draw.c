// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/cmd/top_draw.h: each view in screens of any size, with names from outside.
#include "tests/unit/base/unit.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/cells.h"
#include "ctl/cmd/top_draw.h"

#define S         1000000000ull
#define ROWS_MOST 80
#define HOSTILE   "a\x1b[2J\x07\x9b\u202e\u2066\u2028 \u9632\u706b\u5899e\u0301\U0001f525"

struct grid {
	struct screen_area area;
	struct text lines[ROWS_MOST]; // the pieces of each row, one after the other
	size_t ends[ROWS_MOST];       // cells that are drawn
};

static void grid_free(struct grid *g)
{
	for (size_t n = 0; n < ROWS_MOST; n++)
		text_free(&g->lines[n]);
}

// No piece begins or ends outside, or has a character that the terminal obeys.
static void put(void *ctx, size_t row, size_t column, enum screen_style style, const char *text)
{
	struct grid *g = ctx;
	size_t end = column + cells_width(text, g->area.utf8), len = strlen(text);

	assert_true(row < g->area.rows);
	assert_true(end <= g->area.columns);
	assert_true(style <= SCREEN_RED);
	for (size_t at = 0, n; at < len; at += n)
		assert_true((n = text_shown(text + at, len - at)));
	text_add(&g->lines[row], text);
	g->ends[row] = end > g->ends[row] ? end : g->ends[row];
}

static struct top_model make_model(const char *name)
{
	struct rates_list lists[RATES_PARTS] = {0};
	struct top_model m = {0};

	for (enum rates_part part = 0; part < RATES_PARTS; part++)
		for (unsigned n = 0; n < 40; n++)
			rates_add(&lists[part], part ? name : "passed", n % 3 ? "x" : name,
				  n % 2 ? "drop" : name, n);
	rates_add(&lists[RATES_TOTALS], "sent", NULL, NULL, 0);
	rates_add(&lists[RATES_TOTALS], "dropped", NULL, NULL, 0);
	for (enum rates_part part = 0; part < RATES_PARTS; part++) {
		rates_at(&lists[part], S);
		rates_at(&lists[part], 2 * S);
		vec_each (&lists[part], row)
			row->moved = (struct counter){999950 + row->id, 999999999999};
	}
	top_model_add(&m, lists);
	for (enum rates_part part = 0; part < RATES_PARTS; part++)
		rates_free(&lists[part]);
	return m;
}

static const struct sampled_reading *samples; // that are drawn

static void draw(struct grid *g, size_t rows, size_t columns, bool utf8, const struct top_model *m,
		 struct top_ui *ui)
{
	const struct top_about_now about = {
		.instance = "main", .time = "15:04:05", .trouble = "", .samples = samples};

	grid_free(g);
	*g = (struct grid){.area = {rows, columns, utf8, put, g}};
	top_draw(&g->area, m, ui, &about);
}

static bool shows(const struct grid *g, const char *text)
{
	for (size_t n = 0; n < g->area.rows; n++)
		if (strstr(text_get(&g->lines[n]), text))
			return true;
	return false;
}

static void test_any_size(void **state)
{
	static const char keys[] = "1234567890h?b";
	struct top_model m = make_model(HOSTILE HOSTILE HOSTILE HOSTILE HOSTILE);
	CLEANUP(grid_free) struct grid g = {0};
	struct top_ui ui = top_ui_new();

	for (size_t rows = 0; rows < 30; rows += rows < 7 ? 1 : 6)
		for (size_t columns = 0; columns < 210; columns += columns < 64 ? 3 : 37)
			for (const char *key = keys; *key; key++) {
				top_ui_key(&ui, *key);
				draw(&g, rows, columns, columns % 2, &m, &ui);
			}
	top_model_free(&m);
}

static void test_80x24(void **state)
{
	struct top_model m = make_model("web");
	CLEANUP(grid_free) struct grid g = {0};
	struct top_ui ui = top_ui_new();

	draw(&g, 24, 120, true, &m, &ui);
	for (enum top_view view = 0; view < TOP_VIEWS; view++)
		assert_true(shows(&g, top_views[view].name));
	for (enum top_view view = 0; view < TOP_VIEWS; view++) {
		draw(&g, 24, 80, true, &m, &ui);
		assert_non_null(strstr(text_get(&g.lines[1]), top_views[view].name));
		top_ui_key(&ui, SCREEN_TAB);
	}
	draw(&g, 24, 80, true, &m, &ui);
	assert_true(shows(&g, "dropped") && shows(&g, "15:04:05 packets/s") && shows(&g, "q quit"));
	assert_true(shows(&g, "999.9 k") || shows(&g, "1.0 M"));
	for (size_t n = 0; n < 24; n++) // complete: no line is left
		assert_int_equal(g.ends[n], 80);
	top_ui_key(&ui, '6');
	draw(&g, 24, 80, true, &m, &ui);
	assert_true(shows(&g, "SERVICE") && shows(&g, "BACKEND") && shows(&g, "(all)"));
	assert_true(shows(&g, "*10 s") && shows(&g, "last 18s"));
	top_ui_key(&ui, 'r');
	top_ui_key(&ui, 'b');
	top_ui_key(&ui, 'p');
	draw(&g, 24, 80, true, &m, &ui);
	assert_true(shows(&g, "^10 s") && shows(&g, "PAUSED") && shows(&g, "bits/s"));
	assert_true(shows(&g, " T "));
	top_model_free(&m);
}

static void test_40x10(void **state)
{
	struct top_model m = make_model("web");
	CLEANUP(grid_free) struct grid g = {0};
	struct top_ui ui = top_ui_new();

	draw(&g, 10, 40, false, &m, &ui);
	assert_true(shows(&g, "1/10 overview") && shows(&g, "passed") && shows(&g, "dropped"));
	assert_true(shows(&g, "1 s") && shows(&g, "60 s") && shows(&g, "q quit"));
	top_ui_key(&ui, 'h');
	draw(&g, 10, 40, false, &m, &ui);
	assert_true(shows(&g, "filter; Esc") && shows(&g, "q  quit"));
	top_ui_key(&ui, '3');
	draw(&g, 10, 40, false, &m, &ui);
	assert_int_equal(ui.page, 6);
	assert_true(shows(&g, "web drop"));
	draw(&g, 4, 40, false, &m, &ui);
	assert_true(shows(&g, "too small"));
	top_model_free(&m);
}

static void test_empty(void **state)
{
	struct top_model m = {0};
	CLEANUP(grid_free) struct grid g = {0};
	struct top_ui ui = top_ui_new();

	top_ui_key(&ui, '4');
	draw(&g, 24, 80, true, &m, &ui);
	assert_true(shows(&g, "measured every 10 s"));
	top_ui_key(&ui, '3');
	draw(&g, 24, 80, true, &m, &ui);
	assert_true(shows(&g, "nothing counted in the last 60 s"));
	top_ui_key(&ui, '/');
	top_ui_key(&ui, 'x');
	draw(&g, 24, 80, true, &m, &ui);
	assert_true(shows(&g, "no row contains 'x'") && shows(&g, "filter: x_"));
}

static void add_sample(struct sampled_list *l, const char *text, double packets)
{
	struct sampled_row row = {.samples = 40,
				  .packets = packets,
				  .bytes = packets * 100,
				  .share = packets / 10000,
				  .error = 0.007};

	snprintf(row.text, sizeof(row.text), "%s", text);
	vec_push(&l->rows, row);
}

static void test_samples(void **state)
{
	struct sampled_reading reading = {.span_us = 10000000, .samples = 3};
	struct sampled_list *l = &reading.lists[SAMPLED_BY_SOURCE];
	struct top_model m = {0};
	CLEANUP(grid_free) struct grid g = {0};
	struct top_ui ui = top_ui_new();

	top_ui_key(&ui, '8');
	draw(&g, 10, 40, true, &m, &ui);
	assert_true(shows(&g, "no packet was sampled so far"));
	samples = &reading;
	draw(&g, 10, 40, true, &m, &ui);
	assert_true(shows(&g, "3 packets were sampled: too few"));
	add_sample(l, "198.51.100.0/24", 6000);
	add_sample(l, "10.0.0.1", 1240);
	draw(&g, 10, 40, true, &m, &ui);
	assert_true(shows(&g, "8/10 sources") && shows(&g, "SOURCE") && shows(&g, "*10 s"));
	assert_string_equal(text_get(&g.lines[3]), "198.51.100.0/24        600   60.0 % ±0.7");
	assert_string_equal(text_get(&g.lines[4]), "10.0.0.1               124   12.4 % ±0.7");
	top_ui_key(&ui, 'b');
	top_ui_key(&ui, 'r');
	draw(&g, 10, 40, false, &m, &ui);
	assert_string_equal(text_get(&g.lines[3]), "10.0.0.1            99.2 k  12.4 % +-0.7");
	top_ui_key(&ui, '/');
	top_ui_key(&ui, '0');
	top_ui_key(&ui, '/');
	draw(&g, 10, 40, false, &m, &ui);
	assert_true(shows(&g, "198.51.100.0/24") && !shows(&g, "10.0.0.1"));
	samples = NULL;
	sampled_reading_free(&reading);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_size), cmocka_unit_test(test_80x24),
		cmocka_unit_test(test_40x10),    cmocka_unit_test(test_empty),
		cmocka_unit_test(test_samples),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
