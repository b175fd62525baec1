// SPDX-License-Identifier: GPL-2.0-only
// weir watch: prints dropped and logged packets as they happen.
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/addr.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/culprits.h"
#include "ctl/cmd/packet_text.h"
#include "ctl/cmd/stop.h"
#include "ctl/cmd/watch_out.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/events.h"
#include "ctl/datapath/instance.h"

struct watch {
	struct context *ctx;
	struct culprits culprits;
	uint64_t left; // events until the end; 0: without end
	bool limited;
	bool out; // --out
};

static void watch_free(struct watch *w)
{
	culprits_free(&w->culprits);
}

static uint64_t wall_ms_of(uint64_t monotonic_ns)
{
	return time_ms(CLOCK_REALTIME) - (time_ms(CLOCK_MONOTONIC) - monotonic_ns / 1000000u);
}

// Adds the rule that dropped or logged the packet.
static void add_rule(struct watch *w, const struct event *event, struct text *t)
{
	const char *name;

	out_set_bool(w->ctx->out, "logged", event->logged);
	if (event->rule == EVENT_NO_RULE)
		return;
	name = culprits_rule(&w->culprits, event->rule);
	out_set_string(w->ctx->out, "rule", name);
	text_addf(t, " \"%s\"", name);
}

// Adds the entry that dropped the packet. The line shows it only if it is not just the address.
static void add_entry(struct watch *w, const struct event *event, const struct packet_fields *p,
		      struct text *t)
{
	bool to = event->reason == REASON_DROP_BLOCK_TO;
	const struct addr *a = to ? &p->to : &p->from;
	const struct prefix *entry;
	addr_text text;

	if (!p->ip || (!to && event->reason != REASON_DROP_BLOCK_FROM))
		return;
	entry = culprits_entry(&w->culprits, a, to ? OVERLAY_BLOCK_TO : OVERLAY_BLOCK_FROM);
	if (!entry)
		return;
	out_set_string(w->ctx->out, "entry", prefix_format(entry, text));
	if (entry->len < addr_bits(a))
		text_addf(t, " %s", text);
}

static void show_event(void *ctx, const struct event *event)
{
	struct watch *w = ctx;
	struct out *o = w->ctx->out;
	char ifname[IF_NAMESIZE], packet[256], when[16];
	uint64_t wall_ms = wall_ms_of(event->time_ns);
	time_t seconds = (time_t)(wall_ms / 1000);
	struct packet_fields fields;
	CLEANUP_TEXT struct text who = {0}, head = {0}, tail = {0};
	bool drops = reason_drops(event->reason);
	struct tm tm;

	if (stop_asked || (w->limited && !w->left))
		return;
	w->left -= w->limited;
	if (!if_indextoname(event->ifindex, ifname))
		snprintf(ifname, sizeof(ifname), "if%u", event->ifindex);
	packet_read(event->packet, event->captured, &fields);
	packet_describe(event->packet, event->captured, packet, sizeof(packet));
	strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&seconds, &tm));
	out_set_moment(o, wall_ms);
	out_set_string(o, "interface", ifname);
	out_set_string(o, "verdict", reason_outcome(event->reason));
	out_set_string(o, "reason", reason_name(event->reason));
	out_set_string(o, "packet", packet);
	out_set_u64(o, "length", event->length);
	out_set_u64(o, "missed", event->missed);
	add_rule(w, event, &who);
	add_entry(w, event, &fields, &who);
	packet_set_fields(o, &fields);
	text_addf(&head, "%s %s %s%s%s %s%s:", when, ifname, drops ? out_red(o) : out_green(o),
		  reason_outcome(event->reason), out_plain(o), reason_name(event->reason),
		  text_get(&who));
	text_addf(&tail, "%s, %u bytes", packet, event->length);
	out_folded(o, text_get(&head), text_get(&tail));
	if (event->missed)
		out_line(o, "  (%u more since the last one)", event->missed);
	out_next_document(o);
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
		.out = w->out ? show_out : NULL,
		.ctx = w,
	};
	int code = events_open(i, &reader, &events, err);

	if (code)
		return code;
	while (!stop_asked && (!w->limited || w->left)) {
		code = events_poll(events, 500, err);
		if (code < 0 && code != -EINTR)
			return code;
	}
	return 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP(watch_free) struct watch w = {.ctx = ctx};
	const char *count = args_value(args, "count");
	int code = args_expect_words(args, 0, 0, "", err);

	if (code)
		return code;
	w.limited = count;
	w.out = args_has(args, "out");
	if (count && num_parse_count(count, strlen(count), 1, UINT32_MAX, &w.left))
		return err_input(err, "--count '%s' is not a count of 1 or more", count);
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
	{.name = "out", .help = "show refused outgoing connections instead (weir block --out)"},
	OPTION_WIDE_TABLES,
	{0},
};

const struct command cmd_watch = {
	.name = "watch",
	.usage = "[OPTIONS]",
	.summary = "show dropped and logged packets as they happen",
	.text = "Drops are sampled: at most one event per timer tick and CPU; \"more\" counts the drops in\n"
		"between. With -j each line is one document. tcpdump does not show packets that XDP\n"
		"drops.",
	.options = options,
	.run = run,
};
