// SPDX-License-Identifier: GPL-2.0-only
// Draws lines of cells, each exactly as wide as the area.
#include "ctl/cmd/top_draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/cells.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

#define RATE_CELLS  8  // a rate, with the blank before it
#define GAP         2  // blanks between two columns of labels, and before the history
#define SPARK_FROM  60 // columns from which the history is shown
#define SPLIT_FROM  30 // cells of all labels from which each has a column
#define LABEL_LEAST 12 // cells; columns of rates are left out for it
#define HEAD_ROWS   2  // title and views
#define NAMES_LEAST 60 // columns in which more than one view has its name
#define SHARE_CELLS 14 // a share with its error, and the blank before it
#define OTHERS      (TOP_COUNTED - 1)

struct draw {
	const struct screen_area *area;
	const struct top_model *m;
	struct top_ui *ui;
	const struct top_about_now *about;
	struct text line;
	size_t label, windows, spark; // cells, columns, cells
	size_t widths[TOP_LABELS];    // cells of each label column; the first 0: one column
};

// ---- lines --------------------------------------------------------------------------------------

// Puts the collected text, and begins a new one.
static void put(struct draw *d, size_t row, size_t column, enum screen_style style)
{
	if (row < d->area->rows)
		d->area->put(d->area->ctx, row, column, style, text_get(&d->line));
	d->line.len = 0;
	text_add(&d->line, ""); // ends there
}

static void put_line(struct draw *d, size_t row, enum screen_style style, const char *text)
{
	cells_add(&d->line, text, d->area->columns, d->area->utf8);
	put(d, row, 0, style);
}

// A text at the left, and one at the right that is always whole.
static void put_both(struct draw *d, size_t row, enum screen_style style, const char *left,
		     const char *right)
{
	size_t wide = cells_width(right, d->area->utf8), columns = d->area->columns;

	wide = wide < columns ? wide : columns;
	cells_add(&d->line, left, columns - wide, d->area->utf8);
	cells_add(&d->line, right, wide, d->area->utf8);
	put(d, row, 0, style);
}

// How many cells each part of a line has.
static void measure(struct draw *d)
{
	size_t columns = d->area->columns;

	d->spark = columns < SPARK_FROM ? 0 : (columns - TOP_WINDOWS * RATE_CELLS) / 3;
	d->spark = d->spark > TOP_SLOTS ? TOP_SLOTS : d->spark;
	d->windows = TOP_WINDOWS;
	while (d->windows > 1 && columns < LABEL_LEAST + d->windows * RATE_CELLS)
		d->windows--;
	d->label = columns - d->windows * RATE_CELLS - (d->spark ? d->spark + GAP : 0);
}

// ---- labels -------------------------------------------------------------------------------------

static const char *label_of(const struct top_series *series, size_t n)
{
	if (series->labels[n][0])
		return series->labels[n];
	return n ? "(all)" : "(none)";
}

static size_t count_labels(const struct top_about *about)
{
	size_t n = 0;

	while (n < TOP_LABELS && about->columns[n])
		n++;
	return n;
}

// Narrows the widest columns until all fit.
static void narrow(size_t *widths, size_t n, size_t room)
{
	size_t sum = (n - 1) * GAP, widest;

	for (size_t i = 0; i < n; i++)
		sum += widths[i];
	for (; sum > room; sum--) {
		widest = 0;
		for (size_t i = 1; i < n; i++)
			widest = widths[i] > widths[widest] ? i : widest;
		widths[widest]--;
	}
}

// The columns of the rows from ui->first on.
static void measure_labels(struct draw *d, const struct top_rows *rows, size_t page)
{
	const struct top_about *about = &top_views[d->ui->view];
	size_t n = count_labels(about), to = d->ui->first + page;

	memset(d->widths, 0, sizeof(d->widths));
	if (n < 2 || d->label < SPLIT_FROM)
		return;
	for (size_t i = 0; i < n; i++) {
		d->widths[i] = strlen(about->columns[i]) + 1;
		for (size_t r = d->ui->first; r < rows->n && r < to; r++) {
			size_t wide = cells_width(label_of(rows->at[r].series, i), d->area->utf8);

			d->widths[i] = wide > d->widths[i] ? wide : d->widths[i];
		}
	}
	narrow(d->widths, n, d->label);
}

