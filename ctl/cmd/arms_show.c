// SPDX-License-Identifier: GPL-2.0-only
// Devices of services: warnings and a table.
#include "ctl/cmd/arms_show.h"

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/control/fleet.h"

void arms_look(const char *instance, struct arms_findings *ret)
{
	CLEANUP_FLEET struct fleet f = {.lock = -1};
	CLEANUP_ARMS struct arms arms = {0};

	if (fleet_open(instance, NULL, &f, NULL))
		return;
	arms_find(&f, &arms);
	arms_check(&arms, false, ret);
	arms_forget(instance, &arms);
}

static void tell(struct context *ctx, const struct arms_findings *list, bool problems)
{
	vec_each (list, one) {
		CLEANUP_FREE char *text = mem_printf("%s (%s)", one->text, one->mend);

		if (one->problem != problems)
			continue;
		out_item_string(ctx->out, text);
		if (problems)
			log_warning("%s", text);
		else
			log_notice("%s", text);
	}
}

void arms_report(struct context *ctx, char *const *warnings, size_t n,
		 const struct arms_findings *list)
{
	out_array(ctx->out, "warnings");
	for (size_t i = 0; i < n; i++) {
		out_item_string(ctx->out, warnings[i]);
		log_warning("%s", warnings[i]);
	}
	tell(ctx, list, true);
	out_end(ctx->out);
	out_array(ctx->out, "notices");
	tell(ctx, list, false);
	out_end(ctx->out);
}

void arms_table(struct out *o, const struct arms *a)
{
	out_table(o, "devices");
	vec_each (a, arm) {
		out_row(o);
		out_cell(o, "device", "DEVICE", arm->link.name);
		out_cell(o, "carries", "CARRIES",
			 arm->in && arm->out ? "in, out"
			 : arm->in           ? "in"
					     : "out");
		out_cell(o, "mode", "MODE", !arm->in ? "" : arm->native ? "native" : "generic");
		if (arm->lost.known)
			out_cell_u64(o, "lost", "LOST", arm->lost.frames);
		else
			out_cell(o, "lost", "LOST", "");
		out_cell(o, "lost_counter", "COUNTER", arm->lost.frames ? arm->lost.counter : "");
	}
	out_table_end(o);
}
