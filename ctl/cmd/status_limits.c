// SPDX-License-Identifier: GPL-2.0-only
// The table of weir status --limits.
#include "ctl/cmd/status_limits.h"

#include "ctl/base/mem.h"
#include "ctl/datapath/overlay.h"

static void show(struct out *o, const char *name, size_t used, size_t max)
{
	out_row(o);
	out_cell(o, "table", "TABLE", name);
	out_cell_u64(o, "used", "USED", used);
	out_cell_u64(o, "max", "MAX", max);
}

// Connections in the blocks that take new ones, and about how many find a place there.
static void show_places(struct out *o, const struct nat_reading *nat, bool fullnat, uint8_t family)
{
	struct nat_use_of_places used = nat_used(nat, fullnat, family);
	CLEANUP_FREE char *name =
		mem_printf("connections of %s IPv%u", fullnat ? "fullnat" : "nat", family);

	if (used.blocks)
		show(o, name, used.living, used.blocks * NAT_BLOCK_ROOM);
}

void status_limits_show(struct context *ctx, const struct instance *i,
			const struct generation_about *about, const size_t *set_used,
			const struct connections_state *connections, const struct nat_reading *nat)
{
	static const char *const maps[OVERLAY_TABLES] = {
		"IPv4 hosts",    "IPv6 hosts",    "IPv4 prefixes",
		"IPv6 prefixes", "outgoing IPv4", "outgoing IPv6",
	};
	size_t used[OVERLAY_TABLES] = {0};

	if (overlay_fill(i, used, NULL))
		return;
	out_table(ctx->out, "limits");
	for (uint32_t n = 0; n < about->n_sets; n++) {
		CLEANUP_FREE char *name = mem_printf("set @%s", about->sets[n].name);

		show(ctx->out, name, set_used[n], about->sets[n].max);
	}
	if (connections->present)
		show(ctx->out, "sources with connections", connections->sources, connections->room);
	for (int mode = 0; mode < 2; mode++) {
		show_places(ctx->out, nat, mode, 4);
		show_places(ctx->out, nat, mode, 6);
	}
	for (size_t m = 0; m < ARRAY_SIZE(maps); m++)
		show(ctx->out, maps[m], used[m], i->meta.max_entries);
	out_table_end(ctx->out);
}
