// SPDX-License-Identifier: GPL-2.0-only
// weir watch: prints dropped and logged packets as they happen.
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/culprits.h"
#include "ctl/cmd/stop.h"
#include "ctl/cmd/watch_agent.h"
#include "ctl/cmd/watch_event.h"
#include "ctl/cmd/watch_filter.h"
#include "ctl/cmd/watch_out.h"
#include "ctl/cmd/watch_packet.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/events.h"
#include "ctl/datapath/instance.h"

#define POLL_MS     500
#define AGAIN_MS    250 // an agent that has ended is looked for so often
#define AGAIN_TIMES 12
#define BUSY_TIMES  20 // another command that reads drops is waited for so often, after the agent
#define ALL_KEPT    "4294967295ms" // a time before all events that the agent keeps

struct watch {
	struct context *ctx;
	struct instance *instance;
	struct culprits culprits;
	struct watch_filter filter;
	bool only_new;      // --since 0s
	uint64_t since_us;  // CLOCK_MONOTONIC: nothing older is shown
	uint64_t drops_us;  // no older drop is shown
	uint64_t last_us;   // the latest event so far
	uint64_t after_us;  // nothing up to it is shown again
	uint64_t missed[2]; // drops and logs since the last one of each that was shown
	uint64_t left;      // events until the end; 0: without end
	bool limited;
	bool after_agent; // one has run, and has ended
	bool out;         // --out
};

static void watch_free(struct watch *w)
{
	culprits_free(&w->culprits);
	watch_filter_free(&w->filter);
	instance_free(w->instance);
}

static bool is_over(const struct watch *w)
{
	return stop_asked || (w->limited && !w->left);
}

// Or is the reader of the output gone? That takes a system call.
static bool ends(const struct watch *w)
{
	return is_over(w) || file_is_unread(STDOUT_FILENO);
}

static uint64_t wall_ms_of(uint64_t monotonic_us)
{
	return time_ms(CLOCK_REALTIME) - (time_ms(CLOCK_MONOTONIC) - monotonic_us / 1000u);
}

// ---- printing -----------------------------------------------------------------------------------

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

// The keys of a document of another `weir watch`, with what was missed here.
struct copied {
	struct out *out;
	uint64_t missed;
};

static void copy_value(void *copied, const char *key, const struct json *value)
{
	const struct copied *c = copied;

	if (!strcmp(key, "schema") || !strcmp(key, "time"))
		return;
	if (!strcmp(key, "missed"))
		out_set_u64(c->out, key, c->missed);
	else
		out_set_json(c->out, key, value);
}

static void print_line(struct out *o, const struct watch_event *e, uint64_t wall_ms)
{
	const char *color = strcmp(e->verdict, "drop") ? out_green(o) : out_red(o);
	CLEANUP_TEXT struct text head = {0}, tail = {0};
	when_text when;

	text_addf(&head, "%s ", format_when(wall_ms, when));
	watch_event_text(e, color, out_plain(o), &head, &tail);
	out_folded(o, text_get(&head), text_get(&tail));
	if (e->missed)
		out_line(o,
			 e->logged ? "  (%" PRIu64 " logged before were overwritten)"
				   : "  (%" PRIu64 " more since the last one)",
			 e->missed);
}

// packet: of this event; or NULL, and the document that the event was read from.
static void print_event(const struct watch *w, const struct watch_event *e,
			const struct watch_packet *packet, const struct json *document)
{
	uint64_t wall_ms = wall_ms_of(e->monotonic_us);
	struct out *o = w->ctx->out;

	out_set_moment(o, wall_ms);
	if (packet)
		watch_packet_set(o, packet);
	else
		json_each(document, copy_value, &(struct copied){o, e->missed});
	print_line(o, e, wall_ms);
	out_next_document(o);
}

// ---- which events are shown ---------------------------------------------------------------------

static bool is_old(struct watch *w, const struct watch_event *e)
{
	uint64_t from_us = e->logged ? w->since_us : w->drops_us;

	if (e->monotonic_us >= from_us && e->monotonic_us > w->after_us)
		return false;
	w->missed[e->logged] = 0; // they are older, too
	return true;
}

// Sums the missed events until an event is shown.
static uint64_t take_missed(struct watch *w, const struct watch_event *e, bool shown)
{
	uint64_t *sum = &w->missed[e->logged], all = *sum + e->missed;

	*sum = shown ? 0 : all;
	return all;
}

// Whether the event is shown; then `missed` is the sum.
static bool is_shown(struct watch *w, struct watch_event *e)
{
	bool shown;

	if (is_over(w) || is_old(w, e))
		return false;
	if (e->monotonic_us > w->last_us)
		w->last_us = e->monotonic_us;
	shown = watch_filter_holds(&w->filter, e);
	e->missed = take_missed(w, e, shown);
	w->left -= shown && w->limited;
	return shown;
}

// ---- from the datapath --------------------------------------------------------------------------

static void show_event(void *ctx, const struct event *event)
{
	struct watch *w = ctx;
	struct watch_packet packet;

	watch_packet_read(&w->culprits, event, &packet);
	if (!is_shown(w, &packet.event))
		return;
	watch_packet_complete(&w->culprits, event, &packet);
	print_event(w, &packet.event, &packet, NULL);
}

static void show_out(void *ctx, const struct event_out *event)
{
	struct watch *w = ctx;

	if (is_over(w))
		return;
	w->left -= w->limited;
	watch_out_show(w->ctx->out, w->instance, event);
}

static void close_events(struct events **events)
{
	events_close(*events);
}

