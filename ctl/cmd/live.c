// SPDX-License-Identifier: GPL-2.0-only
// weir block --live: block, print counters each second, unblock at the end.
//
// The entries expire after seconds and are renewed while the command runs. If it is killed, they
// expire.
#include "ctl/cmd/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/cmd/show.h"
#include "ctl/cmd/stop.h"
#include "ctl/control/rates.h"

#define LEASE_S 10
#define RENEW_S 3

struct live {
	struct context *ctx;
	struct entry_change *change;
	char origin[32]; // only its references are removed at the end
	struct rates_list rates;
	VEC(struct counter) counts; // of its rows
};

static void fail(void *err, size_t which, const struct err *why)
{
	*(struct err *)err = *why;
}

static int apply(struct live *l, struct err *err)
{
	CLEANUP_CHANGED struct entries_changed changed = {0};
	struct err why = {0};
	struct entry_changes changes = {
		.instance = l->ctx->instance,
		.command = l->ctx->line,
		.at = &l->change,
		.n = 1,
		.failed = fail,
		.ctx = &why,
	};
	int code = entries_change(&changes, &changed, err);

	if (code || !why.kind)
		return code;
	*err = why;
	return -EINVAL;
}

static int unblock(struct live *l, struct err *err)
{
	l->change->removes = true;
	return apply(l, err);
}

static void read_entry(struct live *l, const char *name, const struct prefix *p,
		       const struct overlay_entry *entry)
{
	addr_text text;

	rates_add(&l->rates, prefix_format(p, text), kind_key(entry->kind), name, 0);
	vec_push(&l->counts, ((struct counter){entry->hits.packets, entry->hits.bytes}));
}

static int read_prefix(struct live *l, const struct instance *i, const char *name,
		       const struct prefix *p, struct err *err)
{
	struct overlay_entry entries[OVERLAY_KINDS];
	size_t n = 0;
	int code = overlay_read_one(i, p, entries, &n, err);

	if (code)
		return code;
	for (size_t e = 0; e < n; e++)
		if (l->change->intent.kinds & 1u << entries[e].kind)
			read_entry(l, name, p, &entries[e]);
	return 0;
}

static int read_ranges(struct live *l, const struct instance *i, const char *name,
		       const struct geo_ranges *ranges, struct err *err)
{
	vec_each (&ranges->prefixes, prefix) {
		int code = read_prefix(l, i, name, prefix, err);

		if (code)
			return code;
	}
	return 0;
}

static int read_item(struct live *l, const struct instance *i, const struct item *item,
		     struct err *err)
{
	const struct dns_answer *answer;
	const struct geo_ranges *ranges;

	if (!item->name)
		return read_prefix(l, i, "", &item->prefix, err);
	if ((ranges = targets_ranges(&l->change->targets, item->name)))
		return read_ranges(l, i, item->name, ranges, err);
	answer = targets_answer(&l->change->targets, item->name);
	for (size_t a = 0; answer && a < answer->n; a++) {
		struct prefix host =
			prefix_of(&answer->addrs[a], (uint8_t)addr_bits(&answer->addrs[a]));
		int code = read_prefix(l, i, item->name, &host, err);

		if (code)
			return code;
	}
	return 0;
}

static int read_items(struct live *l, const struct instance *i, struct err *err)
{
	vec_each (&l->change->targets.items.items, item) {
		int code = read_item(l, i, item, err);

		if (code)
			return code;
	}
	return 0;
}

// The rates are those since the previous reading.
static int read_all(struct live *l, const struct instance *i, struct err *err)
{
	struct rates_list before = l->rates;
	uint64_t began_ns = time_ns(CLOCK_MONOTONIC);
	int code;

	l->rates = (struct rates_list){0};
	l->counts.n = 0;
	code = read_items(l, i, err);
	rates_inherit(&l->rates, &before, RATES_ENTRIES);
	rates_free(&before);
	rates_at(&l->rates, began_ns + (time_ns(CLOCK_MONOTONIC) - began_ns) / 2);
	for (size_t n = 0; n < l->rates.n; n++)
		rates_count(&l->rates.at[n], &l->counts.at[n]);
	return code;
}

static void show_rate(struct out *o, const char *key, const char *column, double rate)
{
	num_text text;

	out_set_real(o, key, rate);
	out_cell_as(o, NULL, column, num_format_short(rate, text), 0);
}

static void show_entry(const struct live *l, const struct rates_row *row)
{
	struct out *o = l->ctx->out;
	uint64_t span_ns = l->rates.span_ns;

	out_row(o);
	out_cell(o, "name", "NAME", row->labels[2] ? row->labels[2] : "");
	out_cell(o, "address", "ADDRESS", row->labels[0]);
	out_cell(o, "kind", "KIND", row->labels[1]);
	out_cell_u64(o, "packets", "PACKETS", row->now.packets);
	out_cell_u64(o, "bytes", "BYTES", row->now.bytes);
	show_rate(o, "packets_per_s", "PACKETS/S", rates_of(row->moved.packets, span_ns));
	show_rate(o, "bytes_per_s", "BYTES/S", rates_of(row->moved.bytes, span_ns));
}

static void show(const struct live *l, unsigned second)
{
	struct out *o = l->ctx->out;
	num_text up;

	out_set_u64(o, "seconds", second);
	out_set_u64(o, "span_us", l->rates.span_ns / 1000);
	if (isatty(STDOUT_FILENO))
		out_clear(o);
	else if (second > 1)
		out_line(o, "%s", "");
	out_line(o, "blocked for %s", num_format_duration_ms(second * 1000ull, up));
	out_table(o, "entries");
	vec_each (&l->rates, row)
		show_entry(l, row);
	out_table_end(o);
	if (out_is_json(o))
		out_next_document(o);
	else
		out_flush(o);
}

static int loop(struct live *l, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	const struct timespec second = {.tv_sec = 1};
	int code = instance_open(l->ctx->instance, &i, err);

	if (code)
		return code;
	if ((code = read_all(l, i, err)))
		return code;
	for (unsigned n = 1; !stop_asked; n++) {
		nanosleep(&second, NULL);
		if (stop_asked)
			break;
		if ((code = read_all(l, i, err)))
			return code;
		show(l, n);
		if (n % RENEW_S == 0 && (code = apply(l, err)))
			return code;
	}
	return 0;
}

static void live_free(struct live *l)
{
	rates_free(&l->rates);
	vec_free(&l->counts);
}

int block_live(struct context *ctx, struct entry_change *change, struct err *err)
{
	CLEANUP(live_free) struct live l = {.ctx = ctx, .change = change};
	struct err end = {0}, why = {0};
	int code, open, unblocked;

	snprintf(l.origin, sizeof(l.origin), "live-%d", getpid());
	change->intent.origin = l.origin;
	change->lease_s = LEASE_S;
	stop_catch_lost();
	if ((code = apply(&l, err)))
		return code;
	if (!ctx->quiet && !ctx->json)
		out_line(ctx->out, "blocking until ^C");
	out_flush(ctx->out);
	if ((open = show_open_in(ctx->instance, NULL, &why)))
		log_warning("%s", why.text);
	code = loop(&l, err);
	unblocked = unblock(&l, &end);
	if (code)
		return code;
	if (unblocked) {
		*err = end;
		return unblocked;
	}
	out_set_bool(ctx->out, "end", true); // the last document of the stream
	if (!ctx->quiet)
		out_line(ctx->out, "unblocked");
	if (open)
		*err = why;
	return open;
}
