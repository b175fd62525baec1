// SPDX-License-Identifier: GPL-2.0-only
// Prints the rates and shares of samples.
#include "ctl/cmd/top_by.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/cmd/stop.h"
#include "ctl/cmd/top_table.h"
#include "ctl/control/sampled_rows.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/samples.h"

#define POLL_NS     100000000ull
#define DOCUMENT_NS 1000000000ull
#define POLLS       10 // the share follows the busiest poll of so many
#define FOR_MS      3000
#define FOR_LEAST   1000
#define FOR_MOST    86400000

struct top_by {
	struct context *ctx;
	bool by[SAMPLED_BY_COUNT];
	size_t most;           // rows of a table
	uint64_t for_ns, left; // UINT64_MAX: without end; documents
	struct instance *instance;
	struct samples *samples;
	struct sampled_window window;
	uint64_t start_ns;           // since when packets are sampled; 0: not yet
	uint64_t polled_ns, packets; // time and counted packets at the last poll
	double rates[POLLS];
	size_t polls;
	uint32_t share;
	uint64_t lost, lost_before;
};

static void top_by_free(struct top_by *t)
{
	samples_close(t->samples);
	instance_free(t->instance);
	sampled_free(&t->window);
}

// ---- options ------------------------------------------------------------------------------------

static int read_key(struct top_by *t, const char *word, size_t len, struct err *err)
{
	CLEANUP_TEXT struct text known = {0};

	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++) {
		const char *name = sampled_about[by].word;

		if (strlen(name) == len && !memcmp(word, name, len)) {
			t->by[by] = true;
			return 0;
		}
		text_addf(&known, "%s%s", by ? ", " : "", name);
	}
	err_input(err, "--by '%.*s' is not a key", (int)len, word);
	return err_hint(err, "the keys are %s", text_get(&known));
}

static int read_keys(struct top_by *t, const char *words, struct err *err)
{
	for (;;) {
		size_t len = strcspn(words, ",");
		int code = read_key(t, words, len, err);

		if (code || !words[len])
			return code;
		words += len + 1;
	}
}

// Options of the other tables.
static int refuse_others(const struct args *args, struct err *err)
{
	static const char *const others[] = {"every", "all", "batch"};

	for (size_t n = 0; n < ARRAY_SIZE(others); n++)
		if (args_has(args, others[n]))
			return err_input(err, "--%s cannot be combined with --by", others[n]);
	return 0;
}

static int read_options(struct top_by *t, const struct args *args, struct err *err)
{
	const char *length = args_value(args, "for");
	uint64_t ms = FOR_MS;
	int code = refuse_others(args, err);

	if (code || (code = read_keys(t, args_value(args, "by"), err)))
		return code;
	t->left = UINT64_MAX;
	if ((code = top_read_counts(args, &t->most, &t->left, err)))
		return code;
	if (length && num_parse_time_ms(length, strlen(length), FOR_LEAST, FOR_MOST, &ms)) {
		err_input(err, "--for '%s' is not a time from 1s to 1d", length);
		return err_hint(err, "for example --for 10s");
	}
	t->for_ns = t->ctx->json && !length ? UINT64_MAX : ms * 1000000;
	return 0;
}

// ---- samples ------------------------------------------------------------------------------------

static void keep(void *ctx, const struct sampled *sample)
{
	struct top_by *t = ctx;

	sampled_add(&t->window, sample);
}

static uint64_t packets_of(const struct counters *c)
{
	uint64_t sum = 0;

	for (enum weir_reason r = 0; r < WEIR_REASON_COUNT; r++)
		sum += counters_reason(c, r).packets;
	return sum;
}

// The busiest of the last polls decides: the ring must not be full when a flood begins.
static double busiest(const struct top_by *t)
{
	double most = 0;

	for (size_t n = 0; n < POLLS; n++)
		most = t->rates[n] > most ? t->rates[n] : most;
	return most;
}

// Takes what has arrived, and sets the share for the packets that arrive now.
static int poll_samples(struct top_by *t, struct err *err)
{
	CLEANUP_FREE struct counters *now = mem_new(struct counters);
	uint64_t at_ns, packets;
	int code = samples_take(t->samples, err);

	if (code < 0 || (code = counters_read(t->instance, now, err)))
		return code;
	at_ns = time_ns(CLOCK_MONOTONIC);
	packets = packets_of(now);
	t->lost = now->tally[TALLY_SAMPLES_LOST];
	if (t->polled_ns && at_ns > t->polled_ns)
		t->rates[t->polls++ % POLLS] =
			(double)(packets - t->packets) * 1e9 / (double)(at_ns - t->polled_ns);
	t->polled_ns = at_ns;
	t->packets = packets;
	if (!t->polls)
		return 0;
	if (!t->start_ns) {
		t->start_ns = at_ns;
		t->lost_before = t->lost;
	}
	t->share = sampled_share(busiest(t));
	sampled_forget(&t->window, at_ns);
	return samples_want(t->samples, t->share, err);
}

