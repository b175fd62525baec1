// SPDX-License-Identifier: GPL-2.0-only
// weir top: packets and bytes per second, as documents, as a table or as views on a terminal.
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/best.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/screen.h"
#include "ctl/cmd/stop.h"
#include "ctl/cmd/top_by.h"
#include "ctl/cmd/top_file.h"
#include "ctl/cmd/top_table.h"
#include "ctl/cmd/top_view.h"
#include "ctl/control/reading.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"

#define EVERY_MS       1000
#define EVERY_LEAST_MS 100
#define EVERY_MOST_MS  60000
#define PATIENCE_MS    3000 // without a lock, a reading can meet an apply, or a detach and an attach
#define AGAIN_MS       100

struct top {
	struct context *ctx;
	struct rates_reader reading;
	uint64_t every_ms;
	uint64_t left; // documents until the end; UINT64_MAX: no end
	bool all;      // also what has counted nothing
	size_t most;   // rows of a part
	bool warned;
};

static void top_free(struct top *t)
{
	reading_close(&t->reading);
}

// ---- output -------------------------------------------------------------------------------------

static const char *const columns[RATES_PARTS][RATES_LABELS] = {
	[RATES_TOTALS] = {"TOTAL"},
	[RATES_INTERFACES] = {"INTERFACE", "REASON", "VERDICT"},
	[RATES_RULES] = {"RULE", "PLACE", "ACTION"},
	[RATES_SERVICES] = {"SERVICE"},
	[RATES_BACKENDS] = {"SERVICE", "BACKEND"},
	[RATES_ORIGINS] = {"ORIGIN", "VERB"},
	[RATES_LISTS] = {"LIST", "ORIGIN", "VERB"},
	[RATES_ENTRIES] = {"ADDRESS", "KIND"},
};

static void show_row(struct out *o, enum rates_part part, const struct rates_row *row,
		     uint64_t span_ns)
{
	const struct rates_about *about = &rates_about[part];

	out_row(o);
	for (size_t n = 0; n < RATES_LABELS && about->labels[n]; n++) {
		const char *label = row->labels[n] ? row->labels[n] : "";

		out_set_string(o, about->labels[n], label);
		out_cell(o, NULL, columns[part][n], label[0] ? label : "(none)");
	}
	out_set_u64(o, "packets", row->now.packets);
	out_set_u64(o, "bytes", row->now.bytes);
	top_show_rate(o, "packets_per_s", "PACKETS/S", rates_of(row->moved.packets, span_ns));
	top_show_rate(o, "bytes_per_s", "BYTES/S", rates_of(row->moved.bytes, span_ns));
}

static bool is_shown(const struct top *t, enum rates_part part, const struct rates_row *row)
{
	return t->all || part == RATES_TOTALS || row->moved.packets;
}

// In their order, or the busiest first. *rest: what the rows have counted, without the shown ones.
static void show_rows(struct top *t, enum rates_part part, struct counter *rest)
{
	const struct rates_list *list = &t->reading.lists[part];
	struct best best = {.max = t->most};

	for (size_t n = 0; n < list->n; n++)
		if (is_shown(t, part, &list->at[n]))
			best_offer(&best,
				   t->most == BEST_ALL ? 0 : UINT64_MAX - list->at[n].moved.packets,
				   n);
	best_sort(&best);
	vec_each (&best.kept, item) {
		const struct rates_row *row = &list->at[item->at];

		show_row(t->ctx->out, part, row, list->span_ns);
		rest->packets -= row->moved.packets;
		rest->bytes -= row->moved.bytes;
	}
	best_free(&best);
}

// *ret_rest: what --top has left out.
static void show_part(struct top *t, enum rates_part part, struct counter *ret_rest)
{
	const struct rates_list *list = &t->reading.lists[part];
	struct out *o = t->ctx->out;
	struct counter moved = {0};
	bool any = false;

	vec_each (list, row) {
		any = any || is_shown(t, part, row);
		moved.packets += row->moved.packets;
		moved.bytes += row->moved.bytes;
	}
	if (any && part)
		out_line(o, "%s", "");
	out_table(o, rates_about[part].array);
	show_rows(t, part, &moved);
	out_table_end(o);
	*ret_rest = moved;
}