static int read_datapath(struct watch *w, struct err *err)
{
	CLEANUP(close_events) struct events *events = NULL;
	const struct events_reader reader = {
		.packet = w->out ? NULL : show_event,
		.no_drops = !watch_filter_admits(&w->filter, false),
		.no_logs = !watch_filter_admits(&w->filter, true),
		.out = w->out ? show_out : NULL,
		.ctx = w,
	};
	int code = events_open(w->instance, &reader, &events, err);

	if (code == -EBUSY && !w->out)
		err_hint(err, "weir watch logged can run at the same time");
	if (code)
		return code;
	if (w->after_agent)
		log_notice("the agent has ended; this command reads events itself");
	while (!ends(w)) {
		code = events_poll(events, POLL_MS, err);
		if (code < 0 && code != -EINTR)
			return code;
	}
	return 0;
}

// ---- from the agent -----------------------------------------------------------------------------

static void show_other(const struct watch *w, const struct json *document)
{
	const char *error = json_get_string(json_get(document, "error"), "text");
	uint64_t missed = json_get_u64(document, "missed");

	if (error)
		log_warning("agent: %s", error);
	if (!missed)
		return;
	out_set_u64(w->ctx->out, "missed", missed);
	out_line(w->ctx->out, "  (%" PRIu64 " %s left out: this command was too slow)", missed,
		 num_plural(missed, "event was", "events were"));
	out_next_document(w->ctx->out);
}

static void show_document(void *ctx, const struct json *document)
{
	struct watch *w = ctx;
	struct watch_event e;

	if (!watch_event_read(document, &e))
		show_other(w, document);
	else if (is_shown(w, &e))
		print_event(w, &e, NULL, document);
}

static void close_agent(struct agent_stream **agent)
{
	agent_stream_close(*agent);
}

// *ret_read: an agent was read until it ended.
static int read_agent(struct watch *w, bool *ret_read, struct err *err)
{
	CLEANUP(close_agent) struct agent_stream *agent = NULL;
	const struct watch_agent_wish wish = {
		.instance = w->ctx->instance,
		.since = w->only_new && !w->after_us ? NULL : ALL_KEPT,
		.logged = !watch_filter_admits(&w->filter, false),
	};
	int code = watch_agent_open(&wish, &agent, err);

	*ret_read = agent;
	if (!agent)
		return code;
	while (!ends(w) && code != -EPIPE)
		code = agent_stream_poll(agent, POLL_MS, show_document, w);
	return 0;
}

static void pause_between(void)
{
	const struct timespec pause = {.tv_nsec = AGAIN_MS * 1000000l};

	nanosleep(&pause, NULL);
}

// Returns when no agent runs. A service manager soon starts one again. *ret_any: one has run.
static int read_agents(struct watch *w, bool *ret_any, struct err *err)
{
	bool read = false;

	for (unsigned tries = 1; tries && !ends(w); tries--) {
		int code = read_agent(w, &read, err);

		if (code)
			return code;
		if (read) {
			*ret_any = true;
			w->after_us = w->last_us;
			tries = AGAIN_TIMES;
		}
		if (tries > 1 && !ends(w))
			pause_between();
	}
	return 0;
}

// ---- the command --------------------------------------------------------------------------------

static int read_since(struct watch *w, const struct args *args, struct err *err)
{
	uint64_t ms, now_us = time_us(CLOCK_MONOTONIC);
	const char *text = args_value(args, "since");

	w->drops_us = now_us;
	if (!text)
		return 0;
	if (num_parse_time_ms(text, strlen(text), 0, UINT32_MAX, &ms)) {
		err_input(err, "--since '%s' is not a time", text);
		return err_hint(err, "--since 10m begins with records of the last ten minutes");
	}
	w->only_new = !ms;
	w->since_us = w->drops_us = now_us > ms * 1000 ? now_us - ms * 1000 : 0;
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
	return read_since(w, args, err);
}

static int open_instance(struct watch *w, struct err *err)
{
	instance_free(TAKE_PTR(w->instance));
	return instance_open(w->ctx->instance, &w->instance, err);
}

// A killed agent leaves a command that reads drops until it finds that out. One that still reads
// them later is another user's.
static int read_after_agent(struct watch *w, struct err *err)
{
	unsigned tries = BUSY_TIMES;
	int code = -EBUSY;

	w->after_agent = true;
	for (; code == -EBUSY && tries && !ends(w); tries--) {
		bool any = false;

		err_clear(err);
		pause_between();
		if ((code = read_agents(w, &any, err)) || ends(w))
			return code;
		if (any)
			tries = BUSY_TIMES;
		if ((code = open_instance(w, err)))
			return code;
		w->culprits.instance = w->instance;
		code = read_datapath(w, err);
	}
	return code;
}

// The agent itself runs this command, too.
static int read_all(struct watch *w, struct err *err)
{
	bool through_agent = !w->out && !w->ctx->by, any = false;
	int code = through_agent ? read_agents(w, &any, err) : 0;

	if (code || ends(w))
		return code;
	if (any)
		return read_after_agent(w, err);
	w->culprits.instance = w->instance;
	return read_datapath(w, err);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(watch_free) struct watch w = {.ctx = ctx};
	int code = read_args(&w, args, err);

	if (code)
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	if ((code = open_instance(&w, err)))
		return code;
	stop_catch();
	if ((code = read_all(&w, err)))
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
		"logged can run, and of drops while an agent runs; without one, only one shows drops.\n"
		"Drops are sampled: at most one event per timer tick and CPU; \"more\" counts the drops in\n"
		"between. With -j each line is one document. tcpdump does not show packets that XDP\n"
		"drops.",
	.options = options,
	.run = run,
};
