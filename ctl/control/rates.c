// SPDX-License-Identifier: GPL-2.0-only
// Compares counters with the previous reading.
#include "ctl/control/rates.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"

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
	char cut[RATES_LABEL_MAX + 1];

	if (!label || strlen(label) <= RATES_LABEL_MAX)
		return label ? mem_strdup(label) : NULL;
	text_put_shown(cut, sizeof(cut), label);
	return mem_strdup(cut);
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

// A row, and how many of its labels name it.
struct named_row {
	const struct rates_row *row;
	size_t named;
};

static int compare_rows(const void *a, const void *b)
{
	const struct named_row *one = a, *other = b;
	const struct rates_row *x = one->row, *y = other->row;

	for (size_t n = 0; n < one->named; n++) {
		const char *p = x->labels[n] ? x->labels[n] : "",
			   *q = y->labels[n] ? y->labels[n] : "";
		int order = strcmp(p, q);

		if (order)
			return order;
	}
	return x->id < y->id ? -1 : x->id > y->id;
}

static struct named_row *sorted(const struct rates_list *l, size_t named)
{
	struct named_row *rows = mem_zalloc(l->n + 1, sizeof(*rows));

	for (size_t n = 0; n < l->n; n++)
		rows[n] = (struct named_row){&l->at[n], named};
	qsort(rows, l->n, sizeof(*rows), compare_rows);
	return rows;
}

void rates_inherit(struct rates_list *l, const struct rates_list *from, enum rates_part part)
{
	size_t named = rates_about[part].named;
	CLEANUP_FREE struct named_row *rows = sorted(from, named);

	vec_each (l, row) {
		const struct named_row *same = bsearch(&(struct named_row){row, named}, rows,
						       from->n, sizeof(*rows), compare_rows);

		if (!same)
			continue;
		row->now = same->row->now;
		row->known = same->row->known;
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
	if (e->walked) {
		vec_free(&e->before);
		memcpy(&e->before, &e->now, sizeof(e->before));
		memset(&e->now, 0, sizeof(e->now));
	}
	e->known = e->known || e->walked;
	e->walked = false;
	e->now.n = 0;
	e->at = 0;
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
		 const struct counter *count, bool doubted)
{
	struct rates_entry one = {.family = p->addr.family,
				  .len = p->len,
				  .kind = kind,
				  .doubted = doubted,
				  .count = *count};

	memcpy(one.bytes, p->addr.bytes, sizeof(one.bytes));
	vec_push(&e->now, one);
}

// The same entry in the previous walk; NULL: it is new, or had no packet until then.
static const struct rates_entry *find_before(struct rates_entries *e, const struct prefix *p,
					     uint8_t kind)
{
	int order = -1;

	while (e->at < e->before.n && (order = compare_entry(&e->before.at[e->at], p, kind)) < 0)
		e->at++;
	return e->at < e->before.n && !order ? &e->before.at[e->at] : NULL;
}

struct counter rates_entries_next(struct rates_entries *e, const struct prefix *p, uint8_t kind,
				  const struct counter *now)
{
	const struct rates_entry *before = find_before(e, p, kind);

	if (before && !before->doubted &&
	    (now->packets < before->count.packets || now->bytes < before->count.bytes)) {
		keep(e, p, kind, &before->count, true);
		return (struct counter){0};
	}
	if (now->packets)
		keep(e, p, kind, now, false);
	if (!e->known)
		return (struct counter){0};
	return before ? rates_moved(&before->count, now) : *now;
}