// ---- output -------------------------------------------------------------------------------------

static void show_row(struct out *o, const struct sampled_about *about,
		     const struct sampled_row *row, double seconds)
{
	char share[32];

	out_row(o);
	out_cell(o, about->word, about->column, row->text);
	top_show_rate(o, "packets_per_s", "PACKETS/S", row->packets / seconds);
	top_show_rate(o, "bytes_per_s", "BYTES/S", row->bytes / seconds);
	out_set_real(o, "share_percent", row->share * 100);
	out_set_real(o, "error_percent", row->error * 100);
	out_set_u64(o, "samples", row->samples);
	snprintf(share, sizeof(share), "%.1f %% ±%.1f", row->share * 100, row->error * 100);
	out_cell_as(o, NULL, "SHARE", share, 0);
}

static void show_key(struct top_by *t, enum sampled_by by, double seconds, bool first)
{
	const struct sampled_about *about = &sampled_about[by];
	struct out *o = t->ctx->out;
	struct sampled_list l;

	sampled_rows(&t->window, by, &l);
	if (!first && l.rows.n)
		out_line(o, "%s", "");
	out_table(o, about->array);
	for (size_t n = 0; n < l.rows.n && n < t->most; n++)
		show_row(o, about, &l.rows.at[n], seconds);
	out_table_end(o);
	sampled_list_free(&l);
}

static void show(struct top_by *t)
{
	uint64_t span_ns = t->polled_ns - t->start_ns;
	uint64_t lost = t->lost - t->lost_before;
	size_t n = sampled_n(&t->window);
	struct out *o = t->ctx->out;
	bool first = true;

	span_ns = span_ns < SAMPLED_WINDOW_NS ? span_ns : SAMPLED_WINDOW_NS;
	out_set_moment(o, time_ms(CLOCK_REALTIME));
	out_set_string(o, "instance", t->ctx->instance);
	out_set_u64(o, "span_us", span_ns / 1000);
	out_set_u64(o, "samples", n);
	out_set_real(o, "sampled_percent", t->share / 4294967296.0 * 100);
	out_set_u64(o, "lost", lost);
	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++) {
		if (!t->by[by])
			continue;
		show_key(t, by, (double)span_ns / 1e9, first);
		first = false;
	}
	if (n < SAMPLED_LEAST)
		out_line(o, "%zu %s sampled: too few", n,
			 num_plural(n, "packet was", "packets were"));
	if (lost)
		out_line(o, "%llu %s lost: the rates are too low", (unsigned long long)lost,
			 num_plural(lost, "sample was", "samples were"));
	if (out_is_json(o))
		out_next_document(o);
	else
		out_flush(o);
}

static int poll_until(struct top_by *t, uint64_t end_ns, struct err *err)
{
	while (t->polled_ns < end_ns) {
		int code;

		stop_sleep_until(time_ns(CLOCK_MONOTONIC) + POLL_NS);
		if (stop_asked)
			return 0;
		if ((code = poll_samples(t, err)))
			return code;
	}
	return 0;
}

// Documents each second, or one table.
static int loop(struct top_by *t, struct err *err)
{
	uint64_t begin_ns = time_ns(CLOCK_MONOTONIC), next_ns = begin_ns;
	int code = poll_samples(t, err);

	if (code)
		return code;
	while (!stop_asked && t->left && !out_failed(t->ctx->out)) {
		next_ns += t->ctx->json || t->left != UINT64_MAX ? DOCUMENT_NS : t->for_ns;
		code = poll_until(t, next_ns, err);
		if (code || stop_asked)
			return code;
		show(t);
		t->left -= t->left != UINT64_MAX;
		if (t->for_ns != UINT64_MAX && next_ns - begin_ns >= t->for_ns)
			return 0;
	}
	return 0;
}

int top_by_run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(top_by_free) struct top_by t = {.ctx = ctx};
	int code = read_options(&t, args, err);

	if (code || (code = bpffs_ready(err)) ||
	    (code = instance_open(ctx->instance, &t.instance, err)) ||
	    (code = samples_open(t.instance, keep, &t, &t.samples, err)))
		return code;
	stop_catch();
	if ((code = loop(&t, err)))
		return code;
	if (ctx->json) // the last document of the stream
		out_set_bool(ctx->out, "end", true);
	return 0;
}
