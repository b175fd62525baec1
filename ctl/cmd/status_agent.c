// SPDX-License-Identifier: GPL-2.0-only
// Shows the report of the agent in weir status.
#include "ctl/cmd/status_agent.h"

#include <string.h>

#include "ctl/base/text.h"
#include "ctl/cmd/show.h"

static void set_fields(struct context *ctx, const struct presence *p)
{
	struct out *o = ctx->out;

	out_object(o, "agent");
	out_set_bool(o, "running", p->runs);
	out_set_bool(o, "killed", p->killed);
	if (p->runs) {
		out_set_u64(o, "pid", p->pid);
		out_set_time(o, "since", json_get_u64(p->report, "since_s"));
		out_set_json(o, "parts", json_get(p->report, "parts"));
	}
	out_end(o);
}

void status_agent_show(struct context *ctx, const struct presence *p, uint64_t now_s)
{
	CLEANUP_TEXT struct text line = {0};

	set_fields(ctx, p);
	if (!p->runs) {
		out_line(ctx->out, "agent     none");
		return;
	}
	text_add(&line, "runs");
	if (p->report) {
		text_add(&line, " since ");
		show_time(&line, json_get_u64(p->report, "since_s"), now_s);
	}
	if (p->pid)
		text_addf(&line, ", pid %llu", (unsigned long long)p->pid);
	out_line(ctx->out, "agent     %s", text_get(&line));
}

static void alarm_part(const struct json *part, status_alarm *alarm, void *status)
{
	const struct json *problems = json_get(part, "problems");
	const char *name = json_get_string(part, "name");

	for (size_t n = 0; n < json_length(problems); n++) {
		const char *text = json_text(json_at(problems, n));

		if (name && text)
			alarm(status, "agent, %s: %s", name, text);
	}
}

void status_agent_alarms(const struct context *ctx, const struct presence *p, status_alarm *alarm,
			 void *status)
{
	const struct json *parts = json_get(p->report, "parts");

	if (p->killed)
		alarm(status,
		      "the agent was killed or has crashed (weir -n %s run starts it again)",
		      ctx->instance);
	for (size_t n = 0; p->runs && n < json_length(parts); n++)
		alarm_part(json_at(parts, n), alarm, status);
}
