// SPDX-License-Identifier: GPL-2.0-only
// The table of the parts, and the loop.
#include "ctl/agent/parts.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/agent/clients.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/heart.h"
#include "ctl/agent/notify.h"
#include "ctl/agent/presence.h"
#include "ctl/agent/task.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/progress.h"
#include "ctl/datapath/lock.h"
#include "ctl/net/loop.h"

#define CLIENTS_AT_ONCE 16
#define CLIENTS_MS      2

// In the order of their starts; they end in the opposite order.
static const struct agent_part *const all_parts[] = {
	&agent_record,    &agent_hooks, // before the parts that tell something
	&agent_policy,    &agent_housekeeping, &agent_links,   &agent_health_part,
	&agent_feeds, // before the files, which have feeds
	&agent_files,     &agent_nat,
	&agent_page, // before the API, whose jobs have requests of its clients
	&agent_api,       &agent_names,        &agent_places,  &agent_recount,
	&agent_history,   &agent_events,       &agent_samples, // after both, whose clients read them
	&agent_event_log,                                      // after the events
};

// Of `weir page`.
static const struct agent_part *const page_parts[] = {&agent_page, &agent_api, &agent_history};

struct running {
	const struct agent_part *const *parts;
	size_t n;       // parts
	size_t started; // of them
	uint64_t since_s;
	struct event *signals[3];
	struct event *watchdog;
	struct agent_task report;
	unsigned reloading; // parts, and one more during reload() itself
	struct err reloaded[ARRAY_SIZE(
		all_parts)]; // what the last reload of each part said; text "": all is well
	char *status;        // as the service manager knows it
};

// ---- the report ---------------------------------------------------------------------------------

static struct json *report_part(const struct agent *a, size_t n)
{
	struct json *fields = json_object(), *problems = json_array();
	const struct err *reloaded = &a->running->reloaded[n];

	const struct agent_part *part = a->running->parts[n];

	json_set(fields, "name", json_string(part->name));
	if (reloaded->text[0])
		json_append(problems, json_string(reloaded->text));
	if (part->report)
		part->report(a, fields, problems);
	json_set(fields, "problems", problems);
	return fields;
}

// Tells the service manager how many problems there are, if that has changed.
static void tell_status(struct agent *a, size_t problems)
{
	CLEANUP_FREE char *status =
		problems ? mem_printf("%zu %s; weir -n %s status shows %s", problems,
				      num_plural(problems, "problem", "problems"), a->instance,
				      num_plural(problems, "it", "them"))
			 : mem_printf("running, instance %s", a->instance);
	struct running *r = a->running;

	if (r->status && !strcmp(r->status, status))
		return;
	mem_cleanup_free(&r->status);
	r->status = TAKE_PTR(status);
	notify_send("STATUS=%s", r->status);
}

static void report_longest(struct json *report)
{
	struct loop_longest longest = loop_longest();

	json_set(report, "longest_callback_us", json_u64(longest.us));
	json_set(report, "longest_callback",
		 longest.name ? json_string(longest.name) : json_nothing());
}

static int write_report(void *agent, struct err *err)
{
	struct agent *a = agent;
	CLEANUP_JSON struct json *report = json_object();
	CLEANUP_FREE char *unit = notify_unit();
	struct json *list = json_array();
	size_t problems = 0;

	json_set(report, "pid", json_u64((uint64_t)getpid()));
	json_set(report, "since_s", json_u64(a->running->since_s));
	json_set(report, "unit", unit ? json_string(unit) : json_nothing());
	report_longest(report);
	for (size_t n = 0; n < a->running->n; n++) {
		struct json *part = report_part(a, n);

		problems += json_length(json_get(part, "problems"));
		json_append(list, part);
	}
	json_set(report, "parts", list);
	tell_status(a, problems);
	return presence_report(a->instance, report, err);
}

static void on_longest(void *agent)
{
	agent_changed(agent);
}

// ---- signals and the service manager ------------------------------------------------------------

void parts_reload_continues(struct agent *a)
{
	if (!a->running->reloading++)
		notify_reloading();
}

void parts_reload_done(struct agent *a)
{
	if (!--a->running->reloading)
		notify_send("READY=1");
}

static void reload(struct agent *a)
{
	parts_reload_continues(a);
	for (size_t n = 0; n < a->running->n; n++) {
		const struct agent_part *part = a->running->parts[n];
		struct err *err = &a->running->reloaded[n];
		err_full_text full;

		err_clear(err);
		if (part->reload && part->reload(a, err))
			log_error("%s: %s", part->name, err_full(err, full));
	}
	parts_reload_done(a);
	agent_changed(a);
}

static void on_signal(evutil_socket_t number, short what, void *agent)
{
	struct agent *a = agent;

	if (number == SIGHUP && !a->page) // to `weir page`: its terminal is closed
		reload(a);
	else
		event_base_loopbreak(a->loop);
}

static void on_watchdog(evutil_socket_t fd, short what, void *agent)
{
	notify_send("WATCHDOG=1");
}

static int out_of_events(struct err *err)
{
	return err_system(err, ENOMEM, "cannot register an event");
}

static bool is_ignored(int number)
{
	struct sigaction now;

	return !sigaction(number, NULL, &now) && now.sa_handler == SIG_IGN;
}

