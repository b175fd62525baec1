// SPDX-License-Identifier: GPL-2.0-only
// weir watch: prints dropped and logged packets as they happen.
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/addr.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/culprits.h"
#include "ctl/cmd/packet_text.h"
#include "ctl/cmd/stop.h"
#include "ctl/cmd/watch_filter.h"
#include "ctl/cmd/watch_out.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/events.h"
#include "ctl/datapath/instance.h"

struct watch {
	struct context *ctx;
	struct culprits culprits;
	struct watch_filter filter;
	uint64_t since_ns;  // CLOCK_MONOTONIC: nothing older is shown
	uint64_t missed[2]; // drops and logs since the last one of each that was shown
	uint64_t left;      // events until the end; 0: without end
	bool limited;
	bool out; // --out
};

static void watch_free(struct watch *w)
{
	culprits_free(&w->culprits);
	watch_filter_free(&w->filter);
}

static uint64_t wall_ms_of(uint64_t monotonic_ns)
{
	return time_ms(CLOCK_REALTIME) - (time_ms(CLOCK_MONOTONIC) - monotonic_ns / 1000000u);
}

// Adds the rule that dropped or logged the packet.
static void add_rule(struct watch *w, const struct watch_facts *facts, struct text *t)
{
	out_set_bool(w->ctx->out, "logged", facts->event->logged);
	if (!facts->rule)
		return;
	out_set_string(w->ctx->out, "rule", facts->rule);
	text_addf(t, " \"%s\"", facts->rule);
}

// Adds the entry that dropped the packet. The line shows it only if it is not just the address.
static void add_entry(struct watch *w, const struct watch_facts *facts, struct text *t)
{
	const struct packet_fields *p = facts->packet;
	bool to = facts->event->reason == REASON_DROP_BLOCK_TO;
	const struct addr *a = to ? &p->to : &p->from;
	const struct prefix *entry;
	addr_text text;

	if (!p->ip || (!to && facts->event->reason != REASON_DROP_BLOCK_FROM))
		return;
	entry = culprits_entry(&w->culprits, a, to ? OVERLAY_BLOCK_TO : OVERLAY_BLOCK_FROM);
	if (!entry)
		return;
	out_set_string(w->ctx->out, "entry", prefix_format(entry, text));
	if (entry->len < addr_bits(a))
		text_addf(t, " %s", text);
}

// "15:04:05.123"
typedef char when_text[32];

static const char *format_when(uint64_t wall_ms, when_text ret)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	char clock[16] = "";
	struct tm tm;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&seconds, &tm));
	snprintf(ret, sizeof(when_text), "%s.%03u", clock, (unsigned)(wall_ms % 1000));
	return ret;
}

static void print_event(struct watch *w, const struct watch_facts *facts, uint32_t missed)
{
	const struct event *event = facts->event;
	struct out *o = w->ctx->out;
	CLEANUP_TEXT struct text who = {0}, head = {0}, tail = {0};
	uint64_t wall_ms = wall_ms_of(event->time_ns);
	const char *color = reason_drops(event->reason) ? out_red(o) : out_green(o);
	char packet[256];
	when_text when;

	packet_describe(event->packet, event->captured, packet, sizeof(packet));
	out_set_moment(o, wall_ms);
	out_set_u64(o, "monotonic_us", event->time_ns / 1000);
	out_set_string(o, "interface", facts->interface);
	out_set_string(o, "verdict", reason_outcome(event->reason));
	out_set_string(o, "reason", reason_name(event->reason));
	out_set_string(o, "packet", packet);
	out_set_u64(o, "length", event->length);
	out_set_u64(o, "missed", missed);
	add_rule(w, facts, &who);
	add_entry(w, facts, &who);
	packet_set_fields(o, facts->packet);
	text_addf(&head, "%s %s %s%s%s %s%s:", format_when(wall_ms, when), facts->interface, color,
		  reason_outcome(event->reason), out_plain(o), reason_name(event->reason),
		  text_get(&who));
	text_addf(&tail, "%s, %u bytes", packet, event->length);
	out_folded(o, text_get(&head), text_get(&tail));
	if (missed)
		out_line(o,
			 event->logged ? "  (%u logged before were overwritten)"
				       : "  (%u more since the last one)",
			 missed);
	out_next_document(o);
}

// Sums the missed events until an event is shown.
static uint32_t take_missed(struct watch *w, const struct event *event, bool shown)
{
	uint64_t *sum = &w->missed[!!event->logged], all = *sum + event->missed;

	*sum = shown ? 0 : all;
	return all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
}