// Adds labels in their columns, or one after the other.
static void add_labels(struct draw *d, const char *const labels[TOP_LABELS], bool columns)
{
	CLEANUP_TEXT struct text all = {0};
	size_t used = 0;

	for (size_t n = 0; n < TOP_LABELS && !columns; n++)
		if (labels[n] && labels[n][0])
			text_addf(&all, "%s%s", all.len ? " " : "", labels[n]);
	if (!columns) {
		cells_add(&d->line, text_get(&all), d->label, d->area->utf8);
		return;
	}
	for (size_t n = 0; n < TOP_LABELS && d->widths[n]; n++) {
		size_t gap = n ? GAP : 0;

		cells_add(&d->line, "", gap, d->area->utf8);
		cells_add(&d->line, labels[n], d->widths[n], d->area->utf8);
		used += gap + d->widths[n];
	}
	cells_add(&d->line, "", d->label - used, d->area->utf8);
}

static bool is_drop(const struct top_series *series)
{
	static const char *const words[] = {"drop", "dropped", "reject"};

	for (size_t n = 0; n < TOP_LABELS; n++)
		for (size_t w = 0; w < ARRAY_SIZE(words); w++)
			if (!strcmp(series->labels[n], words[w]))
				return true;
	return false;
}

// ---- rows ---------------------------------------------------------------------------------------

static void add_heading(struct draw *d, enum top_view view)
{
	static const char *const names[TOP_WINDOWS] = {"1 s", "10 s", "60 s"};
	const struct top_choice *choice = &d->ui->choice;

	for (enum top_window w = 0; w < d->windows; w++) {
		bool sorted = choice->sort == w + TOP_BY_1S;
		char name[RATE_CELLS];

		snprintf(name, sizeof(name), "%s%s", sorted ? choice->reverse ? "^" : "*" : "",
			 names[w]);
		cells_add_right(&d->line, name, RATE_CELLS, d->area->utf8);
	}
	if (d->spark) {
		uint64_t span_ms = (top_history_ns(d->m, view, d->spark) + 500000000) / 1000000;
		num_text span;
		char name[NUM_TEXT + 8];

		num_format_duration_ms(span_ms / 1000 * 1000, span);
		snprintf(name, sizeof(name), "last %s", span);
		cells_add(&d->line, "", GAP, d->area->utf8);
		cells_add(&d->line, span_ms >= 1000 ? name : "", d->spark, d->area->utf8);
	}
}

static void put_heading(struct draw *d, size_t row, enum top_view view,
			const char *const labels[TOP_LABELS], bool columns)
{
	const struct top_choice *choice = &d->ui->choice;
	bool by_name = choice->sort == TOP_BY_NAME;
	char first[32];
	const char *marked[TOP_LABELS] = {first, labels[1], columns ? labels[2] : NULL};

	snprintf(first, sizeof(first), "%s%s", by_name ? choice->reverse ? "^" : "*" : "",
		 labels[0]);
	add_labels(d, marked, columns);
	add_heading(d, view);
	put(d, row, 0, SCREEN_BOLD);
}

static void put_row(struct draw *d, size_t at, enum top_view view, const struct top_row *row,
		    bool columns)
{
	const char *labels[TOP_LABELS] = {0};
	double history[TOP_SLOTS];

	for (size_t n = 0; n < TOP_LABELS; n++)
		labels[n] = columns || !n ? label_of(row->series, n) : row->series->labels[n];
	add_labels(d, labels, columns);
	put(d, at, 0, is_drop(row->series) ? SCREEN_RED : SCREEN_PLAIN);
	for (enum top_window w = 0; w < d->windows; w++) {
		num_text rate;
		const char *text =
			top_knows(d->m, view, w) ? num_format_short(row->rates[w], rate) : "-";

		cells_add_right(&d->line, text, RATE_CELLS, d->area->utf8);
	}
	if (d->spark) {
		top_history(d->m, view, row->series, d->ui->choice.bits, history, d->spark);
		cells_add(&d->line, "", GAP, d->area->utf8);
		cells_add_spark(&d->line, history, d->spark, d->area->utf8);
	}
	put(d, at, d->label, SCREEN_PLAIN);
}