// What was left out by --top: the sum of each part.
static void show_rests(struct top *t, const struct counter rests[RATES_PARTS])
{
	struct out *o = t->ctx->out;

	if (t->most == BEST_ALL)
		return;
	out_object(o, "others");
	for (enum rates_part part = 0; part < RATES_PARTS; part++) {
		uint64_t span_ns = t->reading.lists[part].span_ns;

		if (!rests[part].packets)
			continue;
		out_object(o, rates_about[part].array);
		out_set_real(o, "packets_per_s", rates_of(rests[part].packets, span_ns));
		out_set_real(o, "bytes_per_s", rates_of(rests[part].bytes, span_ns));
		out_end(o);
	}
	out_end(o);
}

static uint64_t wall_ms_of(uint64_t monotonic_ns)
{
	return time_ms(CLOCK_REALTIME) - (time_ns(CLOCK_MONOTONIC) - monotonic_ns) / 1000000;
}

static void show(struct top *t)
{
	const struct rates_list *lists = t->reading.lists;
	struct counter rests[RATES_PARTS];
	struct out *o = t->ctx->out;

	out_set_moment(o, wall_ms_of(lists[RATES_INTERFACES].now_ns));
	out_set_string(o, "instance", t->ctx->instance);
	out_set_u64(o, "monotonic_us", lists[RATES_INTERFACES].now_ns / 1000);
	out_set_u64(o, "span_us", lists[RATES_INTERFACES].span_ns / 1000);
	out_set_u64(o, "entries_span_us", lists[RATES_ENTRIES].span_ns / 1000);
	for (enum rates_part part = 0; part < RATES_PARTS; part++)
		show_part(t, part, &rests[part]);
	show_rests(t, rests);
	if (out_is_json(o))
		out_next_document(o);
	else
		out_flush(o);
}

// ---- times --------------------------------------------------------------------------------------

// The next of the times that are a multiple of `every` after the first one. A command that was
// stopped leaves out those that have passed.
static uint64_t next_ns(uint64_t first_ns, uint64_t every_ms, uint64_t now_ns)
{
	uint64_t every_ns = every_ms * 1000000;

	return first_ns + ((now_ns - first_ns) / every_ns + 1) * every_ns;
}

// Reads all. A reading that fails is tried again for a while.
static int take_patiently(struct top *t, struct err *err)
{
	uint64_t until_ns = time_ns(CLOCK_MONOTONIC) + PATIENCE_MS * 1000000ull, now_ns;
	struct err why = {0};
	int code;

	while ((code = reading_take(&t->reading, &why)) && !stop_asked) {
		now_ns = time_ns(CLOCK_MONOTONIC);
		if (now_ns >= until_ns) {
			*err = why;
			return code;
		}
		stop_sleep_until(now_ns + AGAIN_MS * 1000000ull);
		why = (struct err){0};
	}
	return 0;
}

static int take(struct top *t, struct err *err)
{
	const struct err *unknown = &t->reading.rules_unknown;
	int code = take_patiently(t, err);

	if (code)
		return code;
	if (unknown->kind && !t->warned)
		log_warning("%s", unknown->text);
	t->warned = unknown->kind;
	return 0;
}

static int loop(struct top *t, struct err *err)
{
	uint64_t first_ns = time_ns(CLOCK_MONOTONIC);
	int code = take(t, err);

	if (code)
		return code;
	while (t->left && !out_failed(t->ctx->out)) {
		stop_sleep_until(next_ns(first_ns, t->every_ms, time_ns(CLOCK_MONOTONIC)));
		if (stop_asked)
			return 0;
		if ((code = take(t, err)))
			return code;
		if (stop_asked)
			return 0;
		show(t);
		t->left -= t->left != UINT64_MAX;
		if (t->left && !out_is_json(t->ctx->out))
			out_line(t->ctx->out, "%s", "");
	}
	return 0;
}

// ---- the command --------------------------------------------------------------------------------

