// SPDX-License-Identifier: GPL-2.0-only
// The rows of the views of `weir top`: rates of the last 1, 10 and 60 seconds, from readings.
// Pure: all times are in the readings.
//
// Each view keeps the last readings as slots of a second, or of as long as a reading takes, if that
// is longer.
#pragma once

#include "ctl/control/rates.h"
#include "ctl/control/sampled_reading.h"

enum top_view {
	TOP_OVERVIEW, // totals
	TOP_REASONS,
	TOP_RULES,
	TOP_ENTRIES,
	TOP_OWNERS,
	TOP_SERVICES,
	TOP_INTERFACES,
	TOP_COUNTED, // the views above are of counters, the others of samples
	TOP_SOURCES = TOP_COUNTED,
	TOP_DESTINATIONS,
	TOP_PORTS,
	TOP_VIEWS
};

enum top_window { TOP_1S, TOP_10S, TOP_60S, TOP_WINDOWS };

#define TOP_LABELS 3
#define TOP_SLOTS  60
#define TOP_PARTS  2
#define TOP_FILTER 64 // bytes

// The rows of a part become rows of a view; rows with equal labels there are summed up.
struct top_source {
	enum rates_part part;
	int labels[TOP_LABELS]; // which label of the part is in which column; -1: none
};

struct top_about {
	const char *name;
	const char *columns[TOP_LABELS]; // NULL: fewer
	struct top_source sources[TOP_PARTS];
	size_t n_sources;
	enum sampled_by by; // of a view of samples
	bool by_id;         // rows with equal labels are different counters
	bool rare;          // read every ten seconds
};
extern const struct top_about top_views[TOP_VIEWS];
extern const unsigned top_windows_s[TOP_WINDOWS];

struct top_series {
	char *labels[TOP_LABELS]; // never NULL
	uint64_t id;
	uint64_t seen; // number of the reading that had it
	struct counter slots[TOP_SLOTS];
};

struct top_table {
	VEC(struct top_series *) series; // sorted by labels and id
	uint64_t spans_ns[TOP_SLOTS];
	size_t newest, n; // newest: index of a slot; n: slots in use
	uint64_t now_ns;  // of the last reading
	uint64_t readings;
};

struct top_model {
	struct top_table tables[TOP_COUNTED];
	bool all; // keep series that have counted nothing
};
void top_model_free(struct top_model *m);

// Adds a reading. A part whose time is the same as before is not new.
void top_model_add(struct top_model *m, const struct rates_list lists[RATES_PARTS]);

// Which counts are shown, and in which order.
enum top_sort { TOP_BY_NAME, TOP_BY_1S, TOP_BY_10S, TOP_BY_60S, TOP_SORTS };

struct top_choice {
	enum top_sort sort;
	bool reverse;
	bool bits;                   // instead of packets
	char filter[TOP_FILTER + 1]; // only rows with a label that contains this, in any case
};

struct top_row {
	const struct top_series *series;
	double rates[TOP_WINDOWS];
};

struct top_rows {
	struct top_row *at;
	size_t n, cap;
};
void top_rows_free(struct top_rows *rows);
#define CLEANUP_TOP_ROWS CLEANUP(top_rows_free)

// The rows of a view that counted something in the last minute (all; totals always), sorted.
void top_rows_of(const struct top_model *m, enum top_view view, const struct top_choice *choice,
		 struct top_rows *ret);
// Whether the view has rates of this window: not if a reading has taken almost twice its time.
bool top_knows(const struct top_model *m, enum top_view view, enum top_window window);
// The rates of the last n slots, the newest last; before the first reading 0.
void top_history(const struct top_model *m, enum top_view view, const struct top_series *series,
		 bool bits, double *ret, size_t n);
// The time of n slots, if all were as long as the last complete one; 0: no reading so far.
uint64_t top_history_ns(const struct top_model *m, enum top_view view, size_t n);
