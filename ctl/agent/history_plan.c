// SPDX-License-Identifier: GPL-2.0-only
// Rings of values for each series, found by their names.
#include "ctl/agent/history_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/best.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"

#define SECOND_MS    1000
#define MINUTE_S     60
#define IDLE_S       (HISTORY_MINUTES * MINUTE_S) // then a series is forgotten
#define BUSY_S       300                          // that the average of a series looks back
#define REPLACED_MAX 10                           // series, by one document
#define ROUGH        5 // minutes that a value of the busiest stands for, of 24 hours

struct series {
	char *name; // NULL: free
	enum rates_part part;
	bool is_other;
	struct history_value now; // of the present document
	double packets, bytes;    // of the present minute
	double busy;              // packets per second, on average
	uint64_t active;          // second in which it last had a packet
	struct history_value seconds[HISTORY_SECONDS], minutes[HISTORY_MINUTES];
};

#define ALL_SERIES (HISTORY_SERIES + RATES_PARTS) // the others are last

struct history {
	struct series *all;
	uint16_t order[ALL_SERIES]; // by name: the others are not touched, and take no memory
	size_t n;                   // in `order`
	uint16_t spare[HISTORY_SERIES];
	size_t n_spare;
	bool began;
	uint64_t now_ms;                                         // when the last document was read
	bool seconds[HISTORY_SECONDS], minutes[HISTORY_MINUTES]; // that were measured
	uint64_t second;                                         // number of the last second
	unsigned covered;                                        // seconds of the present document
	unsigned measured;                                       // seconds of the present minute
	uint64_t wall_ms;                                        // end of the last second
	unsigned replaced;                                       // by the present document
};

static const struct history_value none = {NAN, NAN};

static struct series *series_at(const struct history *h, size_t n)
{
	return &h->all[h->order[n]];
}

struct history *history_new(void)
{
	struct history *h = mem_new(struct history);

	h->all = mem_zalloc(ALL_SERIES, sizeof(*h->all));
	for (size_t n = HISTORY_SERIES; n-- > 0;) // the first one is taken first
		h->spare[h->n_spare++] = (uint16_t)n;
	return h;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (size_t n = 0; n < h->n; n++)
		free(series_at(h, n)->name);
	free(h->all);
	free(h);
}

// ---- series by name -----------------------------------------------------------------------------