// ---- views --------------------------------------------------------------------------------------

static void put_empty(struct draw *d, size_t row)
{
	CLEANUP_TEXT struct text why = {0};

	if (d->ui->choice.filter[0])
		text_addf(&why, "no row contains '%s'", d->ui->choice.filter);
	else if (top_views[d->ui->view].rare && !d->m->tables[d->ui->view].n)
		text_add(&why, "measured every 10 s: no result yet");
	else
		text_add(&why, "nothing counted in the last 60 s");
	put_line(d, row, SCREEN_PLAIN, text_get(&why));
}

static void draw_view(struct draw *d, size_t from, size_t to)
{
	CLEANUP_TOP_ROWS struct top_rows rows = {0};
	enum top_view view = d->ui->view;
	bool columns;

	top_rows_of(d->m, view, &d->ui->choice, &rows);
	top_ui_fit(d->ui, rows.n, to > from + 1 ? to - from - 1 : 0);
	measure_labels(d, &rows, d->ui->page);
	columns = d->widths[0];
	put_heading(d, from, view, top_views[view].columns, columns);
	for (size_t n = 0; n < d->ui->page && d->ui->first + n < rows.n; n++)
		put_row(d, from + 1 + n, view, &rows.at[d->ui->first + n], columns);
	if (!rows.n)
		put_empty(d, from + 1);
}

// ---- views of samples ---------------------------------------------------------------------------

struct sample_rows {
	VEC(const struct sampled_row *) rows;
};

static int by_text(const void *a, const void *b)
{
	const struct sampled_row *const *x = a, *const *y = b;

	return strcmp((*x)->text, (*y)->text);
}

// Those that the choice has; the reading has them by packets.
static void choose_samples(const struct draw *d, struct sample_rows *ret)
{
	const struct top_choice *choice = &d->ui->choice;
	const struct sampled_list *list = &d->about->samples->lists[top_views[d->ui->view].by];

	vec_each (&list->rows, row)
		if (strcasestr(row->text, choice->filter))
			vec_push(&ret->rows, row);
	if (choice->sort == TOP_BY_NAME && ret->rows.n)
		qsort(ret->rows.at, ret->rows.n, sizeof(ret->rows.at[0]), by_text);
	for (size_t n = 0; choice->reverse && n < ret->rows.n / 2; n++) {
		const struct sampled_row *row = ret->rows.at[n];

		ret->rows.at[n] = ret->rows.at[ret->rows.n - 1 - n];
		ret->rows.at[ret->rows.n - 1 - n] = row;
	}
}

static void put_samples_line(struct draw *d, size_t at, enum screen_style style,
			     const char *const cells[3])
{
	size_t columns = d->area->columns;
	size_t share = columns < LABEL_LEAST + RATE_CELLS + SHARE_CELLS ? 0 : SHARE_CELLS;

	cells_add(&d->line, cells[0], columns - RATE_CELLS - share, d->area->utf8);
	cells_add_right(&d->line, cells[1], RATE_CELLS, d->area->utf8);
	cells_add_right(&d->line, cells[2], share, d->area->utf8);
	put(d, at, 0, style);
}

static void put_sample(struct draw *d, size_t at, const struct sampled_row *row)
{
	double seconds = (double)d->about->samples->span_us / 1e6;
	double rate = d->ui->choice.bits ? 8 * row->bytes : row->packets;
	char share[32];
	num_text text;

	snprintf(share, sizeof(share), "%.1f %% %s%.1f", row->share * 100,
		 d->area->utf8 ? "±" : "+-", row->error * 100);
	put_samples_line(
		d, at, SCREEN_PLAIN,
		(const char *const[]){row->text,
				      seconds > 0 ? num_format_short(rate / seconds, text) : "-",
				      share});
}

static void put_no_samples(struct draw *d, size_t row)
{
	const struct sampled_reading *samples = d->about->samples;
	CLEANUP_TEXT struct text why = {0};

	if (!samples)
		text_add(&why, "no packet was sampled so far");
	else if (d->ui->choice.filter[0])
		text_addf(&why, "no row contains '%s'", d->ui->choice.filter);
	else
		text_addf(&why, "%llu %s sampled: too few", (unsigned long long)samples->samples,
			  num_plural(samples->samples, "packet was", "packets were"));
	put_line(d, row, SCREEN_PLAIN, text_get(&why));
}

