// SPDX-License-Identifier: GPL-2.0-only
// Sorts the samples by a key and sums groups of equal keys.
#include "ctl/control/sampled_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/sampled_packet.h"
#include "ctl/policy/names.h"

#define ALL_PACKETS 4294967296.0 // a share of 1
#define Z           1.96         // 95 of 100
#define FEW         3.0          // 95 of 100, where all samples are in one row

const struct sampled_about sampled_about[SAMPLED_BY_COUNT] = {
#define X(symbol, word, array, column) {word, array, column},
	SAMPLED_KEYS(X)
#undef X
};

void sampled_free(struct sampled_window *w)
{
	vec_free(&w->facts);
	w->first = 0;
}

void sampled_add(struct sampled_window *w, const struct sampled *sample)
{
	struct sampled_packet p;

	if (!sample->share)
		return;
	sampled_read(sample, &p);
	vec_push(&w->facts, ((struct sampled_fact){
				    .time_ns = sample->time_ns,
				    .share = sample->share,
				    .bytes = sample->bytes,
				    .from = p.fields.from,
				    .to = p.fields.to,
				    .ip = p.fields.ip,
				    .ports = p.fields.ports,
				    .tcp = p.fields.tcp,
				    .proto = p.fields.proto,
				    .flags = p.fields.flags,
				    .ttl = p.ttl,
				    .port = p.fields.to_port,
			    }));
}

// Samples of several CPUs are nearly in the order of their times: one that is a little too old is
// forgotten a little later.
void sampled_forget(struct sampled_window *w, uint64_t now_ns)
{
	while (w->first < w->facts.n && w->facts.at[w->first].time_ns + SAMPLED_WINDOW_NS < now_ns)
		w->first++;
	if (!w->first || w->first < w->facts.n / 2)
		return;
	w->facts.n -= w->first;
	memmove(w->facts.at, w->facts.at + w->first, w->facts.n * sizeof(*w->facts.at));
	w->first = 0;
}

size_t sampled_n(const struct sampled_window *w)
{
	return w->facts.n - w->first;
}

// ---- keys ---------------------------------------------------------------------------------------

// Equal for packets of one row; its first byte is KEY_NONE for a packet without such a field.
struct row_key {
	uint8_t at[20];
};

enum { KEY_NONE, KEY_NUMBER, KEY_4 = 4, KEY_6 = 6 };

static struct row_key key_number(uint32_t high, uint32_t low)
{
	return (struct row_key){.at = {KEY_NUMBER, (uint8_t)(high >> 8), (uint8_t)high,
				       (uint8_t)(low >> 24), (uint8_t)(low >> 16),
				       (uint8_t)(low >> 8), (uint8_t)low}};
}

static struct row_key key_address(const struct addr *a, uint8_t bits)
{
	struct prefix p = prefix_of(a, bits);
	struct row_key k = {.at = {a->family == 4 ? KEY_4 : KEY_6}};

	memcpy(k.at + 1, p.addr.bytes, 16);
	return k;
}

// Lengths of prefixes, the narrowest first.
static const uint8_t lengths[][2] = {{32, 64}, {24, 48}, {16, 48}};
#define LEVELS ARRAY_SIZE(lengths)

static size_t levels_of(enum sampled_by by)
{
	return by == SAMPLED_BY_SOURCE || by == SAMPLED_BY_DESTINATION ? LEVELS : 1;
}

enum geo_kind sampled_geo(enum sampled_by by)
{
	return by == SAMPLED_BY_COUNTRY ? GEO_COUNTRY : by == SAMPLED_BY_ASN ? GEO_ASN : GEO_NONE;
}

static bool find_place(const struct sampled_window *w, enum sampled_by by,
		       const struct sampled_fact *f, struct geo *ret)
{
	return w->place && w->place(w->place_ctx, sampled_geo(by), &f->from, ret);
}

static struct row_key key_place(const struct sampled_window *w, enum sampled_by by,
				const struct sampled_fact *f)
{
	struct geo geo = {0};

	if (!find_place(w, by, f, &geo))
		return key_number(1, 0);
	if (by == SAMPLED_BY_ASN)
		return key_number(0, geo.asn);
	return key_number(0, (uint32_t)(uint8_t)geo.country[0] << 8 | (uint8_t)geo.country[1]);
}

