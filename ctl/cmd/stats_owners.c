// SPDX-License-Identifier: GPL-2.0-only
#include "ctl/cmd/stats_owners.h"

#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/cmd/show.h"
#include "ctl/control/entries/sums.h"

static void show_sum(struct out *o, const struct owner_sum *sum)
{
	out_row(o);
	if (sum->list[0])
		out_cell(o, "list", "LIST", sum->list);
	out_set_string(o, "origin", sum->origin);
	out_cell(o, NULL, "ORIGIN", sum->origin[0] ? sum->origin : "(none)");
	out_cell(o, "verb", "VERB", sum->verb);
	out_tint(o, strcmp(sum->verb, "block") ? OUT_GREEN : OUT_RED);
	out_cell_u64(o, "entries", "ENTRIES", sum->entries);
	out_cell_u64(o, "packets", "PACKETS", sum->total.packets);
	out_cell_u64(o, "bytes", "BYTES", sum->total.bytes);
}

static void show_owners(struct out *o, const char *key, const struct owner_sums *sums)
{
	if (sums->n)
		out_line(o, "%s", "");
	out_table(o, key);
	vec_each (sums, sum)
		show_sum(o, sum);
	out_table_end(o);
}

int stats_owners_show(struct context *ctx, struct err *err)
{
	CLEANUP(owner_sums_free) struct owner_sums origins = {0}, lists = {0};
	CLEANUP_STORE struct store *store = NULL;
	CLEANUP_ENTRIES struct entries entries = {0};
	const struct entry *entry;
	size_t number = 0;
	int code = store_read(ctx->instance, &store, err);

	if (code)
		return code;
	show_damage(&store->damaged);
	entries = entries_of(store);
	while ((entry = entries_next(&entries))) {
		if ((code = entries_count(&entries, err)))
			return code;
		owner_sums_add(&origins, &lists, entry, ++number, NULL);
	}
	show_owners(ctx->out, "origins", &origins);
	show_owners(ctx->out, "lists", &lists);
	return 0;
}
