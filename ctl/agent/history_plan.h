// SPDX-License-Identifier: GPL-2.0-only
// The history of rates: 300 seconds by second, 24 hours by minute. Pure: documents of `weir top`
// and times in, arrays of numbers out.
//
// There is room for the busiest series; the others of a part are summed as "other/PART". A series
// that makes room is added to them. What was not measured is not a number.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/json.h"
#include "ctl/base/text.h"
#include "ctl/control/rates.h"

#define HISTORY_SECONDS 300
#define HISTORY_MINUTES 1440
#define HISTORY_SERIES  1000 // besides one for the others of each part
#define HISTORY_BUSIEST 30

// The lines of an output that is received in parts, each of which is a document.
struct history_lines {
	struct text line;
	bool skips; // the rest of a line that is too long
	bool ended; // the next part begins another line
};
enum history_line {
	HISTORY_LINE_OPEN,  // the line has not ended, or was skipped
	HISTORY_LINE_WHOLE, // it is in `line`, until the next call
	HISTORY_LINE_LONG,  // it is longer than `max` bytes, and is skipped; only once for a line
};
// Takes the output up to the end of a line, at most.
enum history_line history_lines_take(struct history_lines *l, size_t max, const char **output,
				     size_t *len);
void history_lines_forget(struct history_lines *l); // the output has ended

struct history_value {
	float packets, bytes; // per second
};

struct history;

struct history *history_new(void);
void history_free(struct history *h); // NULL is allowed

// A document of `weir top`, measured until now_ms (monotonic; wall_ms: the same moment of the wall
// clock) for span_ms. Times that no document covers have no values.
void history_begin(struct history *h, uint64_t now_ms, uint64_t span_ms, uint64_t wall_ms);
// A row of the document. name: its labels, joined by '/'.
void history_set(struct history *h, enum rates_part part, const char *name,
		 struct history_value value);
void history_end(struct history *h);
// All three for a document; false: it has no measurement.
bool history_take(struct history *h, const struct json *document, uint64_t now_ms,
		  uint64_t wall_ms);

enum history_span { HISTORY_5M, HISTORY_24H };

// Whether there is a series with this name ("rules/ssh").
bool history_has(const struct history *h, const char *series);
// Adds the keys of the answer to an open object. series: so many names, without names that do not
// exist; 0: the totals and the busiest, of 24 hours by five minutes.
void history_write(const struct history *h, enum history_span span, const char *const *series,
		   size_t n, struct json_writer *to);
// How many series there are; the sums of others do not count.
size_t history_count(const struct history *h);
