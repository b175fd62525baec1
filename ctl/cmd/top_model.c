// SPDX-License-Identifier: GPL-2.0-only
// Keeps counts by view, row and slot.
#include "ctl/cmd/top_model.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

#define SECOND_NS 1000000000ull
#define SLOT_NS   (SECOND_NS - SECOND_NS / 50) // a shorter slot also takes the next reading

const unsigned top_windows_s[TOP_WINDOWS] = {1, 10, 60};

const struct top_about top_views[TOP_VIEWS] = {
	[TOP_OVERVIEW] = {.name = "overview",
			  .columns = {"TOTAL"},
			  .sources = {{RATES_TOTALS, {0, -1, -1}}},
			  .n_sources = 1},
	[TOP_REASONS] = {.name = "reasons",
			 .columns = {"REASON", "VERDICT"},
			 .sources = {{RATES_INTERFACES, {1, 2, -1}}},
			 .n_sources = 1},
	[TOP_RULES] = {.name = "rules",
		       .columns = {"RULE", "ACTION"},
		       .sources = {{RATES_RULES, {0, 2, -1}}},
		       .n_sources = 1,
		       .by_id = true},
	[TOP_ENTRIES] = {.name = "entries",
			 .columns = {"ADDRESS", "KIND"},
			 .sources = {{RATES_ENTRIES, {0, 1, -1}}},
			 .n_sources = 1,
			 .rare = true},
	[TOP_OWNERS] = {.name = "owners",
			.columns = {"ORIGIN", "LIST", "VERB"},
			.sources = {{RATES_ORIGINS, {0, -1, 1}}, {RATES_LISTS, {1, 0, 2}}},
			.n_sources = 2,
			.rare = true},
	[TOP_SERVICES] = {.name = "services",
			  .columns = {"SERVICE", "BACKEND"},
			  .sources = {{RATES_SERVICES, {0, -1, -1}}, {RATES_BACKENDS, {0, 1, -1}}},
			  .n_sources = 2},
	[TOP_INTERFACES] = {.name = "interfaces",
			    .columns = {"INTERFACE", "VERDICT"},
			    .sources = {{RATES_INTERFACES, {0, 2, -1}}},
			    .n_sources = 1},
	[TOP_SOURCES] = {.name = "sources", .columns = {"SOURCE"}, .by = SAMPLED_BY_SOURCE},
	[TOP_DESTINATIONS] = {.name = "destinations",
			      .columns = {"DESTINATION"},
			      .by = SAMPLED_BY_DESTINATION},
	[TOP_PORTS] = {.name = "ports", .columns = {"PORT"}, .by = SAMPLED_BY_PORT},
};

static void series_free(struct top_series *s)
{
	for (size_t n = 0; n < TOP_LABELS; n++)
		free(s->labels[n]);
	free(s);
}

void top_model_free(struct top_model *m)
{
	for (enum top_view view = 0; view < TOP_COUNTED; view++) {
		vec_each (&m->tables[view].series, series)
			series_free(*series);
		vec_free(&m->tables[view].series);
	}
	*m = (struct top_model){0};
}

// ---- a reading ----------------------------------------------------------------------------------

// The name of a row in a view; the labels belong to the reading.
struct top_name {
	const char *labels[TOP_LABELS];
	uint64_t id;
};

static struct top_name name_of(const struct top_about *about, const struct top_source *source,
			       const struct rates_row *row)
{
	struct top_name name = {.id = about->by_id ? row->id : 0};

	for (size_t n = 0; n < TOP_LABELS; n++) {
		int label = source->labels[n];

		name.labels[n] = label >= 0 && row->labels[label] ? row->labels[label] : "";
	}
	return name;
}

static int compare_name(const struct top_name *name, const struct top_series *series)
{
	for (size_t n = 0; n < TOP_LABELS; n++) {
		int order = strcmp(name->labels[n], series->labels[n]);

		if (order)
			return order;
	}
	return name->id < series->id ? -1 : name->id > series->id;
}

