// SPDX-License-Identifier: GPL-2.0-only
// Runs control/refresh in a copy, and moves its names through the pipe: both ends are one program,
// so they are structs, each followed by its name.
#include "ctl/agent/refreshing.h"

#include <event2/buffer.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/agent.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/control/answered.h"
#include "ctl/datapath/bpffs.h"

#define OUTPUT_MAX (256u << 20)
#define TIMEOUT_S  60
#define PLACES_S   300 // databases are large

struct refreshing {
	const struct agent *agent;
	struct refreshing_request request;
	struct agent_process *process;
};

struct head {
	size_t n;
	bool trial, switched;
	struct refresh_refused refused;
};

// ---- in the copy --------------------------------------------------------------------------------

static void ask(const struct refreshing *own, struct refresh *r, struct refresh_refused *refused)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	const struct agent *a = own->agent;
	char path[PATH_MAX];
	struct apply_options options = {
		.instance = a->instance,
		.command = a->command,
		.session = a->session,
		.dns = *a->dns,
	};

	// The file of the network namespace may be newer than the agent, or have been removed.
	if (a->netns) {
		snprintf(path, sizeof(path), "/etc/netns/%s/resolv.conf", a->netns);
		options.dns.resolv_conf = file_exists(path) ? path : NULL;
	}
	refresh_run(c, &options, own->request.where, r, refused, NULL);
}

// A name without its pointer and its sentence, which follow.
#define WHY_AT    offsetof(struct refresh_name, why)
#define AFTER_WHY offsetof(struct refresh_name, kept)

static void put_name(const struct refresh_name *one, struct text *output)
{
	text_addn(output, (const char *)one, WHY_AT);
	text_addn(output, (const char *)one + AFTER_WHY, sizeof(*one) - AFTER_WHY);
	text_addn(output, one->name, strlen(one->name) + 1);
	text_addn(output, one->why, strlen(one->why) + 1);
}

static void put(const struct refresh *r, const struct refresh_refused *refused, struct text *output)
{
	const struct head head = {
		.n = r->n, .trial = r->trial, .switched = r->switched, .refused = *refused};

	text_addn(output, (const char *)&head, sizeof(head));
	vec_each (r, one)
		put_name(one, output);
}

static int work(void *ctx, struct text *output, struct err *err)
{
	const struct refreshing *own = ctx;
	const struct refreshing_request *q = &own->request;
	const char *instance = own->agent->instance;
	CLEANUP_REFRESH struct refresh r = {0};
	struct refresh_refused refused = {0};
	int code;

	if (!bpffs_exist(instance))
		return err_input(err, "instance '%s' is not attached", instance);
	if ((code = refresh_list(instance, q->where, q->names, q->n, &r, &refused.policy, err)))
		return code;
	if (q->lists)
		answered_read(instance, &r);
	else
		ask(own, &r, &refused);
	put(&r, &refused, output);
	return 0;
}

// ---- in the agent -------------------------------------------------------------------------------

static const char *take_name(const char *at, struct refresh_name *ret)
{
	*ret = (struct refresh_name){0};
	memcpy(ret, at, WHY_AT);
	at += WHY_AT;
	memcpy((char *)ret + AFTER_WHY, at, sizeof(*ret) - AFTER_WHY);
	at += sizeof(*ret) - AFTER_WHY;
	ret->name = mem_strdup(at);
	at += strlen(at) + 1;
	snprintf(ret->why, sizeof(ret->why), "%s", at);
	return at + strlen(at) + 1;
}

// A copy that has ended well has written everything.
static void take(const struct process_result *from, struct refreshing_result *to)
{
	struct head head = {0};
	err_full_text full;
	const char *at;

	if (from->status) {
		to->failed = from->err;
		snprintf(to->failed.text, sizeof(to->failed.text), "%s",
			 err_full(&from->err, full));
		return;
	}
	process_take(from, &head, sizeof(head));
	to->names.trial = head.trial;
	to->names.switched = head.switched;
	to->refused = head.refused;
	at = (const char *)evbuffer_pullup(from->output, -1);
	for (size_t n = 0; n < head.n; n++)
		at = take_name(at, vec_add(&to->names));
}

static void on_done(void *ctx, const struct process_result *from)
{
	struct refreshing *own = ctx;
	const struct refreshing_request request = own->request;
	struct refreshing_result result = {0};

	free(own);
	take(from, &result);
	request.done(request.ctx, &result);
	refresh_free(&result.names);
}

int refreshing_start(struct agent *a, const struct refreshing_request *request,
		     struct refreshing **ret, struct err *err)
{
	struct refreshing *own = mem_new(struct refreshing);
	const struct process_request process = {
		.run = work,
		.output_max = OUTPUT_MAX,
		.timeout_s =
			request->where & REFRESH_PLACES && !request->lists ? PLACES_S : TIMEOUT_S,
		.done = on_done,
		.ctx = own,
	};
	int code;

	*own = (struct refreshing){.agent = a, .request = *request};
	if ((code = process_start(a, &process, &own->process, err))) {
		free(own);
		return code;
	}
	*ret = own;
	return 0;
}

void refreshing_stop(struct refreshing *own)
{
	if (!own)
		return;
	process_stop(own->process);
	free(own);
}
