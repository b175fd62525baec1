// SPDX-License-Identifier: GPL-2.0-only
// Reads the records of `log` and keeps the last ones.
#include "ctl/cmd/watch_last.h"

#include <stdlib.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/cmd/watch_packet.h"
#include "ctl/datapath/logs.h"

struct watch_last {
	struct event *at; // the event n at n % most
	size_t most, n;
};

static void keep(void *last, const struct event *event, uint64_t missed)
{
	struct watch_last *l = last;

	l->at[l->n++ % l->most] = *event;
}

static int read_logs(const struct instance *i, struct watch_last *l, struct err *err)
{
	struct logs *logs = NULL;
	int code = logs_open(i, LOGS_LOOK, &logs, err);

	if (code)
		return code;
	logs_take(logs, keep, l);
	logs_close(logs);
	return 0;
}

static void set_event(struct out *o, struct culprits *c, const struct event *event)
{
	uint64_t ago_s = (time_ns(CLOCK_MONOTONIC) - event->time_ns) / 1000000000u;
	struct watch_packet packet;

	watch_packet_read(c, event, &packet);
	watch_packet_complete(c, event, &packet);
	out_object(o, NULL);
	out_set_time(o, "at", time_s(CLOCK_REALTIME) - ago_s);
	watch_packet_set(o, &packet);
	out_end(o);
}

static void last_free(struct watch_last *l)
{
	free(l->at);
}

int watch_last(struct context *ctx, const char *key, size_t most, struct err *err)
{
	CLEANUP(last_free)
	struct watch_last l = {.at = mem_zalloc(most, sizeof(*l.at)), .most = most};
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP(culprits_free) struct culprits culprits = {0};
	int code = instance_open(ctx->instance, &i, err);

	if (code)
		return code;
	if ((code = read_logs(i, &l, err)))
		return code;
	culprits.instance = i;
	out_array(ctx->out, key);
	for (size_t n = l.n > most ? l.n - most : 0; n < l.n; n++)
		set_event(ctx->out, &culprits, &l.at[n % most]);
	out_end(ctx->out);
	return 0;
}
