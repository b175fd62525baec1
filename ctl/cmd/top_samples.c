// SPDX-License-Identifier: GPL-2.0-only
// Two ways to the same reading.
#include "ctl/cmd/top_samples.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl/cmd/agent_stream.h"
#include "ctl/control/sampling.h"

#define PATH "/v1/samples"

struct top_samples {
	struct top_keys keys; // for the ring, with its own databases
	struct instance *instance;
	struct sampling *ring;
	struct agent_stream *agent;     // NULL: the ring
	struct sampled_reading reading; // of the agent
	uint64_t number;
	int code; // of the last document, with `why` set
	struct err why;
};

void top_samples_close(struct top_samples *s)
{
	if (!s)
		return;
	sampling_close(s->ring);
	instance_free(s->instance);
	agent_stream_close(s->agent);
	sampled_reading_free(&s->reading);
	top_keys_free(&s->keys);
	free(s);
}

static void cleanup(struct top_samples **s)
{
	top_samples_close(*s);
}

static int open_ring(struct top_samples *s, const char *instance, struct err *err)
{
	int code = top_keys_open(&s->keys, err);

	if (code || (code = instance_open(instance, &s->instance, err)) ||
	    (code = sampling_open(s->instance, &s->ring, err)))
		return code;
	sampling_place(s->ring, top_keys_place, &s->keys);
	return 0;
}

// A command of the agent reads the ring for all others.
int top_samples_open(const struct context *ctx, const struct top_keys *keys,
		     struct top_samples **ret, struct err *err)
{
	CLEANUP(cleanup) struct top_samples *s = mem_new(struct top_samples);
	int code = 0;

	s->keys.all = keys->all;
	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++)
		s->keys.by[by] = keys->by[by];
	if (!ctx->by && (code = agent_stream_open(ctx->instance, PATH, &s->agent, err)))
		return code;
	if (!s->agent && (code = open_ring(s, ctx->instance, err)))
		return code;
	*ret = TAKE_PTR(s);
	return 0;
}

int top_samples_fd(const struct top_samples *s)
{
	return s->agent ? agent_stream_fd(s->agent) : -1;
}

uint64_t top_samples_number(const struct top_samples *s)
{
	return s->number;
}

// ---- the agent ----------------------------------------------------------------------------------

static int check_keys(const struct top_samples *s, struct err *err)
{
	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++) {
		if (!s->keys.by[by] || s->reading.known[by] || s->keys.all)
			continue;
		err_input(err, "the agent has no database for the key '%s'",
			  sampled_about[by].word);
		return err_hint(err, "weir --geo FILE run names one to the agent");
	}
	return 0;
}

static int take_document(struct top_samples *s, const struct json *document, struct err *err)
{
	const char *why = json_get_string(json_get(document, "error"), "text");

	if (why) {
		err_refused(err, "the agent cannot read samples: %s", why);
		return -EIO;
	}
	sampled_reading_free(&s->reading);
	sampled_reading_take(document, &s->reading);
	s->number++;
	return check_keys(s, err);
}

static void on_document(void *ctx, const struct json *document)
{
	struct top_samples *s = ctx;

	if (!s->code)
		s->code = take_document(s, document, &s->why);
}

static int take_documents(struct top_samples *s, struct err *err)
{
	int code = agent_stream_poll(s->agent, 0, on_document, s);

	if (code == -EPIPE)
		return err_stated(err, EPIPE, "the agent has ended");
	if (s->code)
		*err = s->why;
	return s->code;
}

// ---- both ---------------------------------------------------------------------------------------

int top_samples_take(struct top_samples *s, struct err *err)
{
	if (s->agent)
		return take_documents(s, err);
	s->number++;
	return sampling_poll(s->ring, err);
}

bool top_samples_read(const struct top_samples *s, struct sampled_reading *ret)
{
	if (!s->number)
		return false;
	if (s->ring)
		sampling_read(s->ring, s->keys.by, ret);
	else
		sampled_reading_copy(&s->reading, ret);
	return true;
}
