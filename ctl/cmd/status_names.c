// SPDX-License-Identifier: GPL-2.0-only
// Shows the age of the answers for host names.
#include "ctl/cmd/status_names.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/show.h"
#include "ctl/control/answered.h"
#include "ctl/datapath/lock.h"

#define TRIES  10
#define TRY_MS 20

struct ages {
	uint64_t names, failing;
	uint64_t oldest_s; // wall clock, UINT64_MAX: of none
	bool followed;     // by the agent
	bool unknown;      // the records cannot be read now
};

static bool read_agent(const struct presence *agent, struct ages *ret)
{
	const struct json *parts = agent->runs ? json_get(agent->report, "parts") : NULL;

	for (size_t n = 0; n < json_length(parts); n++) {
		const struct json *part = json_at(parts, n);
		const char *name = json_get_string(part, "name");

		if (!name || strcmp(name, "names") != 0)
			continue;
		ret->followed = true;
		ret->names = json_get_u64(part, "names");
		ret->failing = json_get_u64(part, "failing");
		if (json_get(part, "oldest_s"))
			ret->oldest_s = json_get_u64(part, "oldest_s");
	}
	return ret->followed;
}

// A command that keeps the lock for long does not keep status waiting.
static int list(const char *instance, struct refresh *ret)
{
	const struct timespec pause = {.tv_nsec = TRY_MS * 1000000};
	struct err policy = {0}; // there is an alarm
	int code = -EAGAIN;

	lock_never_wait();
	for (int tries = 0; tries < TRIES && code == -EAGAIN; tries++) {
		if (tries)
			nanosleep(&pause, NULL);
		refresh_free(ret);
		code = refresh_list(instance, REFRESH_ENTRIES | REFRESH_POLICY, NULL, 0, ret,
				    &policy, NULL);
	}
	return code;
}

static void read_records(const char *instance, struct ages *ret)
{
	CLEANUP_REFRESH struct refresh r = {0};

	ret->unknown = list(instance, &r);
	if (ret->unknown)
		return;
	answered_read(instance, &r);
	ret->names = r.n;
	vec_each (&r, one)
		if (one->since_s && one->since_s < ret->oldest_s)
			ret->oldest_s = one->since_s;
}

static void set_fields(struct out *o, const struct ages *a)
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

// "names     14, oldest answer 3h", with an agent "names     14, 13 fresh, 1 failing, oldest answer 3h".
void status_names_show(struct context *ctx, const struct presence *agent, uint64_t now_s)
{
	struct ages a = {.oldest_s = UINT64_MAX};
	CLEANUP_TEXT struct text line = {0};
	num_text age;

	if (!read_agent(agent, &a))
		read_records(ctx->instance, &a);
	set_fields(ctx->out, &a);
	if (!a.names)
		return;
	text_addf(&line, "%llu", (unsigned long long)a.names);
	if (a.followed)
		text_addf(&line, ", %llu fresh, %llu failing",
			  (unsigned long long)(a.names - a.failing), (unsigned long long)a.failing);
	if (a.oldest_s <= now_s)
		text_addf(&line, ", oldest answer %s",
			  num_format_duration_ms((now_s - a.oldest_s) * 1000, age));
	out_line(ctx->out, "names     %s", text_get(&line));
}