static struct row_key key_of(const struct sampled_window *w, const struct sampled_fact *f,
			     enum sampled_by by, size_t level)
{
	const struct addr *a = by == SAMPLED_BY_SOURCE ? &f->from : &f->to;

	if (by == SAMPLED_BY_LENGTH)
		return key_number(0, f->bytes);
	if (!f->ip)
		return (struct row_key){0};
	switch (by) {
	case SAMPLED_BY_PORT:
		return key_number(f->proto + (f->ports ? 256u : 0), f->ports ? f->port : 0);
	case SAMPLED_BY_TTL:
		return key_number(0, f->ttl);
	case SAMPLED_BY_FLAGS:
		return f->tcp ? key_number(0, f->flags) : (struct row_key){0};
	case SAMPLED_BY_COUNTRY:
	case SAMPLED_BY_ASN:
		return key_place(w, by, f);
	default:
		return key_address(a, lengths[level][a->family != 4]);
	}
}

// ---- texts --------------------------------------------------------------------------------------

static void flags_text(char *text, size_t size, uint8_t flags)
{
	size_t used = 0;

	snprintf(text, size, "none");
	for (unsigned bit = 0; bit < 8; bit++)
		if (flags & 1u << bit)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "",
						 names_of_flag((uint8_t)(1u << bit)));
}

static void port_text(char *text, size_t size, const struct sampled_fact *f)
{
	const char *name = names_of_proto(f->proto);

	if (f->ports)
		snprintf(text, size, "%s %u", name, f->port);
	else if (name)
		snprintf(text, size, "%s", name);
	else
		snprintf(text, size, "proto %u", f->proto);
}

static void place_text(char *text, size_t size, const struct sampled_window *w, enum sampled_by by,
		       const struct sampled_fact *f)
{
	struct geo geo = {0};

	if (!find_place(w, by, f, &geo))
		snprintf(text, size, "(unknown)");
	else if (by == SAMPLED_BY_ASN)
		snprintf(text, size, "%u", geo.asn);
	else
		snprintf(text, size, "%s", geo.country);
}

static void row_text(struct sampled_row *row, const struct sampled_window *w,
		     const struct sampled_fact *f, enum sampled_by by, size_t level)
{
	const struct addr *a = by == SAMPLED_BY_SOURCE ? &f->from : &f->to;
	addr_text address;
	struct prefix p;

	if (by == SAMPLED_BY_LENGTH) {
		snprintf(row->text, sizeof(row->text), "%u", f->bytes);
	} else if (!f->ip) {
		snprintf(row->text, sizeof(row->text), "(not IP)");
	} else if (sampled_geo(by)) {
		place_text(row->text, sizeof(row->text), w, by, f);
	} else if (by == SAMPLED_BY_PORT) {
		port_text(row->text, sizeof(row->text), f);
	} else if (by == SAMPLED_BY_TTL) {
		snprintf(row->text, sizeof(row->text), "%u", f->ttl);
	} else if (by == SAMPLED_BY_FLAGS) {
		if (f->tcp)
			flags_text(row->text, sizeof(row->text), f->flags);
		else
			snprintf(row->text, sizeof(row->text), "(not TCP)");
	} else {
		p = prefix_of(a, lengths[level][a->family != 4]);
		snprintf(row->text, sizeof(row->text), "%s", prefix_format(&p, address));
	}
}

// ---- sums ---------------------------------------------------------------------------------------

// Sums over samples with the weight w = 1 / share: w, and the variance (1 - share) w².
struct sum {
	double weight, variance;
};

static void sum_add(struct sum *s, const struct sampled_fact *f)
{
	double share = f->share == UINT32_MAX ? 1 : f->share / ALL_PACKETS;

	s->weight += 1 / share;
	s->variance += (1 - share) / share / share;
}

// The share of a row is a ratio of two estimates (Cochran, Sampling Techniques, chapter 2): a
// sample in the row moves it by its weight times 1 - p, another one by its weight times p. If
// nearly all samples are in the row, that is too small: then as for no sample among n, 3 / n.
static double error_of(const struct sum *row, const struct sum *all, double p)
{
	double in = row->variance * (1 - p) * (1 - p);
	double out = (all->variance - row->variance) * p * p;
	double error = Z * sqrt(in + out) / all->weight;
	double few = FEW * all->variance / all->weight / all->weight;

	return error > few ? error : few;
}

