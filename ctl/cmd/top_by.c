// SPDX-License-Identifier: GPL-2.0-only
// Prints the rates and shares of samples.
#include "ctl/cmd/top_by.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/cmd/stop.h"
#include "ctl/cmd/top_keys.h"
#include "ctl/cmd/top_samples.h"
#include "ctl/cmd/top_table.h"
#include "ctl/control/sampling.h"
#include "ctl/datapath/bpffs.h"

#define DOCUMENT_NS 1000000000ull
#define SILENT_NS   10000000000ull // until an agent counts as stuck
#define FOR_MS      3000
#define FOR_LEAST   1000
#define FOR_MOST    86400000

struct top_by {
	struct context *ctx;
	struct top_keys keys;
	uint64_t for_ns, left; // UINT64_MAX: without end; documents
	struct top_samples *samples;
	uint64_t shown; // number of the reading
};

static void top_by_free(struct top_by *t)
{
	top_samples_close(t->samples);
	top_keys_free(&t->keys);
}

// ---- options ------------------------------------------------------------------------------------

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

	if (code || (code = top_keys_read(&t->keys, args_value(args, "by"), err)))
		return code;
	t->left = UINT64_MAX;
	if ((code = top_read_counts(args, &t->keys.most, &t->left, err)))
		return code;
	if (length && num_parse_time_ms(length, strlen(length), FOR_LEAST, FOR_MOST, &ms)) {
		err_input(err, "--for '%s' is not a time from 1s to 1d", length);
		return err_hint(err, "for example --for 10s");
	}
	t->for_ns = t->ctx->json && !length ? UINT64_MAX : ms * 1000000;
	return 0;
}

// ---- output -------------------------------------------------------------------------------------

static void show_rest(const struct top_by *t, const struct sampled_reading *r)
{
	struct out *o = t->ctx->out;

	if (r->samples < SAMPLED_LEAST)
		out_line(o, "%llu %s sampled: too few", (unsigned long long)r->samples,
			 num_plural(r->samples, "packet was", "packets were"));
	if (r->lost)
		out_line(o, "%llu %s lost: the rates are too low", (unsigned long long)r->lost,
			 num_plural(r->lost, "sample was", "samples were"));
}

static void show(struct top_by *t, const struct sampled_reading *r)
{
	const struct top_keys_view view = {.seconds = (double)r->span_us / 1e6};
	struct out *o = t->ctx->out;

	out_set_moment(o, time_ms(CLOCK_REALTIME));
	out_set_string(o, "instance", t->ctx->instance);
	out_set_u64(o, "span_us", r->span_us);
	out_set_u64(o, "samples", r->samples);
	out_set_real(o, "sampled_percent", r->sampled * 100);
	out_set_u64(o, "lost", r->lost);
	top_keys_show(&t->keys, o, r, &view);
	show_rest(t, r);
	if (out_is_json(o))
		out_next_document(o);
	else
		out_flush(o);
}

static void show_reading(struct top_by *t)
{
	struct sampled_reading reading = {0};

	if (top_samples_read(t->samples, &reading))
		show(t, &reading);
	t->shown = top_samples_number(t->samples);
	sampled_reading_free(&reading);
}

// ---- times --------------------------------------------------------------------------------------

// Sleeps until something can be taken.
static void wait_for_samples(const struct top_by *t)
{
	struct pollfd ready = {.fd = top_samples_fd(t->samples), .events = POLLIN};

	if (ready.fd < 0)
		stop_sleep_until(time_ns(CLOCK_MONOTONIC) + SAMPLING_POLL_NS);
	else
		poll(&ready, 1, (int)(SAMPLING_POLL_NS / 1000000));
}

// Until this time has come, and there is another reading than the one that was shown.
static int take_until(struct top_by *t, uint64_t end_ns, struct err *err)
{
	uint64_t now_ns;
	int code;

	do {
		wait_for_samples(t);
		if (stop_asked)
			return 0;
		if ((code = top_samples_take(t->samples, err)))
			return code;
		now_ns = time_ns(CLOCK_MONOTONIC);
		if (now_ns > end_ns + SILENT_NS)
			return err_stated(err, ETIMEDOUT, "the agent sends no samples");
	} while (now_ns < end_ns || top_samples_number(t->samples) == t->shown);
	return 0;
}

// Documents each second, or one table.
static int loop(struct top_by *t, struct err *err)
{
	uint64_t begin_ns = time_ns(CLOCK_MONOTONIC), next_ns = begin_ns;
	int code = top_samples_take(t->samples, err);

	if (code)
		return code;
	while (!stop_asked && t->left && !out_failed(t->ctx->out)) {
		next_ns += t->ctx->json || t->left != UINT64_MAX ? DOCUMENT_NS : t->for_ns;
		code = take_until(t, next_ns, err);
		if (code || stop_asked)
			return code;
		show_reading(t);
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
	    (code = top_samples_open(ctx, &t.keys, &t.samples, err)))
		return code;
	stop_catch();
	if ((code = loop(&t, err)))
		return code;
	if (ctx->json) // the last document of the stream
		out_set_bool(ctx->out, "end", true);
	return 0;
}