// Where the series is, or would be. *ret_found: whether it is there.
static size_t find(const struct top_table *t, const struct top_name *name, bool *ret_found)
{
	size_t from = 0, to = t->series.n;

	*ret_found = false;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int order = compare_name(name, t->series.at[middle]);

		if (!order) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}

static struct top_series *insert(struct top_table *t, const struct top_name *name, size_t at)
{
	struct top_series *series = mem_new(struct top_series);

	for (size_t n = 0; n < TOP_LABELS; n++)
		series->labels[n] = mem_strdup(name->labels[n]);
	series->id = name->id;
	vec_push(&t->series, series);
	memmove(&t->series.at[at + 1], &t->series.at[at],
		(t->series.n - 1 - at) * sizeof(t->series.at[0]));
	t->series.at[at] = series;
	return series;
}

static void count_row(struct top_table *t, const struct top_name *name, const struct counter *moved,
		      bool all)
{
	struct top_series *series;
	bool found;
	size_t at;

	if (!moved->packets && !all)
		return;
	at = find(t, name, &found);
	series = found ? t->series.at[at] : insert(t, name, at);
	series->seen = t->readings;
	series->slots[t->newest].packets += moved->packets;
	series->slots[t->newest].bytes += moved->bytes;
}

static bool is_empty(const struct top_series *series)
{
	for (size_t n = 0; n < TOP_SLOTS; n++)
		if (series->slots[n].packets)
			return false;
	return true;
}

// Series without a count in any slot, and which this reading does not have.
static void drop_empty(struct top_table *t)
{
	size_t kept = 0;

	for (size_t n = 0; n < t->series.n; n++) {
		struct top_series *series = t->series.at[n];

		if (series->seen != t->readings && is_empty(series))
			series_free(series);
		else
			t->series.at[kept++] = series;
	}
	t->series.n = kept;
}

static void begin_slot(struct top_table *t)
{
	t->newest = (t->newest + 1) % TOP_SLOTS;
	t->n += t->n < TOP_SLOTS;
	t->spans_ns[t->newest] = 0;
	vec_each (&t->series, series)
		(*series)->slots[t->newest] = (struct counter){0};
}

static void add_reading(struct top_table *t, const struct top_about *about,
			const struct rates_list lists[RATES_PARTS], bool all)
{
	if (!t->n || t->spans_ns[t->newest] >= SLOT_NS)
		begin_slot(t);
	t->spans_ns[t->newest] += lists[about->sources[0].part].span_ns;
	t->readings++;
	for (size_t n = 0; n < about->n_sources; n++) {
		const struct top_source *source = &about->sources[n];

		vec_each (&lists[source->part], row) {
			const struct top_name name = name_of(about, source, row);

			count_row(t, &name, &row->moved, all);
		}
	}
	drop_empty(t);
}

void top_model_add(struct top_model *m, const struct rates_list lists[RATES_PARTS])
{
	for (enum top_view view = 0; view < TOP_COUNTED; view++) {
		const struct top_about *about = &top_views[view];
		const struct rates_list *first = &lists[about->sources[0].part];
		struct top_table *t = &m->tables[view];
		bool same = first->now_ns == t->now_ns;

		t->now_ns = first->now_ns;
		if (!same && first->span_ns)
			add_reading(t, about, lists, m->all || view == TOP_OVERVIEW);
	}
}

// ---- rates --------------------------------------------------------------------------------------

static double rate_of(const struct counter *c, uint64_t span_ns, bool bits)
{
	return bits ? 8 * rates_of(c->bytes, span_ns) : rates_of(c->packets, span_ns);
}

static size_t slot_before(const struct top_table *t, size_t age)
{
	return (t->newest + TOP_SLOTS - age) % TOP_SLOTS;
}

// How many of the newest slots are the window: as few as have its time.
static size_t slots_of(const struct top_table *t, enum top_window window, uint64_t *ret_span_ns)
{
	uint64_t wanted_ns = top_windows_s[window] * (SECOND_NS - SECOND_NS / 50);
	size_t n = 0;

	*ret_span_ns = 0;
	while (n < t->n && *ret_span_ns < wanted_ns)
		*ret_span_ns += t->spans_ns[slot_before(t, n++)];
	return n;
}