// Rates and shares of the last ten seconds.
static void draw_samples(struct draw *d, size_t from, size_t to)
{
	const struct top_choice *choice = &d->ui->choice;
	const char *mark = choice->reverse ? "^" : "*";
	bool by_name = choice->sort == TOP_BY_NAME;
	CLEANUP_VEC struct sample_rows chosen = {0};
	char name[32], rate[16];

	if (d->about->samples)
		choose_samples(d, &chosen);
	top_ui_fit(d->ui, chosen.rows.n, to > from + 1 ? to - from - 1 : 0);
	snprintf(name, sizeof(name), "%s%s", by_name ? mark : "",
		 top_views[d->ui->view].columns[0]);
	snprintf(rate, sizeof(rate), "%s10 s", by_name ? "" : mark);
	put_samples_line(d, from, SCREEN_BOLD, (const char *const[]){name, rate, "share"});
	for (size_t n = 0; n < d->ui->page && d->ui->first + n < chosen.rows.n; n++)
		put_sample(d, from + 1 + n, chosen.rows.at[d->ui->first + n]);
	if (!chosen.rows.n)
		put_no_samples(d, from + 1);
}

// ---- the overview -------------------------------------------------------------------------------

static size_t draw_totals(struct draw *d, size_t from)
{
	static const char *const names[] = {"passed", "sent", "dropped"};
	const struct top_choice by_name = {.bits = d->ui->choice.bits};
	CLEANUP_TOP_ROWS struct top_rows rows = {0};

	top_rows_of(d->m, TOP_OVERVIEW, &by_name, &rows);
	put_heading(d, from, TOP_OVERVIEW, top_views[TOP_OVERVIEW].columns, false);
	for (size_t n = 0; n < ARRAY_SIZE(names); n++)
		vec_each (&rows, row)
			if (!strcmp(row->series->labels[0], names[n]))
				put_row(d, from + 1 + n, TOP_OVERVIEW, row, false);
	return from + 1 + ARRAY_SIZE(names);
}

// Shares lines among the other views in turn; the first row of a view also takes its heading.
static void share(const struct top_rows rows[OTHERS], size_t lines, size_t ret[OTHERS])
{
	bool any = true;

	memset(ret, 0, OTHERS * sizeof(ret[0]));
	while (any) {
		any = false;
		for (size_t v = 0; v < OTHERS; v++) {
			size_t cost = ret[v] ? 1 : 2;

			if (ret[v] == rows[v].n || cost > lines)
				continue;
			ret[v]++;
			lines -= cost;
			any = true;
		}
	}
}

static void draw_part(struct draw *d, size_t *at, enum top_view view, const struct top_rows *rows,
		      size_t n)
{
	const char *const labels[TOP_LABELS] = {top_views[view].name};

	if (!n)
		return;
	put_heading(d, (*at)++, view, labels, false);
	for (size_t r = 0; r < n; r++)
		put_row(d, (*at)++, view, &rows->at[r], false);
}

static void draw_overview(struct draw *d, size_t from, size_t to)
{
	struct top_rows rows[OTHERS] = {0};
	size_t lines[OTHERS], at = draw_totals(d, from);

	top_ui_fit(d->ui, 0, 0);
	for (size_t v = 0; v < OTHERS; v++)
		top_rows_of(d->m, (enum top_view)(v + 1), &d->ui->choice, &rows[v]);
	share(rows, to > at ? to - at : 0, lines);
	for (size_t v = 0; v < OTHERS; v++) {
		draw_part(d, &at, (enum top_view)(v + 1), &rows[v], lines[v]);
		top_rows_free(&rows[v]);
	}
}

