// SPDX-License-Identifier: GPL-2.0-only
// Finds which alarms of weir status have begun or ended: no other part of the agent reports them.
#include "ctl/agent/hook_alarms.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"

#define EVERY_MS         10000
#define AFTER_COMMAND_MS 1000
#define COMMAND_S        30
#define OUTPUT_MAX       (64u << 20)

struct hook_alarms {
	struct agent *agent;
	hook_alarm_changed *changed;
	struct agent_task look;
	struct agent_process *status; // that runs
	struct troubles on;           // by their keys
};

// ---- which alarms are the same ------------------------------------------------------------------

// "1,204", "3h", "40ms", with what follows: ":".
static bool is_changing(const char *word, size_t len)
{
	static const char units[] = "smhdun";
	size_t n = 0;

	while (n < len && ((word[n] >= '0' && word[n] <= '9') || word[n] == ','))
		n++;
	if (!n)
		return false;
	while (n < len && strchr(units, word[n]))
		n++;
	return n == len || (n + 1 == len && strchr(":;)", word[n]));
}

char *hook_alarm_key(const char *alarm)
{
	struct text key = {0};

	for (const char *end; *alarm; alarm = *end ? end + 1 : end) {
		end = strchrnul(alarm, ' ');
		if (!is_changing(alarm, (size_t)(end - alarm)))
			text_addf(&key, "%s%.*s", key.len ? " " : "", (int)(end - alarm), alarm);
	}
	return text_take(&key);
}

// ---- which have changed -------------------------------------------------------------------------

// An alarm keeps the sentence with which it has begun.
static void take_alarm(struct hook_alarms *h, const char *text)
{
	CLEANUP_FREE char *key = hook_alarm_key(text);
	const char *known = troubles_why(&h->on, key);

	if (troubles_note(&h->on, key, known ? known : text))
		h->changed(h->agent, text, true);
}

static void note_end(void *ctx, const char *key, const char *text)
{
	struct hook_alarms *h = ctx;

	h->changed(h->agent, text, false);
}

// Without an instance there is nothing to alarm about, and without a document nothing is known.
static void on_status(void *ctx, const struct process_result *r)
{
	const struct json *alarms = json_get(r->document, "alarms");
	struct hook_alarms *h = ctx;

	h->status = NULL;
	agent_task_in(&h->look, EVERY_MS);
	if (!alarms && r->status != ERR_INPUT)
		return;
	troubles_begin(&h->on);
	for (size_t n = 0; n < json_length(alarms); n++)
		if (json_text(json_at(alarms, n)))
			take_alarm(h, json_text(json_at(alarms, n)));
	troubles_end(&h->on, note_end, h);
}

static int look(void *ctx, struct err *err)
{
	static const char *const args[] = {"-j", "status", NULL};
	struct hook_alarms *h = ctx;
	const struct process_request request = {
		.args = args,
		.output_max = OUTPUT_MAX,
		.timeout_s = COMMAND_S,
		.silent = true,
		.modest = true,
		.done = on_status,
		.ctx = h,
	};

	if (h->status) {
		agent_task_in(&h->look, AFTER_COMMAND_MS);
		return 0;
	}
	return process_start(h->agent, &request, &h->status, err);
}

struct hook_alarms *hook_alarms_new(struct agent *a, hook_alarm_changed *changed)
{
	struct hook_alarms *h = mem_new(struct hook_alarms);

	*h = (struct hook_alarms){.agent = a, .changed = changed};
	agent_task_init(&h->look, a, "alarms for the hook", look, h);
	agent_after_command(a, &h->look, AFTER_COMMAND_MS);
	agent_task_in(&h->look, AFTER_COMMAND_MS);
	return h;
}

void hook_alarms_free(struct hook_alarms *h)
{
	process_stop(h->status);
	agent_task_free(&h->look);
	troubles_free(&h->on);
	free(h);
}