static int listen_to_signals(struct agent *a, struct err *err)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};

	_Static_assert(ARRAY_SIZE(numbers) == ARRAY_SIZE(((struct running *)0)->signals), "");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); // inherited as ignored, it would hide the ends of processes
	for (size_t n = 0; n < ARRAY_SIZE(numbers); n++) {
		struct event *event;

		if (a->page && numbers[n] == SIGHUP && is_ignored(SIGHUP)) // nohup weir page
			continue;
		event = loop_signal(a->loop, numbers[n], on_signal, a);
		if (!event || evsignal_add(event, NULL))
			return out_of_events(err);
		a->running->signals[n] = event;
	}
	return 0;
}

// Half of the time that the manager grants, called from the loop: shows that the loop runs.
static int feed_watchdog(struct agent *a, struct err *err)
{
	uint64_t us = notify_watchdog_us() / 2;
	struct timeval each = {.tv_sec = (time_t)(us / 1000000),
			       .tv_usec = (suseconds_t)(us % 1000000)};

	if (!us)
		return 0;
	a->running->watchdog = loop_event(a->loop, -1, EV_PERSIST, on_watchdog, a);
	if (!a->running->watchdog || evtimer_add(a->running->watchdog, &each))
		return out_of_events(err);
	return 0;
}

// ---- start and end ------------------------------------------------------------------------------

static int start_parts(struct agent *a, struct err *err)
{
	for (size_t n = 0; n < a->running->n; n++) {
		int code;

		a->running->started++; // also where it fails half-way
		if ((code = a->running->parts[n]->start(a, err)))
			return code;
	}
	return 0;
}

static void stop(struct agent *a)
{
	struct running *r = a->running;

	for (; r->started; r->started--)
		if (r->parts[r->started - 1]->stop)
			r->parts[r->started - 1]->stop(a);
	for (size_t n = 0; n < ARRAY_SIZE(r->signals); n++)
		loop_event_free(r->signals[n]);
	loop_event_free(r->watchdog);
	if (a->heart)
		heart_stop(a->heart);
	commands_free(TAKE_PTR(a->commands));
	a->report = NULL;
	agent_task_free(&r->report);
	mem_cleanup_free(&r->status);
	mem_cleanup_free(&a->warned);
	if (a->loop)
		event_base_free(a->loop);
	a->loop = NULL;
}

// Clients of the API come last, and in small parts: however many have sent something, a timer waits
// no longer.
static struct event_base *make_loop(void)
{
	const struct timeval part = {.tv_usec = CLIENTS_MS * 1000};
	struct event_config *config = event_config_new();
	struct event_base *loop;

	if (!config)
		return NULL;
	event_config_set_max_dispatch_interval(config, &part, CLIENTS_AT_ONCE,
					       CLIENTS_PRIORITIES - 1);
	loop = event_base_new_with_config(config);
	event_config_free(config);
	if (loop && !event_base_priority_init(loop, CLIENTS_PRIORITIES))
		return loop;
	if (loop)
		event_base_free(loop);
	return NULL;
}

static int start(struct agent *a, struct err *err)
{
	struct running *r = a->running;
	int code;

	if (!(a->loop = make_loop()))
		return err_system(err, ENOMEM, "cannot make an event loop");
	if (a->heart && (code = heart_start(a->heart, a->loop, err)))
		return code;
	if ((code = listen_to_signals(a, err)))
		return code;
	if ((code = feed_watchdog(a, err)))
		return code;
	if ((code = commands_watch(a, &a->commands, err)))
		return code;
	if ((code = start_parts(a, err)))
		return code;
	if (a->page)
		return 0; // the report of the instance is the agent's
	agent_task_init(&r->report, a, "report", write_report, a);
	a->report = &r->report;
	return 0;
}

// Each turn of the loop, up to event_base_loopbreak().
static int turn(struct agent *a)
{
	while (!event_base_got_break(a->loop)) {
		if (a->heart)
			heart_beat(a->heart);
		if (event_base_loop(a->loop, EVLOOP_ONCE) < 0)
			return -EIO;
	}
	return 0;
}

static int loop_page(struct agent *a, struct err *err)
{
	int code = turn(a);

	return code ? err_system(err, -code, "the event loop failed") : 0;
}

static int loop(struct agent *a, struct err *err)
{
	int code = write_report(a, err);

	if (code)
		return code;
	log_notice("the agent of instance %s is ready, pid %d", a->instance, getpid());
	notify_send("READY=1");
	if ((code = turn(a)))
		return err_system(err, -code, "the event loop failed");
	notify_send("STOPPING=1");
	log_notice("the agent of instance %s ends; the datapath stays as it is", a->instance);
	return 0;
}

// Buffers are mappings, which go back to the system one by one: mem_trim() holds the loop for 0.2
// ms with each megabyte.
#define MAPPED_BYTES 4000

int parts_run(struct agent *a, struct err *err)
{
	struct running running = {
		.since_s = (uint64_t)time(NULL),
		.parts = a->page ? page_parts : all_parts,
		.n = a->page ? ARRAY_SIZE(page_parts) : ARRAY_SIZE(all_parts),
	};
	int code;

	a->running = &running;
	lock_never_wait(true);
	progress_to(NULL); // a second thread would be copied half
	loop_on_longest(on_longest, a);
	mem_map_from(MAPPED_BYTES);
	mem_trim(); // what the apply of a large policy has left
	code = start(a, err);
	code = code ? code : a->page ? loop_page(a, err) : loop(a, err);
	loop_on_longest(NULL, NULL);
	stop(a);
	a->running = NULL;
	return code;
}