bool top_knows(const struct top_model *m, enum top_view view, enum top_window window)
{
	const struct top_table *t = &m->tables[view];
	uint64_t span_ns;
	size_t n = slots_of(t, window, &span_ns);

	for (size_t age = 0; age < n; age++)
		if (t->spans_ns[slot_before(t, age)] > top_windows_s[window] * SECOND_NS * 19 / 10)
			return false;
	return n;
}

static double window_rate(const struct top_table *t, const struct top_series *series,
			  enum top_window window, bool bits)
{
	struct counter sum = {0};
	uint64_t span_ns;
	size_t n = slots_of(t, window, &span_ns);

	while (n--) {
		const struct counter *slot = &series->slots[slot_before(t, n)];

		sum.packets += slot->packets;
		sum.bytes += slot->bytes;
	}
	return rate_of(&sum, span_ns, bits);
}

void top_history(const struct top_model *m, enum top_view view, const struct top_series *series,
		 bool bits, double *ret, size_t n)
{
	const struct top_table *t = &m->tables[view];

	for (size_t age = 0; age < n; age++) {
		size_t slot = slot_before(t, age % TOP_SLOTS);

		ret[n - 1 - age] =
			age < t->n ? rate_of(&series->slots[slot], t->spans_ns[slot], bits) : 0;
	}
}

uint64_t top_history_ns(const struct top_model *m, enum top_view view, size_t n)
{
	const struct top_table *t = &m->tables[view];

	return t->n ? t->spans_ns[slot_before(t, t->n > 1)] * n : 0;
}

// ---- rows ---------------------------------------------------------------------------------------

void top_rows_free(struct top_rows *rows)
{
	vec_free(rows);
}

static bool matches(const struct top_series *series, const char *filter)
{
	for (size_t n = 0; n < TOP_LABELS; n++)
		if (strcasestr(series->labels[n], filter))
			return true;
	return false;
}

static int compare_labels(const struct top_series *a, const struct top_series *b)
{
	const struct top_name name = {{a->labels[0], a->labels[1], a->labels[2]}, a->id};

	return compare_name(&name, b);
}

static int by_name(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	return compare_labels(x->series, y->series);
}

// The larger first.
static int by_window(const struct top_row *x, const struct top_row *y, enum top_window window)
{
	if (x->rates[window] > y->rates[window])
		return -1;
	if (x->rates[window] < y->rates[window])
		return 1;
	return compare_labels(x->series, y->series);
}

static int by_1s(const void *a, const void *b)
{
	return by_window(a, b, TOP_1S);
}

static int by_10s(const void *a, const void *b)
{
	return by_window(a, b, TOP_10S);
}

static int by_60s(const void *a, const void *b)
{
	return by_window(a, b, TOP_60S);
}

static void reverse(struct top_rows *rows)
{
	for (size_t n = 0; n < rows->n / 2; n++) {
		struct top_row row = rows->at[n];

		rows->at[n] = rows->at[rows->n - 1 - n];
		rows->at[rows->n - 1 - n] = row;
	}
}

void top_rows_of(const struct top_model *m, enum top_view view, const struct top_choice *choice,
		 struct top_rows *ret)
{
	static int (*const orders[TOP_SORTS])(const void *, const void *) = {by_name, by_1s, by_10s,
									     by_60s};
	const struct top_table *t = &m->tables[view];
	struct top_rows rows = {0};

	vec_each (&t->series, series) {
		struct top_row row = {.series = *series};

		if (!matches(*series, choice->filter))
			continue;
		for (enum top_window w = 0; w < TOP_WINDOWS; w++)
			row.rates[w] = window_rate(t, *series, w, choice->bits);
		if (m->all || view == TOP_OVERVIEW || row.rates[TOP_60S] > 0)
			vec_push(&rows, row);
	}
	if (rows.n)
		qsort(rows.at, rows.n, sizeof(rows.at[0]), orders[choice->sort]);
	if (choice->reverse)
		reverse(&rows);
	*ret = rows;
}