static int read_options(struct top *t, const struct args *args, struct err *err)
{
	const char *every = args_value(args, "every");
	int code;

	t->all = args_has(args, "all");
	t->left = t->ctx->json || args_has(args, "batch") ? UINT64_MAX : 1;
	t->every_ms = EVERY_MS;
	if ((code = top_read_counts(args, &t->most, &t->left, err)))
		return code;
	if (every &&
	    num_parse_time_ms(every, strlen(every), EVERY_LEAST_MS, EVERY_MOST_MS, &t->every_ms)) {
		err_input(err, "--every '%s' is not a time from 100ms to 1m", every);
		return err_hint(err, "for example --every 500ms");
	}
	return 0;
}

// ---- views --------------------------------------------------------------------------------------

// Whether the views are shown. Options of documents and tables ask for these.
static bool wants_views(const struct context *ctx, const struct args *args)
{
	static const char *const others[] = {"count", "top", "batch", "wide"};

	for (size_t n = 0; n < ARRAY_SIZE(others); n++)
		if (args_has(args, others[n]))
			return false;
	return !ctx->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static int show_views(struct top *t, struct screen *screen, struct err *err)
{
	const struct top_view_options options = {
		.ctx = t->ctx, .every_ms = t->every_ms, .all = t->all};

	return top_view_run(&options, &t->reading, screen, err);
}

// Shows the views, or, where the terminal or ncurses does not allow it, one table.
static int run_views(struct top *t, struct err *err)
{
	CLEANUP_SCREEN struct screen *screen = NULL;
	struct err why = {0};
	int code = reading_take(&t->reading, err); // an instance that is missing is a message

	if (code)
		return code;
	top_view_block_signals();
	if (!screen_open(t->ctx->color, &screen, &why))
		return show_views(t, screen, err);
	top_view_unblock_signals();
	log_warning("%s: printing a table", why.text);
	return loop(t, err);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(top_free) struct top t = {.ctx = ctx};
	int code = args_expect_words(args, 0, 0, "", err);

	if (code)
		return code;
	if (args_has(args, "read"))
		return top_file_run(ctx, args, err);
	if (args_has(args, "by"))
		return top_by_run(ctx, args, err);
	if (args_has(args, "for"))
		return err_input(err, "--for requires --by");
	if ((code = read_options(&t, args, err)))
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	lock_never_wait(true); // entries are read at the next time instead
	if ((code = reading_open(ctx->instance, &t.reading, err)))
		return code;
	stop_catch();
	code = wants_views(ctx, args) ? run_views(&t, err) : loop(&t, err);
	if (code)
		return code;
	if (ctx->json) // the last document of the stream
		out_set_bool(ctx->out, "end", true);
	return 0;
}

static const struct args_option options[] = {
	{.name = "count", .letter = 'c', .arg = "N", .help = "stop after N documents or tables"},
	{.name = "every", .arg = "TIME", .help = "measure for TIME, 100ms to 1m (default 1s)"},
	{.name = "top", .arg = "N", .help = "at most the N busiest rows of each part"},
	{.name = "all", .help = "also show what has counted nothing in this time"},
	{.name = "batch", .help = "print a table each second, without end"},
	{.name = "by",
	 .arg = "KEY,...",
	 .help = "who sends: source, destination, port, length, ttl, flags, country, asn"},
	{.name = "for",
	 .arg = "TIME",
	 .help = "with --by: sample for TIME (default 3s; -j: until ^C)"},
	{.name = "read",
	 .letter = 'r',
	 .arg = "FILE",
	 .help = "the tables of --by, from a capture file (pcap, pcapng)"},
	OPTION_WIDE_TABLES,
	{0},
};

const struct command cmd_top = {
	.name = "top",
	.usage = "[OPTIONS]",
	.summary = "show packets and bytes per second",
	.text = "On a terminal it shows views of the last 1, 10 and 60 seconds until q; h lists the keys.\n"
		"Elsewhere, and with -c, --top or --wide, it measures for a second and prints a table; with\n"
		"-j one document a second, until ^C. Entries and their owners are read every 10 seconds, so\n"
		"a shorter command does not show them.\n"
		"\n"
		"  weir top\n"
		"  weir top --batch --top 5\n"
		"  weir -j top --every 200ms -c 50\n"
		"  weir top --by source,port --for 10s\n"
		"  weir top -r drops.pcapng --by source",
	.options = options,
	.run = run,
};