static void draw_help(struct draw *d, size_t from, size_t to)
{
	static const char *const lines[] = {
		"1-9, 0, Tab, v  view",
		"s, r            sort, reverse",
		"/ text Enter    filter; Esc removes it",
		"p               pause",
		"b               packets or bits",
		"arrows, PgUp, PgDn, Home, End  scroll",
		"h, ?           this help;  q  quit",
	};

	for (size_t n = 0; n < ARRAY_SIZE(lines) && from + n < to; n++)
		put_line(d, from + n, SCREEN_PLAIN, lines[n]);
}

// ---- head and foot ------------------------------------------------------------------------------

static void draw_title(struct draw *d)
{
	CLEANUP_TEXT struct text left = {0}, right = {0};

	text_addf(&left, "weir top %s", d->about->instance);
	text_addf(&right, " %s%s %s", d->ui->paused ? "PAUSED " : "", d->about->time,
		  d->ui->choice.bits ? "bits/s" : "packets/s");
	put_both(d, 0, SCREEN_BAR, text_get(&left), text_get(&right));
}

// The names of all views, or as many as fit with the present one, or only that.
static void draw_names(struct draw *d)
{
	CLEANUP_TEXT struct text all = {0};
	size_t from[TOP_VIEWS], len[TOP_VIEWS], first = 0, now = d->ui->view;

	for (size_t view = 0; view < TOP_VIEWS; view++) {
		text_add(&all, view ? "  " : "");
		from[view] = all.len;
		text_addf(&all, "%zu %s", (view + 1) % 10, top_views[view].name);
		len[view] = all.len - from[view];
	}
	if (d->area->columns >= NAMES_LEAST) {
		while (from[now] + len[now] - from[first] > d->area->columns - 1)
			first++;
		put_line(d, 1, SCREEN_PLAIN, all.at + from[first]);
		text_addn(&d->line, all.at + from[now], len[now]);
		put(d, 1, from[now] - from[first], SCREEN_BAR);
		return;
	}
	all.len = 0;
	text_addf(&all, "%u/%d %s", d->ui->view + 1, TOP_VIEWS, top_views[d->ui->view].name);
	put_line(d, 1, SCREEN_BOLD, text_get(&all));
}

// As many keys as fit.
static void add_keys(const struct draw *d, struct text *foot)
{
	static const char *const keys[] = {"q quit",   "h help",  "Tab view", "s sort",
					   "/ filter", "p pause", "b bits",   "r reverse"};

	for (size_t n = 0; n < ARRAY_SIZE(keys); n++) {
		if (cells_width(text_get(foot), d->area->utf8) + 2 + strlen(keys[n]) >
		    d->area->columns)
			return;
		text_addf(foot, "%s%s", foot->len ? "  " : "", keys[n]);
	}
}

static void draw_foot(struct draw *d)
{
	CLEANUP_TEXT struct text foot = {0};
	enum screen_style style = SCREEN_PLAIN;

	if (d->ui->editing) {
		text_addf(&foot, "filter: %s_", d->ui->choice.filter);
		style = SCREEN_BOLD;
	} else if (d->about->trouble[0]) {
		text_add(&foot, d->about->trouble);
		style = SCREEN_RED;
	} else {
		if (d->ui->choice.filter[0])
			text_addf(&foot, "/%s", d->ui->choice.filter);
		add_keys(d, &foot);
	}
	put_line(d, d->area->rows - 1, style, text_get(&foot));
}

void top_draw(const struct screen_area *area, const struct top_model *m, struct top_ui *ui,
	      const struct top_about_now *about)
{
	struct draw d = {.area = area, .m = m, .ui = ui, .about = about};
	size_t to = area->rows - 1;

	if (!area->rows || !area->columns)
		return;
	if (area->rows < TOP_ROWS_LEAST || area->columns < TOP_COLUMNS_LEAST) {
		put_line(&d, 0, SCREEN_PLAIN, "too small");
		text_free(&d.line);
		return;
	}
	measure(&d);
	draw_title(&d);
	draw_names(&d);
	if (ui->help)
		draw_help(&d, HEAD_ROWS, to);
	else if (ui->view == TOP_OVERVIEW)
		draw_overview(&d, HEAD_ROWS, to);
	else if (ui->view >= TOP_COUNTED)
		draw_samples(&d, HEAD_ROWS, to);
	else
		draw_view(&d, HEAD_ROWS, to);
	draw_foot(&d);
	text_free(&d.line);
}
