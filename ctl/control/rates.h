// SPDX-License-Identifier: GPL-2.0-only
// Rates: what counters have counted between two readings. Pure.
//
// A counter is found again by the labels that name it and its id. One that is less than before has
// begun again (another generation, an attach), and has counted since then at least what it shows.
// One that was not read before has no rate yet: it may be older than the reading.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "ctl/base/addr.h"
#include "ctl/base/vec.h"

enum rates_part {
	RATES_TOTALS,
	RATES_INTERFACES,
	RATES_RULES,
	RATES_SERVICES,
	RATES_BACKENDS,
	// These are read less often.
	RATES_ORIGINS,
	RATES_LISTS,
	RATES_ENTRIES,
	RATES_PARTS
};
#define RATES_SLOW RATES_ORIGINS

#define RATES_LABELS    3
#define RATES_LABEL_MAX 200 // bytes of a label: a rule without a name has its text as its name

// The arrays of the document of `weir top`, and the keys of the labels.
struct rates_about {
	const char *array;
	const char *labels[RATES_LABELS]; // NULL: fewer
	size_t named;                     // so many of the labels are the name of a series
};
extern const struct rates_about rates_about[RATES_PARTS];

struct rates_row {
	char *labels[RATES_LABELS]; // NULL: none
	uint64_t id;                // distinguishes counters with the same labels
	struct counter now;         // as read last
	struct counter moved;       // since the reading before
	bool known;                 // it was read before
};

struct rates_list {
	struct rates_row *at;
	size_t n, cap;
	uint64_t now_ns,
		span_ns; // when it was read, and how long after the previous reading; monotonic
};
void rates_free(struct rates_list *l);

// The rate of a count, per second; 0 for no time.
double rates_of(uint64_t count, uint64_t span_ns);
// What was counted from `before` to `now`.
struct counter rates_moved(const struct counter *before, const struct counter *now);

// A row without a count; labels are copied, and a longer one than RATES_LABEL_MAX is cut and ends
// with "..."; "" or NULL: none.
struct rates_row *rates_add(struct rates_list *l, const char *first, const char *second,
			    const char *third, uint64_t id);
// The list was read at this time.
void rates_at(struct rates_list *l, uint64_t now_ns);
void rates_count(struct rates_row *row, const struct counter *now);
// A row that is a sum: the next rates_sum() begin again.
void rates_clear(struct rates_list *l);
void rates_sum(struct rates_row *row, const struct rates_row *part);
// Takes the counts of the same counters from another list of the part, whose time becomes the time
// of this one.
void rates_inherit(struct rates_list *l, const struct rates_list *from, enum rates_part part);

// ---- counters of entries, which are too many to be rows -----------------------------------------

// The entries that had counted something, in the order of their prefixes, then kinds.
struct rates_entry {
	uint8_t bytes[16], family, len, kind;
	bool doubted; // the last walk read less than `count`
	struct counter count;
};
struct rates_entries {
	VEC(struct rates_entry) before, now;
	size_t at;   // in `before`
	bool known;  // `before` was read
	bool walked; // `now` was, to the end
};
void rates_entries_free(struct rates_entries *e);
// A walk through all entries begins, and has ended. A walk without an end is forgotten: the next
// one is compared with the walk before it.
void rates_entries_begin(struct rates_entries *e);
void rates_entries_end(struct rates_entries *e);
// The next entry of the walk, and what it has counted since the previous walk; in the first one
// nothing. A change can move the counters of an entry while they are read, and then they are too
// small. So an entry that shows less than before has counted nothing, and is compared with the same
// count again. If it still shows less, it has begun again.
struct counter rates_entries_next(struct rates_entries *e, const struct prefix *p, uint8_t kind,
				  const struct counter *now);
