// SPDX-License-Identifier: GPL-2.0-only
// The lines and alarms of weir status about host names.
#include "ctl/cmd/status_names.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/control/answered.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/lock.h"

#define OVERDUE_TIMES 4
#define TTL_UNKNOWN_S 3600 // as the agent assumes at most

#define TRIES  10
#define TRY_MS 20

static bool read_agent(const struct presence *agent, struct status_names *ret)
{
	const struct json *part = presence_part(agent, "names");

	if (!part)
		return false;
	ret->followed = true;
	ret->names = json_get_u64(part, "names");
	ret->failing = json_get_u64(part, "failing");
	if (json_get(part, "oldest_s"))
		ret->oldest_s = json_get_u64(part, "oldest_s");
	ret->next_s = json_get_u64(part, "next_s");
	return true;
}

// A command that keeps the lock for long does not keep status waiting.
static int list(const char *instance, struct refresh *ret)
{
	const struct timespec pause = {.tv_nsec = TRY_MS * 1000000};
	struct err policy = {0}; // there is an alarm
	int code = -EAGAIN;

	lock_never_wait(true);
	for (int tries = 0; tries < TRIES && code == -EAGAIN; tries++) {
		if (tries)
			nanosleep(&pause, NULL);
		refresh_free(ret);
		code = refresh_list(instance, REFRESH_ENTRIES | REFRESH_POLICY, NULL, 0, ret,
				    &policy, NULL);
	}
	return code;
}

bool status_is_overdue(uint64_t last_s, uint64_t every_s, uint64_t now_s)
{
	uint64_t late_s = every_s * OVERDUE_TIMES;

	return now_s > last_s + every_s + (late_s > OVERDUE_LEAST_S ? late_s : OVERDUE_LEAST_S);
}

uint64_t status_since_boot_s(uint64_t at_s, uint64_t now_s)
{
	uint64_t up_s = time_s(CLOCK_BOOTTIME), boot_s = now_s > up_s ? now_s - up_s : 0;

	return at_s > boot_s ? at_s : boot_s;
}

static void note_overdue(const struct refresh_name *one, uint64_t now_s, struct status_names *ret)
{
	uint64_t since_s = status_since_boot_s(one->since_s, now_s);
	uint64_t ttl_s = one->ttl_s ? one->ttl_s : TTL_UNKNOWN_S;

	if (!status_is_overdue(since_s, ttl_s, now_s))
		return;
	ret->overdue++;
	if (now_s - since_s <= ret->late_age_s)
		return;
	ret->late_age_s = now_s - since_s;
	ret->late_ttl_s = ttl_s;
	snprintf(ret->late, sizeof(ret->late), "%s", one->name);
}

static void read_records(const char *instance, struct status_names *ret)
{
	CLEANUP_REFRESH struct refresh r = {0};
	uint64_t now_s = (uint64_t)time(NULL);

	ret->unknown = list(instance, &r);
	if (ret->unknown)
		return;
	answered_read(instance, &r);
	ret->names = r.n;
	vec_each (&r, one) {
		if (one->since_s && one->since_s < ret->oldest_s)
			ret->oldest_s = one->since_s;
		note_overdue(one, now_s, ret);
	}
}

void status_names_read(const char *instance, const struct presence *agent, struct status_names *ret)
{
	*ret = (struct status_names){.oldest_s = UINT64_MAX};
	if (!read_agent(agent, ret))
		read_records(instance, ret);
}

static void set_names(struct out *o, const struct status_names *a)
{
	if (a->unknown) {
		out_set_json(o, "names", NULL);
		return;
	}
	out_object(o, "names");
	out_set_u64(o, "names", a->names);
	out_set_bool(o, "followed", a->followed);
	if (a->followed) {
		out_set_u64(o, "fresh", a->names - a->failing);
		out_set_u64(o, "failing", a->failing);
	}
	out_set_time(o, "oldest_answer", a->oldest_s);
	out_end(o);
}

// "names     14, oldest answer 3h", with an agent "names     14, 13 fresh, 1 failing, oldest answer 3h, next in 12s".
void status_names_show(struct context *ctx, const struct status_names *names, uint64_t now_s)
{
	CLEANUP_TEXT struct text line = {0};
	num_text age, next;

	set_names(ctx->out, names);
	if (!names->names)
		return;
	text_addf(&line, "%llu", (unsigned long long)names->names);
	if (names->followed)
		text_addf(&line, ", %llu fresh, %llu failing",
			  (unsigned long long)(names->names - names->failing),
			  (unsigned long long)names->failing);
	if (names->oldest_s <= now_s)
		text_addf(&line, ", oldest answer %s",
			  num_format_duration_ms((now_s - names->oldest_s) * 1000, age));
	if (names->next_s > now_s)
		text_addf(&line, ", next in %s",
			  num_format_duration_ms((names->next_s - now_s) * 1000, next));
	out_line(ctx->out, "names     %s", text_get(&line));
}

void status_names_alarms(const struct context *ctx, const char *revision, alarm_adder *alarm,
			 void *status)
{
	CLEANUP_ENVIRONMENT struct environment record;
	struct revision r = {0};

	environment_replay(&record);
	if (revision[0])
		revisions_load_names(ctx->instance, revision, &record, &r, NULL);
	revision_free(&r);
	vec_each (&record.names, name)
		if (name->refused_s)
			alarm(status, "name", name->name,
			      "all addresses of '%s' are protected: the policy %s", name->name,
			      environment_has_addresses(name) ? "keeps the previous ones"
							      : "has no address of it");
}
