// SPDX-License-Identifier: GPL-2.0-only
// Shows the agent in weir status.
#include "ctl/cmd/status_agent.h"

#include "ctl/base/text.h"
#include "ctl/cmd/show.h"

static void set_fields(struct context *ctx, const struct presence *p)
{
	struct out *o = ctx->out;

	out_object(o, "agent");
	out_set_bool(o, "running", p->runs);
	out_set_bool(o, "killed", p->killed);
	out_set_bool(o, "hangs", p->late_ms);
	out_set_bool(o, "ended", p->ended);
	if (p->ended)
		out_set_time(o, "ended_at", json_get_u64(p->report, "ended_s"));
	if (p->runs) {
		out_set_u64(o, "pid", p->pid);
		out_set_time(o, "since", json_get_u64(p->report, "since_s"));
		out_set_u64(o, "longest_callback_us",
			    json_get_u64(p->report, "longest_callback_us"));
		out_set_string(o, "longest_callback",
			       json_get_string(p->report, "longest_callback"));
		out_set_json(o, "parts", json_get(p->report, "parts"));
	}
	out_end(o);
}

void status_agent_show(struct context *ctx, const struct presence *p, uint64_t now_s)
{
	CLEANUP_TEXT struct text line = {0};

	set_fields(ctx, p);
	if (!p->runs) {
		text_add(&line, "none");
		if (p->ended) {
			text_add(&line, ", the last one ended ");
			show_time(&line, json_get_u64(p->report, "ended_s"), now_s);
		}
		out_line(ctx->out, "agent     %s", text_get(&line));
		return;
	}
	text_add(&line, "runs");
	if (p->report) {
		text_add(&line, " since ");
		show_time(&line, json_get_u64(p->report, "since_s"), now_s);
	}
	if (p->pid)
		text_addf(&line, ", pid %llu", (unsigned long long)p->pid);
	if (p->late_ms)
		text_add(&line, ", HANGS");
	out_line(ctx->out, "agent     %s", text_get(&line));
}