// The place in `order` of this name, or where it belongs.
static size_t place_of(const struct history *h, const char *name, bool *ret_found)
{
	size_t low = 0, high = h->n;

	*ret_found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(series_at(h, middle)->name, name);

		if (!order) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct series *find(const struct history *h, const char *name)
{
	bool found;
	size_t place = place_of(h, name, &found);

	return found ? series_at(h, place) : NULL;
}

static struct history_value before(bool measured)
{
	return measured ? (struct history_value){0} : none;
}

// It had no packet until now, unless others of its part are summed: it may have been one.
static struct series *take_room(struct history *h, size_t at, enum rates_part part,
				const char *name)
{
	struct series *s = &h->all[at];
	bool found, known = !h->all[HISTORY_SERIES + part].name;
	size_t place = place_of(h, name, &found);

	*s = (struct series){.name = mem_strdup(name), .part = part, .active = h->second};
	for (size_t n = 0; n < HISTORY_SECONDS; n++)
		s->seconds[n] = before(known && h->seconds[n]);
	for (size_t n = 0; n < HISTORY_MINUTES; n++)
		s->minutes[n] = before(known && h->minutes[n]);
	memmove(h->order + place + 1, h->order + place, (h->n - place) * sizeof(*h->order));
	h->order[place] = (uint16_t)at;
	h->n++;
	return s;
}

static void release(struct history *h, struct series *s)
{
	bool found;
	size_t place = place_of(h, s->name, &found);

	h->n--;
	memmove(h->order + place, h->order + place + 1, (h->n - place) * sizeof(*h->order));
	free(TAKE_PTR(s->name));
	if (!s->is_other)
		h->spare[h->n_spare++] = (uint16_t)(s - h->all);
}

static struct series *other_of(struct history *h, enum rates_part part)
{
	size_t at = HISTORY_SERIES + part;
	CLEANUP_FREE char *name = mem_printf("other/%s", rates_about[part].array);

	if (!h->all[at].name)
		take_room(h, at, part, name)->is_other = true;
	return &h->all[at];
}

static void add_value(struct history_value *to, const struct history_value *more)
{
	if (isnan(more->packets))
		return;
	to->packets = (isnan(to->packets) ? 0 : to->packets) + more->packets;
	to->bytes = (isnan(to->bytes) ? 0 : to->bytes) + more->bytes;
}

static void merge(struct series *to, const struct series *from)
{
	for (size_t n = 0; n < HISTORY_SECONDS; n++)
		add_value(&to->seconds[n], &from->seconds[n]);
	for (size_t n = 0; n < HISTORY_MINUTES; n++)
		add_value(&to->minutes[n], &from->minutes[n]);
	add_value(&to->now, &from->now);
	to->packets += from->packets;
	to->bytes += from->bytes;
	if (to->active < from->active)
		to->active = from->active;
}

static struct series *idlest(struct history *h)
{
	struct series *least = NULL;

	for (size_t n = 0; n < h->n; n++) {
		struct series *s = series_at(h, n);

		if (!s->is_other && s->part != RATES_TOTALS && (!least || s->busy < least->busy))
			least = s;
	}
	return least;
}

// Room for a series of this rate; SIZE_MAX: it is not among the busiest.
static size_t make_room(struct history *h, double packets)
{
	struct series *least;

	if (h->n_spare)
		return h->spare[--h->n_spare];
	if (h->replaced == REPLACED_MAX)
		return SIZE_MAX;
	least = idlest(h);
	if (!least || least->busy >= packets)
		return SIZE_MAX;
	merge(other_of(h, least->part), least);
	release(h, least);
	h->replaced++;
	return h->spare[--h->n_spare];
}

// ---- lines --------------------------------------------------------------------------------------

void history_lines_forget(struct history_lines *l)
{
	l->line.len = 0;
	l->skips = l->ended = false;
}

enum history_line history_lines_take(struct history_lines *l, size_t max, const char **output,
				     size_t *len)
{
	const char *end = memchr(*output, '\n', *len);
	size_t n = end ? (size_t)(end - *output) + 1 : *len;
	const char *part = *output;

	if (l->ended)
		history_lines_forget(l);
	*output += n;
	*len -= n;
	l->ended = end;
	if (l->skips)
		return HISTORY_LINE_OPEN;
	if (l->line.len + n > max) {
		l->line.len = 0;
		l->skips = true;
		return HISTORY_LINE_LONG;
	}
	text_addn(&l->line, part, n);
	return end ? HISTORY_LINE_WHOLE : HISTORY_LINE_OPEN;
}

// ---- documents ----------------------------------------------------------------------------------

static void clear_slots(struct history *h, uint64_t from, uint64_t second)
{
	for (uint64_t s = from; s <= second; s++) {
		h->seconds[s % HISTORY_SECONDS] = false;
		for (size_t n = 0; n < h->n; n++)
			series_at(h, n)->seconds[s % HISTORY_SECONDS] = none;
	}
}

static void clear_minutes(struct history *h, uint64_t from, uint64_t minute)
{
	for (uint64_t m = from; m <= minute; m++)
		h->minutes[m % HISTORY_MINUTES] = false;
	for (size_t n = 0; n < h->n; n++) {
		struct series *s = series_at(h, n);

		s->packets = s->bytes = 0;
		for (uint64_t m = from; m <= minute; m++)
			s->minutes[m % HISTORY_MINUTES] = none;
	}
	h->measured = 0;
}

static void forget_idle(struct history *h)
{
	for (size_t n = h->n; n-- > 0;)
		if (h->second - series_at(h, n)->active > IDLE_S)
			release(h, series_at(h, n));
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void advance(struct history *h, uint64_t second)
{
	uint64_t minute = second / MINUTE_S, before = h->second / MINUTE_S;

	clear_slots(h, later(h->second + 1, second + 1 - HISTORY_SECONDS), second);
	h->second = second;
	if (minute == before)
		return;
	clear_minutes(h, later(before + 1, minute + 1 - HISTORY_MINUTES), minute);
	forget_idle(h);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static uint64_t seconds_of(uint64_t ms)
{
	return (ms + SECOND_MS / 2) / SECOND_MS;
}

// The span of the document begins where the previous one ended. Both times are rounded.
static bool is_next(const struct history *h, uint64_t now_ms, uint64_t span_ms)
{
	return h->began && distance(h->now_ms + span_ms, now_ms) < SECOND_MS / 2;
}

// The number of the second in which the document ends. Documents that follow each other have
// successive numbers also if each ends about half a second after a full one, now before and now
// after the half.
static uint64_t second_of(const struct history *h, uint64_t now_ms, uint64_t span_ms, bool next)
{
	uint64_t second = seconds_of(now_ms) + HISTORY_MINUTES * MINUTE_S;
	uint64_t successor = h->second + seconds_of(span_ms);

	return next && distance(successor, second) <= 1 ? successor : later(second, h->second);
}

// A document stands for the seconds that its span has begun to cover, as far as no previous one
// does.
void history_begin(struct history *h, uint64_t now_ms, uint64_t span_ms, uint64_t wall_ms)
{
	bool next = is_next(h, now_ms, span_ms);
	uint64_t second = second_of(h, now_ms, span_ms, next), span = seconds_of(span_ms), since;

	if (!h->began)
		h->second = second - 1;
	h->began = true;
	h->now_ms = now_ms;
	since = second - h->second;
	h->covered = (unsigned)(next || span > since ? since : span);
	if (!h->covered)
		h->covered = 1;
	if (h->covered > HISTORY_SECONDS)
		h->covered = HISTORY_SECONDS;
	if (since)
		advance(h, second);
	h->wall_ms = wall_ms;
	h->replaced = 0;
	for (size_t n = 0; n < h->n; n++)
		series_at(h, n)->now = (struct history_value){0};
}

void history_set(struct history *h, enum rates_part part, const char *name,
		 struct history_value value)
{
	CLEANUP_FREE char *full = mem_printf("%s/%s", rates_about[part].array, name);
	struct series *s = find(h, full);
	size_t room;

	if (!s && value.packets <= 0 && part != RATES_TOTALS)
		return;
	if (!s) {
		room = make_room(h, value.packets);
		s = room == SIZE_MAX ? other_of(h, part) : take_room(h, room, part, full);
		if (room != SIZE_MAX)
			s->busy = value.packets;
	}
	s->now.packets += value.packets;
	s->now.bytes += value.bytes;
}

static void end_series(const struct history *h, struct series *s)
{
	double share = (double)h->covered / BUSY_S;

	for (unsigned n = 0; n < h->covered; n++)
		s->seconds[(h->second - n) % HISTORY_SECONDS] = s->now;
	s->packets += (double)s->now.packets * h->covered;
	s->bytes += (double)s->now.bytes * h->covered;
	s->minutes[h->second / MINUTE_S % HISTORY_MINUTES] = (struct history_value){
		(float)(s->packets / h->measured), (float)(s->bytes / h->measured)};
	s->busy += ((double)s->now.packets - s->busy) * (share < 1 ? share : 1);
	if (s->now.packets > 0 || s->part == RATES_TOTALS)
		s->active = h->second;
}

void history_end(struct history *h)
{
	h->measured += h->covered;
	h->minutes[h->second / MINUTE_S % HISTORY_MINUTES] = true;
	for (unsigned n = 0; n < h->covered; n++)
		h->seconds[(h->second - n) % HISTORY_SECONDS] = true;
	for (size_t n = 0; n < h->n; n++)
		end_series(h, series_at(h, n));
}

static struct history_value value_of(const struct json *row)
{
	return (struct history_value){(float)json_get_real(row, "packets_per_s"),
				      (float)json_get_real(row, "bytes_per_s")};
}

static void set_rows(struct history *h, enum rates_part part, const struct json *rows)
{
	const struct rates_about *about = &rates_about[part];

	for (size_t r = 0; r < json_length(rows); r++) {
		const struct json *row = json_at(rows, r);
		CLEANUP_TEXT struct text name = {0};

		for (size_t n = 0; n < about->named; n++) {
			const char *label = json_get_string(row, about->labels[n]);

			text_addf(&name, "%s%s", n ? "/" : "", label ? label : "");
		}
		history_set(h, part, text_get(&name), value_of(row));
	}
}

// The rows of a part, and the sum of those that the document leaves out.
static void set_part(struct history *h, enum rates_part part, const struct json *document)
{
	const char *array = rates_about[part].array;
	const struct json *rest = json_get(json_get(document, "others"), array);
	struct history_value value = value_of(rest);

	set_rows(h, part, json_get(document, array));
	if (rest)
		add_value(&other_of(h, part)->now, &value);
}

bool history_take(struct history *h, const struct json *document, uint64_t now_ms, uint64_t wall_ms)
{
	uint64_t span_us = json_get_u64(document, "span_us");

	if (!span_us)
		return false;
	history_begin(h, now_ms, span_us / 1000, wall_ms);
	for (enum rates_part part = 0; part < RATES_PARTS; part++)
		set_part(h, part, document);
	history_end(h);
	return true;
}

// ---- answers ------------------------------------------------------------------------------------

bool history_has(const struct history *h, const char *series)
{
	return find(h, series);
}

size_t history_count(const struct history *h)
{
	return HISTORY_SERIES - h->n_spare;
}

// The values of a series over a span; `rough` values of the ring are one.
struct history_view {
	const struct history *h;
	size_t n;      // values in the ring
	uint64_t last; // number of the last one
	unsigned rough;
	bool minutes;
};

static struct history_value value_at(const struct history_view *v, const struct series *s,
				     size_t at)
{
	uint64_t number = v->last + 1 - v->n + at;

	return v->minutes ? s->minutes[number % HISTORY_MINUTES]
			  : s->seconds[number % HISTORY_SECONDS];
}

// The mean of those that were measured.
static struct history_value mean_at(const struct history_view *v, const struct series *s, size_t at)
{
	struct history_value sum = none;
	unsigned measured = 0;

	for (unsigned n = 0; n < v->rough; n++) {
		struct history_value one = value_at(v, s, at * v->rough + n);

		measured += isnan(one.packets) ? 0 : 1;
		add_value(&sum, &one);
	}
	if (measured) {
		sum.packets /= (float)measured;
		sum.bytes /= (float)measured;
	}
	return sum;
}

static void write_series(const struct history_view *v, const struct series *s,
			 struct json_writer *to)
{
	json_write_object(to, NULL);
	json_write_string(to, "series", s->name);
	for (int bytes = 0; bytes < 2; bytes++) {
		json_write_array(to, bytes ? "bytes_per_s" : "packets_per_s");
		for (size_t at = 0; at < v->n / v->rough; at++) {
			struct history_value value = mean_at(v, s, at);

			json_write_rough(to, NULL, (double)(bytes ? value.bytes : value.packets));
		}
		json_write_end(to);
	}
	json_write_end(to);
}

static uint64_t packets_of(const struct history_view *v, const struct series *s)
{
	double sum = 0;

	for (size_t at = 0; at < v->n; at++) {
		struct history_value value = value_at(v, s, at);

		sum += isnan(value.packets) ? 0 : (double)value.packets * 1000;
	}
	return sum < 9e18 ? (uint64_t)sum : (uint64_t)9e18;
}

static void write_busiest(const struct history_view *v, struct json_writer *to)
{
	struct best best = {.max = HISTORY_BUSIEST};
	const struct history *h = v->h;

	for (size_t n = 0; n < h->n; n++) {
		const struct series *s = series_at(h, n);

		if (s->part == RATES_TOTALS)
			write_series(v, s, to);
		else
			best_offer(&best, UINT64_MAX - packets_of(v, s), n);
	}
	best_sort(&best);
	vec_each (&best.kept, item)
		write_series(v, series_at(h, item->at), to);
	best_free(&best);
}

void history_write(const struct history *h, enum history_span span, const char *const *series,
		   size_t n, struct json_writer *to)
{
	bool minutes = span == HISTORY_24H;
	const struct history_view v = {
		.h = h,
		.n = minutes ? HISTORY_MINUTES : HISTORY_SECONDS,
		.last = minutes ? h->second / MINUTE_S : h->second,
		.rough = minutes && !n ? ROUGH : 1,
		.minutes = minutes,
	};
	num_time_text end;

	json_write_u64(to, "interval_s", (minutes ? MINUTE_S : 1) * v.rough);
	if (h->began && num_format_time_ms(h->wall_ms, end))
		json_write_string(to, "end", end);
	else
		json_write_nothing(to, "end");
	json_write_array(to, "series");
	for (size_t s = 0; s < n; s++)
		if (history_has(h, series[s]))
			write_series(&v, find(h, series[s]), to);
	if (!n)
		write_busiest(&v, to);
	json_write_end(to);
}
