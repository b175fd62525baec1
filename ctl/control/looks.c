// SPDX-License-Identifier: GPL-2.0-only
// Judges the packets of a backend since the last evaluation, and saves the evaluations.
#include "ctl/control/looks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/control/kept.h"
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

static int read_look(const struct json *from, struct look *ret)
{
	const char *service = json_get_string(from, "service");
	const char *address = json_get_string(from, "address");

	if (!service || !address || strlen(service) >= sizeof(ret->service))
		return -EBADMSG;
	*ret = (struct look){
		.port = (uint16_t)json_get_u64(from, "port"),
		.id = (uint16_t)json_get_u64(from, "id"),
		.at = {json_get_u64(from, "packets"), json_get_u64(from, "opened")},
		.at_ms = json_get_u64(from, "at_ms"),
		.silent = json_is_yes(json_get(from, "silent")),
		.judged = {json_get_u64(from, "judged_packets"),
			   json_get_u64(from, "judged_opened")},
		.since_ms = json_get_u64(from, "since_ms"),
	};
	snprintf(ret->service, sizeof(ret->service), "%s", service);
	if (!strcmp(address, "here"))
		return 0;
	return addr_parse(address, strlen(address), &ret->addr, NULL) ? -EBADMSG : 0;
}

static int read_looks(const struct json *list, struct look_list *ret)
{
	for (size_t i = 0; i < json_length(list); i++) {
		struct look look;
		int code = read_look(json_at(list, i), &look);

		if (code)
			return code;
		vec_push(ret, look);
	}
	return 0;
}

void looks_open(const char *instance, uint32_t progs_id, struct looks *ret)
{
	CLEANUP_JSON struct json *j = NULL;

	*ret = (struct looks){
		.path = mem_printf("%s/%s/looks", WEIR_RUN_FOLDER, instance),
		.progs_id = progs_id,
	};
	j = kept_read(ret->path, progs_id);
	if (j && read_looks(json_get(j, "backends"), &ret->before))
		vec_free(&ret->before);
}

static struct json *look_json(const struct look *l)
{
	struct json *j = json_object();
	addr_text address = "here";

	if (l->addr.family)
		addr_format(&l->addr, address);
	json_set(j, "service", json_string(l->service));
	json_set(j, "address", json_string(address));
	json_set(j, "port", json_u64(l->port));
	json_set(j, "id", json_u64(l->id));
	json_set(j, "packets", json_u64(l->at.packets));
	json_set(j, "opened", json_u64(l->at.opened));
	json_set(j, "at_ms", json_u64(l->at_ms));
	json_set(j, "silent", json_bool(l->silent));
	json_set(j, "judged_packets", json_u64(l->judged.packets));
	json_set(j, "judged_opened", json_u64(l->judged.opened));
	json_set(j, "since_ms", json_u64(l->since_ms));
	return j;
}

void looks_save(const struct looks *l)
{
	CLEANUP_JSON struct json *j = NULL;
	struct json *list;

	if (!l->changed)
		return;
	j = json_object();
	list = json_array();
	vec_each (&l->now, look)
		json_append(list, look_json(look));
	json_set(j, "backends", list);
	kept_write(l->path, l->progs_id, j);
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
