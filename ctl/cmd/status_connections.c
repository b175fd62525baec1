// SPDX-License-Identifier: GPL-2.0-only
// Reads the table of the active generation.
#include "ctl/cmd/status_connections.h"

#include "ctl/base/num.h"
#include "ctl/datapath/commit.h"

struct connections_state status_connections_read(const struct instance *i)
{
	CLEANUP_GENERATION struct generation *g = NULL;
	struct connections_state c = {0};
	struct commit_state state;

	if (commit_read(i, &state, NULL) || generation_open(i, state.in_force, &g, NULL) ||
	    connections_read(g, &c, NULL))
		return (struct connections_state){0};
	return c;
}

void status_connections_alarms(const struct connections_state *c, alarm_adder *alarm, void *status)
{
	num_text n;

	if (!c->present)
		return;
	if (!c->attached)
		alarm(status, "connections", "programs",
		      "connections are not counted: their programs are not attached to cgroup 2 "
		      "(weir apply attaches them)");
	if (c->full)
		alarm(status, "connections", "table",
		      "%s %s of sources for which the table had no room: these do not count (write "
		      "a greater 'max')",
		      num_format_grouped(c->full, n),
		      num_plural(c->full, "connection", "connections"));
	if (c->missed)
		alarm(status, "connections", "missed",
		      "%s %s not counted, as memory was short or all CPUs changed the same source "
		      "(weir run counts again each minute)",
		      num_format_grouped(c->missed, n),
		      num_plural(c->missed, "connection was", "connections were"));
}
