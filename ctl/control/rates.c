// SPDX-License-Identifier: GPL-2.0-only
// Compares counters with the previous reading.
#include "ctl/control/rates.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

const struct rates_about rates_about[RATES_PARTS] = {
	[RATES_TOTALS] = {"totals", {"total"}, 1},
	[RATES_INTERFACES] = {"interfaces", {"interface", "reason", "verdict"}, 2},
	[RATES_RULES] = {"rules", {"rule", "place", "action"}, 1},
	[RATES_SERVICES] = {"services", {"service"}, 1},
	[RATES_BACKENDS] = {"backends", {"service", "backend"}, 2},
	[RATES_ORIGINS] = {"origins", {"origin", "verb"}, 2},
	[RATES_LISTS] = {"lists", {"list", "origin", "verb"}, 3},
	[RATES_ENTRIES] = {"entries", {"address", "kind"}, 2},
};

void rates_free(struct rates_list *l)
{
	vec_each (l, row)
		for (size_t n = 0; n < RATES_LABELS; n++)
			free(row->labels[n]);
	vec_free(l);
	*l = (struct rates_list){0};
}

double rates_of(uint64_t count, uint64_t span_ns)
{
	return span_ns ? (double)count * 1e9 / (double)span_ns : 0;
}

struct counter rates_moved(const struct counter *before, const struct counter *now)
{
	if (now->packets < before->packets || now->bytes < before->bytes)
		return *now;
	return (struct counter){
		.packets = now->packets - before->packets,
		.bytes = now->bytes - before->bytes,
	};
}

static char *copy_label(const char *label)
{
	return label ? mem_strdup(label) : NULL;
}

struct rates_row *rates_add(struct rates_list *l, const char *first, const char *second,
			    const char *third, uint64_t id)
{
	vec_push(l, ((struct rates_row){
			    .labels = {copy_label(first), copy_label(second), copy_label(third)},
			    .id = id,
		    }));
	return vec_last(l);
}

void rates_at(struct rates_list *l, uint64_t now_ns)
{
	l->span_ns = l->now_ns && now_ns > l->now_ns ? now_ns - l->now_ns : 0;
	l->now_ns = now_ns;
}

void rates_count(struct rates_row *row, const struct counter *now)
{
	row->moved = row->known ? rates_moved(&row->now, now) : (struct counter){0};
	row->now = *now;
	row->known = true;
}

void rates_clear(struct rates_list *l)
{
	vec_each (l, row)
		row->now = row->moved = (struct counter){0};
}

void rates_sum(struct rates_row *row, const struct rates_row *part)
{
	row->now.packets += part->now.packets;
	row->now.bytes += part->now.bytes;
	row->moved.packets += part->moved.packets;
	row->moved.bytes += part->moved.bytes;
	row->known = true;
}

// ---- another list of the same counters ----------------------------------------------------------

static int compare_rows(const void *a, const void *b)
{
	const struct rates_row *x = *(struct rates_row *const *)a;
	const struct rates_row *y = *(struct rates_row *const *)b;

	for (size_t n = 0; n < RATES_LABELS; n++) {
		const char *p = x->labels[n] ? x->labels[n] : "",
			   *q = y->labels[n] ? y->labels[n] : "";
		int order = strcmp(p, q);

		if (order)
			return order;
	}
	return x->id < y->id ? -1 : x->id > y->id;
}

static struct rates_row **sorted(const struct rates_list *l)
{
	struct rates_row **rows = mem_zalloc(l->n + 1, sizeof(struct rates_row *));

	for (size_t n = 0; n < l->n; n++)
		rows[n] = &l->at[n];
	qsort(rows, l->n, sizeof(struct rates_row *), compare_rows);
	return rows;
}

void rates_inherit(struct rates_list *l, const struct rates_list *from)
{
	CLEANUP_FREE struct rates_row **rows = sorted(from);

	vec_each (l, row) {
		struct rates_row **same =
			bsearch(&row, rows, from->n, sizeof(struct rates_row *), compare_rows);

		if (!same)
			continue;
		row->now = (*same)->now;
		row->known = (*same)->known;
	}
	l->now_ns = from->now_ns;
}

// ---- entries ------------------------------------------------------------------------------------

void rates_entries_free(struct rates_entries *e)
{
	vec_free(&e->before);
	vec_free(&e->now);
	*e = (struct rates_entries){0};
}

void rates_entries_begin(struct rates_entries *e)
{
	struct rates_entries fresh = {.known = e->walked};

	memcpy(&fresh.before, &e->now, sizeof(fresh.before));
	vec_free(&e->before);
	*e = fresh;
}

void rates_entries_end(struct rates_entries *e)
{
	e->walked = true;
}

static struct prefix prefix_of_entry(const struct rates_entry *e)
{
	struct addr a = {.family = e->family};

	memcpy(a.bytes, e->bytes, sizeof(e->bytes));
	return prefix_of(&a, e->len);
}

static int compare_entry(const struct rates_entry *e, const struct prefix *p, uint8_t kind)
{
	struct prefix mine = prefix_of_entry(e);
	int order = prefix_compare(&mine, p);

	return order ? order : (int)e->kind - kind;
}

static void keep(struct rates_entries *e, const struct prefix *p, uint8_t kind,
		 const struct counter *count)
{
	struct rates_entry one = {
		.family = p->addr.family, .len = p->len, .kind = kind, .count = *count};

	memcpy(one.bytes, p->addr.bytes, sizeof(one.bytes));
	vec_push(&e->now, one);
}

struct counter rates_entries_next(struct rates_entries *e, const struct prefix *p, uint8_t kind,
				  const struct counter *now)
{
	int order = -1;

	if (now->packets)
		keep(e, p, kind, now);
	while (e->at < e->before.n && (order = compare_entry(&e->before.at[e->at], p, kind)) < 0)
		e->at++;
	if (!e->known)
		return (struct counter){0};
	if (e->at < e->before.n && !order)
		return rates_moved(&e->before.at[e->at].count, now);
	return *now; // new, or without a packet until then
}
