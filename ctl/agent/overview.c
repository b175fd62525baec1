// SPDX-License-Identifier: GPL-2.0-only
// Runs the command, at most for a fixed share of the time.
#include "ctl/agent/overview.h"

#include <event2/buffer.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "ctl/agent/commands.h"
#include "ctl/agent/live.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"

#define EVERY_MS         5000
#define AFTER_COMMAND_MS 300
#define PAUSE_MS         1000 // from one to the next, at least
#define REST             50   // and as many times as long as one takes,
#define REST_MOST_MS     60000
#define REST_AFTER       20 // after a command
#define REST_AFTER_MS    5000
#define COMMAND_S        60
#define OUTPUT_MAX       (16u << 20)

struct overview {
	struct agent *agent;
	struct live_stream *to;
	struct agent_process *running; // NULL: none
	struct agent_task look;
	uint64_t began_ms, took_ms; // of the last one; monotonic
	bool again;                 // something has changed while it ran
};

// As many times as long as one has taken, within bounds: on a busy machine one takes long.
static uint64_t rest_ms(const struct overview *o, uint64_t least, unsigned times, uint64_t most)
{
	uint64_t ms = o->took_ms * times;

	return ms < least ? least : ms > most ? most : ms;
}

// Readers must not take the previous state for the present one.
static void publish_failure(struct overview *o)
{
	static const char line[] =
		"{\"error\":{\"text\":\"the state of the instance cannot be read: "
		"the command was killed, or took too long\",\"hint\":null}}\n";

	live_publish(o->to, LIVE_STATE, line, sizeof(line) - 1);
	live_forget(o->to, LIVE_STATE);
}

static void on_done(void *overview, const struct process_result *r)
{
	struct overview *o = overview;
	size_t len = evbuffer_get_length(r->output);

	o->running = NULL;
	o->took_ms = agent_now_ms() - o->began_ms;
	if (len && r->status >= 0)
		live_publish(o->to, LIVE_STATE, (const char *)evbuffer_pullup(r->output, -1), len);
	else
		publish_failure(o);
	agent_task_in(&o->look, o->again ? 0 : rest_ms(o, EVERY_MS, REST, REST_MOST_MS));
	o->again = false;
}

static int begin(struct overview *o, struct err *err)
{
	static const char *const args[] = {"-j", "page", "--document", NULL};
	const struct process_request request = {
		.args = args,
		.output_max = OUTPUT_MAX,
		.timeout_s = COMMAND_S,
		.modest = true,
		.silent = true, // what fails is in the document
		.plain = true,
		.done = on_done,
		.ctx = o,
	};

	o->began_ms = agent_now_ms();
	return process_start(o->agent, &request, &o->running, err);
}

static int look(void *overview, struct err *err)
{
	struct overview *o = overview;
	uint64_t now_ms = agent_now_ms();
	uint64_t from_ms = o->began_ms + rest_ms(o, PAUSE_MS, REST_AFTER, REST_AFTER_MS);

	if (!live_readers(o->to, LIVE_STATE)) {
		live_forget(o->to, LIVE_STATE);
		return 0;
	}
	if (o->running) {
		o->again = true;
		return 0;
	}
	if (o->began_ms && now_ms < from_ms) {
		agent_task_in(&o->look, from_ms - now_ms);
		return 0;
	}
	return begin(o, err);
}

void overview_want(struct overview *o)
{
	agent_task_in(&o->look, 0);
}

struct overview *overview_new(struct agent *a, struct live_stream *to)
{
	struct overview *o = mem_new(struct overview);

	o->agent = a;
	o->to = to;
	agent_task_init(&o->look, a, "state for the page", look, o);
	agent_after_command(a, &o->look, AFTER_COMMAND_MS);
	return o;
}

void overview_free(struct overview *o)
{
	if (!o)
		return;
	process_stop(o->running);
	agent_task_free(&o->look);
	free(o);
}