static void show_event(void *ctx, const struct event *event)
{
	struct watch *w = ctx;
	char ifname[IF_NAMESIZE];
	struct packet_fields fields;
	struct watch_facts facts = {.event = event, .packet = &fields, .interface = ifname};
	bool shown;

	if (stop_asked || (w->limited && !w->left))
		return;
	if (event->time_ns < w->since_ns) {
		w->missed[!!event->logged] = 0; // they are older, too
		return;
	}
	if (!if_indextoname(event->ifindex, ifname))
		snprintf(ifname, sizeof(ifname), "if%u", event->ifindex);
	packet_read(event->packet, event->captured, &fields);
	if (event->rule != EVENT_NO_RULE)
		facts.rule = culprits_rule(&w->culprits, event->rule);
	shown = watch_filter_holds(&w->filter, &facts);
	w->left -= shown && w->limited;
	if (shown)
		print_event(w, &facts, take_missed(w, event, true));
	else
		take_missed(w, event, false);
}

static void show_out(void *ctx, const struct event_out *event)
{
	struct watch *w = ctx;

	if (stop_asked || (w->limited && !w->left))
		return;
	w->left -= w->limited;
	watch_out_show(w->ctx->out, w->culprits.instance, event);
}

static void close_events(struct events **events)
{
	events_close(*events);
}

static int loop(struct watch *w, const struct instance *i, struct err *err)
{
	CLEANUP(close_events) struct events *events = NULL;
	const struct events_reader reader = {
		.packet = w->out ? NULL : show_event,
		.no_drops = !watch_filter_admits(&w->filter, false),
		.no_logs = !watch_filter_admits(&w->filter, true),
		.out = w->out ? show_out : NULL,
		.ctx = w,
	};
	int code = events_open(i, &reader, &events, err);

	if (code == -EBUSY && !w->out)
		err_hint(err, "weir watch logged can run at the same time");
	if (code)
		return code;
	while (!stop_asked && (!w->limited || w->left) && !file_is_unread(STDOUT_FILENO)) {
		code = events_poll(events, 500, err);
		if (code < 0 && code != -EINTR)
			return code;
	}
	return 0;
}

static int read_since(const struct args *args, uint64_t *ret_ns, struct err *err)
{
	uint64_t ms, now_ms = time_ms(CLOCK_MONOTONIC);
	const char *text = args_value(args, "since");

	if (!text)
		return 0;
	if (num_parse_time_ms(text, strlen(text), 0, UINT32_MAX, &ms)) {
		err_input(err, "--since '%s' is not a time", text);
		return err_hint(err, "--since 10m begins with records of the last ten minutes");
	}
	*ret_ns = now_ms > ms ? (now_ms - ms) * 1000000 : 0;
	return 0;
}

static int read_args(struct watch *w, const struct args *args, struct err *err)
{
	const char *count = args_value(args, "count");

	w->out = args_has(args, "out");
	w->limited = count;
	if (count && num_parse_count(count, strlen(count), 1, UINT32_MAX, &w->left))
		return err_input(err, "--count '%s' is not a count of 1 or more", count);
	if (w->out && (args->words.n || args_has(args, "since"))) {
		err_input(err, "--out has no conditions and no --since");
		return err_hint(err, "refused connections are not kept");
	}
	if (watch_filter_read(args, &w->filter, err))
		return -EINVAL;
	return read_since(args, &w->since_ns, err);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP(watch_free) struct watch w = {.ctx = ctx};
	int code = read_args(&w, args, err);

	if (code)
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	if ((code = instance_open(ctx->instance, &i, err)))
		return code;
	stop_catch();
	w.culprits.instance = i;
	if ((code = loop(&w, i, err)))
		return code;
	if (ctx->json) // the last document of the stream: without events there is one as well
		out_set_bool(ctx->out, "end", true);
	return 0;
}

static const struct args_option options[] = {
	{.name = "count", .letter = 'c', .arg = "N", .help = "stop after N events"},
	{.name = "since",
	 .arg = "TIME",
	 .help = "logged packets of the last TIME, then new events"},
	{.name = "out", .help = "show refused outgoing connections instead (weir block --out)"},
	OPTION_WIDE_TABLES,
	{0},
};

const struct command cmd_watch = {
	.name = "watch",
	.usage = "[CONDITION…] [OPTIONS]",
	.summary = "show dropped and logged packets as they happen",
	.text = "CONDITION is from ADDRESS, to ADDRESS, rule NAME, reason NAME, interface NAME, drops or\n"
		"logged, each also after 'not'; all must hold.\n"
		"The last 1,024 packets that rules log are kept and printed first. Any number of weir watch\n"
		"logged can run, but only one weir watch that shows drops.\n"
		"Drops are sampled: at most one event per timer tick and CPU; \"more\" counts the drops in\n"
		"between. With -j each line is one document. tcpdump does not show packets that XDP\n"
		"drops.",
	.options = options,
	.run = run,
};