struct keyed_fact {
	struct row_key key;
	const struct sampled_fact *fact;
};

static int compare_items(const void *a, const void *b)
{
	return memcmp(((const struct keyed_fact *)a)->key.at,
		      ((const struct keyed_fact *)b)->key.at, sizeof(struct row_key));
}

static int compare_rows(const void *a, const void *b)
{
	const struct sampled_row *x = a, *y = b;

	if (x->packets != y->packets)
		return x->packets < y->packets ? 1 : -1;
	return strcmp(x->text, y->text);
}

struct keyed_group {
	const struct keyed_fact *first;
	size_t n;
};

// The rows of a window by one key.
struct summing {
	const struct sampled_window *w;
	enum sampled_by by;
	struct keyed_fact *items;
	size_t n;
	struct sum all;
	struct sampled_list *ret;
};

// A prefix that has only one narrower prefix, which is a row by itself.
static bool is_repeated(const struct summing *s, const struct keyed_group *g, size_t level)
{
	struct row_key first, last;

	if (!level || g->first->key.at[0] == KEY_NONE)
		return level != 0;
	// The last two lengths of IPv6 are the same.
	if (g->first->key.at[0] == KEY_6 && level + 1 == LEVELS)
		return true;
	first = key_of(s->w, g->first->fact, s->by, level - 1);
	for (size_t n = 1; n < g->n; n++) {
		last = key_of(s->w, g->first[n].fact, s->by, level - 1);
		if (memcmp(&first, &last, sizeof(first)) != 0)
			return false;
	}
	return true;
}

static void add_row(struct summing *s, const struct keyed_group *g, size_t level)
{
	struct sampled_row row = {.samples = g->n};
	struct sum sum = {0};

	for (size_t n = 0; n < g->n; n++) {
		const struct sampled_fact *f = g->first[n].fact;
		struct sum one = {0};

		sum_add(&one, f);
		sum_add(&sum, f);
		row.bytes += one.weight * f->bytes;
	}
	if (g->n < SAMPLED_LEAST && !(s->w->exact && sum.variance == 0))
		return;
	if (is_repeated(s, g, level))
		return;
	row.packets = sum.weight;
	row.share = sum.weight / s->all.weight;
	row.error = error_of(&sum, &s->all, row.share);
	row_text(&row, s->w, g->first->fact, s->by, level);
	vec_push(&s->ret->rows, row);
}

static void add_level(struct summing *s, size_t level)
{
	for (size_t i = 0; i < s->n; i++)
		s->items[i].key = key_of(s->w, s->items[i].fact, s->by, level);
	qsort(s->items, s->n, sizeof(*s->items), compare_items);
	for (size_t i = 0; i < s->n;) {
		struct keyed_group g = {.first = &s->items[i]};

		while (i + g.n < s->n && !compare_items(&s->items[i], &s->items[i + g.n]))
			g.n++;
		add_row(s, &g, level);
		i += g.n;
	}
}

void sampled_rows(const struct sampled_window *w, enum sampled_by by, struct sampled_list *ret)
{
	size_t n = sampled_n(w);
	CLEANUP_FREE struct keyed_fact *items = mem_zalloc(n + 1, sizeof(*items));
	struct summing s = {.w = w, .by = by, .items = items, .n = n, .ret = ret};

	*ret = (struct sampled_list){0};
	for (size_t i = 0; i < n; i++) {
		items[i].fact = &w->facts.at[w->first + i];
		sum_add(&s.all, items[i].fact);
	}
	for (size_t level = 0; level < levels_of(by); level++)
		add_level(&s, level);
	if (ret->rows.n)
		qsort(ret->rows.at, ret->rows.n, sizeof(*ret->rows.at), compare_rows);
}

void sampled_list_free(struct sampled_list *l)
{
	vec_free(&l->rows);
}

uint32_t sampled_share(double packets_per_s)
{
	double share = packets_per_s > SAMPLED_RATE ? SAMPLED_RATE / packets_per_s : 1;

	share *= ALL_PACKETS;
	return share >= UINT32_MAX ? UINT32_MAX : share < 1 ? 1 : (uint32_t)share;
}
