// SPDX-License-Identifier: GPL-2.0-only
// Clients of a stream share the text of a document.
#include "ctl/agent/live.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/api_answer.h"
#include "ctl/agent/clients.h"
#include "ctl/base/mem.h"

#define READERS_MAX 256
#define UNREAD_MAX  (512u << 10) // bytes; with more a client misses the next document

// Answers on their way share it.
struct live_text {
	unsigned owners;
	size_t len;
	char at[];
};

struct live_reader {
	struct live_stream *of;
	struct live_reader *next;
	struct evhttp_request *request;
};

struct live_stream {
	struct live_reader *readers;
	size_t n;
	struct live_text *last; // NULL: none
};

static void release(const void *data, size_t len, void *text)
{
	struct live_text *t = text;

	if (t && !--t->owners)
		free(t);
}

static void send_text(struct live_text *t, struct evhttp_request *request)
{
	struct evbuffer *chunk = evbuffer_new();

	if (!chunk || evbuffer_add_reference(chunk, t->at, t->len, release, t))
		mem_exhausted();
	t->owners++;
	evhttp_send_reply_chunk(request, chunk);
	evbuffer_free(chunk);
}

static void forget_reader(struct live_reader *r)
{
	struct live_reader **at = &r->of->readers;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->of->n--;
	free(r);
}

static void on_client_left(struct evhttp_connection *connection, void *reader)
{
	struct live_reader *r = reader;

	if (!evhttp_request_get_connection(r->request)) // libevent has left it to us
		evhttp_request_free(r->request);
	forget_reader(r);
}

struct live_stream *live_new(void)
{
	return mem_new(struct live_stream);
}

void live_free(struct live_stream *l)
{
	if (!l)
		return;
	while (l->readers) {
		struct evhttp_request *request = l->readers->request;

		evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
		forget_reader(l->readers);
		evhttp_send_reply_end(request);
	}
	live_forget(l);
	free(l);
}

void live_forget(struct live_stream *l)
{
	release(NULL, 0, TAKE_PTR(l->last));
}

void live_publish(struct live_stream *l, const char *line, size_t len)
{
	struct live_text *text = mem_zalloc(1, sizeof(*text) + len);

	*text = (struct live_text){.owners = 1, .len = len};
	memcpy(text->at, line, len);
	live_forget(l);
	l->last = text;
	for (struct live_reader *r = l->readers, *next; r; r = next) {
		next = r->next;
		if (client_unread(evhttp_request_get_connection(r->request)) < UNREAD_MAX)
			send_text(text, r->request);
	}
}

void live_answer(struct live_stream *l, struct evhttp_request *request)
{
	struct live_reader *r;

	if (l->n >= READERS_MAX) {
		api_refuse(request, HTTP_SERVUNAVAIL, "too many clients read /v1/live");
		return;
	}
	r = mem_new(struct live_reader);
	*r = (struct live_reader){.of = l, .next = l->readers, .request = request};
	l->readers = r;
	l->n++;
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_client_left, r);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
			  "application/x-ndjson");
	evhttp_send_reply_start(request, HTTP_OK, NULL);
	if (l->last)
		send_text(l->last, request);
}

size_t live_readers(const struct live_stream *l)
{
	return l->n;
}
