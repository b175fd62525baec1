// SPDX-License-Identifier: GPL-2.0-only
// Clients of a stream share the text of a document.
#include "ctl/agent/live.h"

#include <event2/http.h>
#include <stdlib.h>

#include "ctl/agent/api_answer.h"
#include "ctl/agent/client_text.h"
#include "ctl/agent/clients.h"
#include "ctl/base/mem.h"

#define UNREAD_MAX (512u << 10) // bytes; with more a client misses the next document

struct live_reader {
	struct live_stream *of;
	struct live_reader *next;
	struct evhttp_request *request;
	enum live_from from;
	bool reads_state;
};

struct live_stream {
	const char *path;
	struct live_reader *readers;
	size_t n[LIVE_KINDS], n_from[LIVE_FROMS];
	struct client_text *last[LIVE_KINDS]; // NULL: none
};

static void forget_reader(struct live_reader *r)
{
	struct live_reader **at = &r->of->readers;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->of->n[LIVE_RATES]--;
	r->of->n_from[r->from]--;
	r->of->n[LIVE_STATE] -= r->reads_state;
	free(r);
}

static void on_client_left(struct evhttp_connection *connection, void *reader)
{
	struct live_reader *r = reader;

	if (!evhttp_request_get_connection(r->request)) // libevent has left it to us
		evhttp_request_free(r->request);
	forget_reader(r);
}

struct live_stream *live_new(const char *path)
{
	struct live_stream *l = mem_new(struct live_stream);

	l->path = path;
	return l;
}

void live_free(struct live_stream *l)
{
	if (!l)
		return;
	while (l->readers) {
		struct evhttp_request *request = l->readers->request;

		evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
		client_streams(evhttp_request_get_connection(request), false);
		forget_reader(l->readers);
		evhttp_send_reply_end(request);
	}
	for (enum live_kind kind = 0; kind < LIVE_KINDS; kind++)
		live_forget(l, kind);
	free(l);
}

void live_forget(struct live_stream *l, enum live_kind kind)
{
	client_text_release(TAKE_PTR(l->last[kind]));
}

static bool has_room(const struct live_reader *r)
{
	return client_unread(evhttp_request_get_connection(r->request)) < UNREAD_MAX;
}

void live_publish(struct live_stream *l, enum live_kind kind, const char *line, size_t len)
{
	struct client_text *text = client_text_new(line, len);

	live_forget(l, kind);
	l->last[kind] = text;
	for (struct live_reader *r = l->readers, *next; r; r = next) {
		next = r->next;
		if ((kind == LIVE_RATES || r->reads_state) && has_room(r))
			client_text_send(text, r->request);
	}
}

static void add_reader(struct live_stream *l, struct evhttp_request *request, enum live_from from,
		       bool reads_state)
{
	struct live_reader *r = mem_new(struct live_reader);

	*r = (struct live_reader){.of = l,
				  .next = l->readers,
				  .request = request,
				  .from = from,
				  .reads_state = reads_state};
	l->readers = r;
	l->n[LIVE_RATES]++;
	l->n_from[from]++;
	l->n[LIVE_STATE] += reads_state;
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_client_left, r);
}

void live_answer(struct live_stream *l, struct evhttp_request *request, enum live_from from,
		 bool reads_state)
{
	static const size_t most[] = {[LIVE_FROM_API] = 256, [LIVE_FROM_PAGE] = 64};

	if (l->n_from[from] >= most[from]) {
		CLEANUP_FREE char *why = mem_printf("too many clients read %s", l->path);

		api_refuse(request, HTTP_SERVUNAVAIL, why);
		return;
	}
	add_reader(l, request, from, reads_state);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
			  "application/x-ndjson");
	evhttp_send_reply_start(request, HTTP_OK, NULL);
	client_streams(evhttp_request_get_connection(request), true);
	if (reads_state && l->last[LIVE_STATE])
		client_text_send(l->last[LIVE_STATE], request);
	if (l->last[LIVE_RATES])
		client_text_send(l->last[LIVE_RATES], request);
}

size_t live_readers(const struct live_stream *l, enum live_kind kind)
{
	return l->n[kind];
}
