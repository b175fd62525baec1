// SPDX-License-Identifier: GPL-2.0-only
// Loads, changes and commits records for the functions of the agent and of attach.
#include "ctl/control/entries/upkeep.h"

#include "ctl/control/entries/store_parts.h"

int entries_edit(const struct entries_edit *e, size_t *ret_changed, struct err *err)
{
	CLEANUP_STORE struct store *b = NULL;
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	CLEANUP_FREE uint64_t *who = mem_zalloc(e->names_n, sizeof(*who));
	size_t changed;
	int code = store_open(e->instance, e->command, &b, err);

	if (code)
		return code;
	for (size_t n = 0; n < e->names_n; n++)
		who[n] = journal_who("", e->names[n]);
	if ((code = store_load_who(b, who, e->names_n, err)))
		return code;
	if ((code = store_load(b, e->prefixes, e->prefixes_n, err)))
		return code;
	changed = e->edit(e->ctx, &b->records, b->clock.wall_ms / 1000);
	if (changed && (code = store_commit(b, false, &plan, err)))
		return code;
	*ret_changed = changed;
	return 0;
}

int entries_expire(const char *instance, const char *command, uint32_t from, uint32_t n,
		   size_t *ret_removed, struct err *err)
{
	CLEANUP_STORE struct store *b = NULL;
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	int code = store_open(instance, command, &b, err);
	size_t due;

	if (code)
		return code;
	b->hurry = true;
	if ((code = store_load_expired(b, from, n, err)))
		return code;
	due = b->due;
	if ((code = store_commit(b, false, &plan, err)))
		return code;
	*ret_removed = due;
	return 0;
}

static int restore(struct store *b, size_t *ret_n, struct err *err)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	bool any;
	int code = store_restore(b, ret_n, &any, err);

	return code || !any ? code : store_commit(b, true, &plan, err);
}

int entries_restore(struct instance *i, size_t *ret_n, struct err *ret_damaged, struct err *err)
{
	CLEANUP_STORE struct store *b = NULL;
	int code = store_open_with(i, -1, &b, err);

	if (code)
		return code;
	code = restore(b, ret_n, err);
	*ret_damaged = b->damaged;
	b->instance = NULL; // the caller's
	return code;
}
