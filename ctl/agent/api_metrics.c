// SPDX-License-Identifier: GPL-2.0-only
// Keeps the last metrics, and those who wait for the next.
#include "ctl/agent/api_metrics.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <stdint.h>
#include <stdlib.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/api_answer.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/mem.h"

#define FRESH_MS 1000 // an answer that old is good enough
// or as many times older as the command takes: it costs a fifth of a core at most
#define REST       4
#define COMMAND_S  60
#define OUTPUT_MAX (256u << 20)
#define TYPE       "text/plain; version=0.0.4"

// Answers on their way share it.
struct metrics_text {
	unsigned owners;
	size_t len;
	char at[];
};

struct metrics_reader {
	struct api_metrics *of;
	struct metrics_reader *next;
	struct evhttp_request *request;
};

struct api_metrics {
	struct agent *agent;
	struct agent_process *running;
	struct metrics_text *text; // NULL: none yet
	uint64_t began_ms;         // the last command
	uint64_t read_ms, took_ms; // the text
	struct metrics_reader *readers;
};

static void release(const void *data, size_t len, void *text)
{
	struct metrics_text *t = text;

	if (t && !--t->owners)
		free(t);
}

static void send_text(const struct api_metrics *m, struct evhttp_request *request)
{
	struct evbuffer *body = evbuffer_new();

	if (!body || evbuffer_add_reference(body, m->text->at, m->text->len, release, m->text))
		mem_exhausted();
	m->text->owners++;
	api_answer(request, HTTP_OK, TYPE, body);
	evbuffer_free(body);
}

static void keep(struct api_metrics *m, struct evbuffer *output)
{
	size_t len = evbuffer_get_length(output);
	struct metrics_text *text = mem_zalloc(1, sizeof(*text) + len);

	*text = (struct metrics_text){.owners = 1, .len = len};
	evbuffer_remove(output, text->at, len);
	release(NULL, 0, m->text);
	m->text = text;
	m->read_ms = agent_now_ms();
	m->took_ms = m->read_ms - m->began_ms;
}

static void forget(struct metrics_reader *r)
{
	struct metrics_reader **at = &r->of->readers;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r);
}

static void on_client_left(struct evhttp_connection *connection, void *reader)
{
	struct metrics_reader *r = reader;

	if (!evhttp_request_get_connection(r->request)) // libevent has left it to us
		evhttp_request_free(r->request);
	forget(r);
}

static void on_done(void *metrics, const struct process_result *r)
{
	struct api_metrics *m = metrics;

	m->running = NULL;
	if (!r->status)
		keep(m, r->output);
	while (m->readers) {
		struct evhttp_request *request = m->readers->request;

		forget(m->readers);
		if (!r->status)
			send_text(m, request);
		else
			api_refuse(request, HTTP_INTERNAL, "weir metrics has failed");
	}
}

static bool is_fresh(const struct api_metrics *m)
{
	uint64_t rest = m->took_ms * REST;

	return m->text && agent_now_ms() - m->read_ms < (rest > FRESH_MS ? rest : FRESH_MS);
}

static int start(struct api_metrics *m, struct err *err)
{
	static const char *const args[] = {"metrics", NULL};
	const struct process_request request = {
		.args = args,
		.output_max = OUTPUT_MAX,
		.timeout_s = COMMAND_S,
		.modest = true,
		.plain = true,
		.done = on_done,
		.ctx = m,
	};

	if (m->running)
		return 0;
	m->began_ms = agent_now_ms();
	return process_start(m->agent, &request, &m->running, err);
}

void api_metrics_answer(struct evhttp_request *request, struct api_metrics *m)
{
	struct metrics_reader *r;
	struct err err = {0};

	if (is_fresh(m)) {
		send_text(m, request);
		return;
	}
	if (start(m, &err)) {
		api_refuse(request, HTTP_INTERNAL, err.text);
		return;
	}
	r = mem_new(struct metrics_reader);
	*r = (struct metrics_reader){.of = m, .next = m->readers, .request = request};
	m->readers = r;
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_client_left, r);
}

struct api_metrics *api_metrics_new(struct agent *a)
{
	struct api_metrics *m = mem_new(struct api_metrics);

	m->agent = a;
	return m;
}

void api_metrics_free(struct api_metrics *m)
{
	if (!m)
		return;
	process_stop(m->running);
	while (m->readers) {
		evhttp_connection_set_closecb(evhttp_request_get_connection(m->readers->request),
					      NULL, NULL);
		forget(m->readers);
	}
	release(NULL, 0, m->text);
	free(m);
}
