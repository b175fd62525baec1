// SPDX-License-Identifier: GPL-2.0-only
// Judges the packets of a backend since the last evaluation, and saves the evaluations.
#include "ctl/control/looks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"

#define OPENING_TENTHS 9

// ---- one backend --------------------------------------------------------------------------------

static bool is_silent(const struct look_count *c)
{
	return c->opened * 10 >= c->packets * OPENING_TENTHS;
}

static bool began_anew(struct look *l, const struct look_count *now)
{
	if (now->packets >= l->at.packets && now->opened >= l->at.opened)
		return false;
	l->at = l->judged = (struct look_count){0};
	l->at_ms = l->since_ms = 0;
	l->silent = false;
	return true;
}

bool look_judge(struct look *l, const struct look_count *now, bool gets_flows, uint64_t now_ms)
{
	bool anew = began_anew(l, now);
	struct look_count more = {now->packets - l->at.packets, now->opened - l->at.opened};
	bool silent = gets_flows && is_silent(&more);

	if (more.packets < LOOK_PACKETS && (gets_flows || !l->silent))
		return anew;
	if (silent && l->at_ms && now_ms - l->at_ms < LOOK_SILENT_MS)
		return anew;
	l->silent = silent;
	l->judged = more;
	l->since_ms = l->at_ms;
	l->at = *now;
	l->at_ms = now_ms;
	return true;
}

// ---- the file -----------------------------------------------------------------------------------

// Rows of another instance are not used.
static int read_row(void *ctx, const struct json *row)
{
	struct looks *looks = ctx;
	struct look look = {
		.id = (uint16_t)json_get_u64(row, "id"),
		.at = {json_get_u64(row, "packets"), json_get_u64(row, "opened")},
		.at_ms = json_get_u64(row, "at_ms"),
		.silent = json_is_yes(json_get(row, "silent")),
		.judged = {json_get_u64(row, "judged_packets"), json_get_u64(row, "judged_opened")},
		.since_ms = json_get_u64(row, "since_ms"),
	};

	if (state_get_backend(row, look.service, &look.addr, &look.port))
		return -EBADMSG;
	if (json_get_u64(row, "progs_id") == looks->progs_id)
		vec_push(&looks->before, look);
	return 0;
}

static const struct state_kind look_kind = {.name = "look", .row = read_row};

void looks_open(const char *instance, uint32_t progs_id, struct looks *ret)
{
	*ret = (struct looks){
		.path = mem_printf("%s/%s/looks", WEIR_RUN_FOLDER, instance),
		.progs_id = progs_id,
	};
	if (state_read(ret->path, &look_kind, ret, NULL))
		vec_free(&ret->before);
}

static void add_look(struct json_writer *file, const struct look *l, uint32_t progs_id)
{
	state_add(file, &look_kind);
	state_add_backend(file, l->service, &l->addr, l->port);
	json_write_u64(file, "progs_id", progs_id);
	json_write_u64(file, "id", l->id);
	json_write_u64(file, "packets", l->at.packets);
	json_write_u64(file, "opened", l->at.opened);
	json_write_u64(file, "at_ms", l->at_ms);
	json_write_bool(file, "silent", l->silent);
	json_write_u64(file, "judged_packets", l->judged.packets);
	json_write_u64(file, "judged_opened", l->judged.opened);
	json_write_u64(file, "since_ms", l->since_ms);
	json_write_end(file);
}

void looks_save(const struct looks *l)
{
	CLEANUP(json_writer_free) struct json_writer file = {0};

	if (!l->changed)
		return;
	vec_each (&l->now, look)
		add_look(&file, look, l->progs_id);
	state_note(l->path, &file);
}

void looks_free(struct looks *l)
{
	free(l->path);
	vec_free(&l->before);
	vec_free(&l->now);
	*l = (struct looks){0};
}

// ---- all backends -------------------------------------------------------------------------------

static bool is_of(const struct look *a, const struct look *b)
{
	return a->id == b->id && a->port == b->port && !addr_compare(&a->addr, &b->addr) &&
	       !strcmp(a->service, b->service);
}

// Both lists mostly have the same order.
static const struct look *find(struct looks *l, const struct look *of)
{
	for (size_t n = 0; n < l->before.n; n++) {
		size_t i = (l->next + n) % l->before.n;

		if (!is_of(&l->before.at[i], of))
			continue;
		l->next = i + 1;
		return &l->before.at[i];
	}
	return NULL;
}

const struct look *looks_at(struct looks *l, const struct lb_service *s, const struct lb_member *m,
			    const struct look_count *now, bool gets_flows, uint64_t now_ms)
{
	struct look look = {.port = m->port, .id = m->id};
	const struct look *before;

	snprintf(look.service, sizeof(look.service), "%s", s->name);
	lb_member_address(m, &look.addr);
	before = find(l, &look);
	if (before)
		look = *before;
	if (look_judge(&look, now, gets_flows, now_ms))
		l->changed = true;
	vec_push(&l->now, look);
	return vec_last(&l->now);
}
