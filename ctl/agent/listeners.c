// SPDX-License-Identifier: GPL-2.0-only
// A queue is the output of the connection: it has the places where events end in it.
#include "ctl/agent/listeners.h"

#include <event2/bufferevent.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/api_answer.h"
#include "ctl/agent/client_text.h"
#include "ctl/agent/clients.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"

#define MOST 256 // clients

// Events that were sent in one text.
struct sent_events {
	uint64_t end; // bytes sent to the client up to its end
	uint32_t n;   // events
};

struct listener {
	struct listeners *of;
	struct listener *next;
	struct evhttp_request *request;
	bool drops, limited, started;
	uint64_t left;   // events until the end, if limited
	uint64_t sent;   // bytes
	uint64_t missed; // events since the last one that was sent
	struct sent_events queue[LISTENER_QUEUE];
	size_t first, batches, events; // in the queue
};

struct listeners {
	struct listener *all;
	size_t n, n_drops;
};

struct listeners *listeners_new(void)
{
	return mem_new(struct listeners);
}

static struct evhttp_connection *connection_of(const struct listener *l)
{
	return evhttp_request_get_connection(l->request);
}

static void forget(struct listener *l)
{
	struct listener **at = &l->of->all;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	l->of->n--;
	l->of->n_drops -= l->drops;
	free(l);
}

static void on_client_left(struct evhttp_connection *connection, void *listener)
{
	struct listener *l = listener;

	if (!connection_of(l)) // libevent has left it to us
		evhttp_request_free(l->request);
	forget(l);
}

static void start(struct listener *l)
{
	evhttp_add_header(evhttp_request_get_output_headers(l->request), "Content-Type",
			  "application/x-ndjson");
	evhttp_send_reply_start(l->request, HTTP_OK, NULL);
	// There may be no event for hours; clients.h bounds what is unread.
	bufferevent_set_timeouts(evhttp_connection_get_bufferevent(connection_of(l)), NULL, NULL);
	l->started = true;
	l->sent = client_unread(connection_of(l));
}

static void end(struct listener *l)
{
	struct evhttp_request *request = l->request;

	if (!l->started)
		start(l);
	evhttp_connection_set_closecb(connection_of(l), NULL, NULL);
	forget(l);
	evhttp_send_reply_end(request);
}

void listeners_free(struct listeners *l)
{
	if (!l)
		return;
	while (l->all)
		end(l->all);
	free(l);
}

size_t listeners_of_drops(const struct listeners *l)
{
	return l->n_drops;
}

// ---- the queue ----------------------------------------------------------------------------------

// Removes what the client has taken.
static void clean_queue(struct listener *l)
{
	uint64_t taken = l->sent - client_unread(connection_of(l));

	for (; l->batches && l->queue[l->first].end <= taken; l->batches--) {
		l->events -= l->queue[l->first].n;
		l->first = (l->first + 1) % LISTENER_QUEUE;
	}
}

// n 0: not an event.
static void send_text(struct listener *l, struct client_text *text, size_t n)
{
	size_t before = client_unread(connection_of(l));

	client_text_send(text, l->request);
	l->sent += client_unread(connection_of(l)) - before;
	if (!n)
		return;
	l->queue[(l->first + l->batches++) % LISTENER_QUEUE] =
		(struct sent_events){.end = l->sent, .n = (uint32_t)n};
	l->events += n;
}

static void send_words(struct listener *l, const char *words)
{
	struct client_text *text = client_text_new(words, strlen(words));

	send_text(l, text, 0);
	client_text_release(text);
}

static void send_missed(struct listener *l)
{
	CLEANUP_FREE char *words = NULL;

	if (!l->missed)
		return;
	words = mem_printf("{\"schema\":1,\"missed\":%" PRIu64 "}\n", l->missed);
	send_words(l, words);
	l->missed = 0;
}

// The last of the events that a client has asked for.
static void send_last(struct listener *l, const struct event_lines *lines)
{
	const char *at = lines->at;
	struct client_text *text;

	for (uint64_t n = 0; n < l->left; n++)
		at = (const char *)memchr(at, '\n', (size_t)(lines->at + lines->len - at)) + 1;
	text = client_text_new(lines->at, (size_t)(at - lines->at));
	send_text(l, text, (size_t)l->left);
	client_text_release(text);
	send_words(l, "{\"schema\":1,\"end\":true}\n");
	end(l);
}

// May end the answer.
static void give(struct listener *l, const struct event_lines *lines, struct client_text *text)
{
	if (!l->started)
		start(l);
	clean_queue(l);
	if (l->events + lines->n > LISTENER_QUEUE) {
		l->missed += lines->n;
		return;
	}
	send_missed(l);
	if (l->limited && l->left <= lines->n) {
		send_last(l, lines);
		return;
	}
	l->left -= l->limited ? lines->n : 0;
	send_text(l, text, lines->n);
}

// ---- clients ------------------------------------------------------------------------------------

bool listeners_add(struct listeners *l, struct evhttp_request *request, bool drops, uint64_t count)
{
	struct listener *one;

	if (l->n == MOST) {
		api_refuse(request, HTTP_SERVUNAVAIL, "too many clients read /v1/events");
		return false;
	}
	one = mem_new(struct listener);
	*one = (struct listener){.of = l,
				 .next = l->all,
				 .request = request,
				 .drops = drops,
				 .limited = count,
				 .left = count};
	l->all = one;
	l->n++;
	l->n_drops += drops;
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_client_left, one);
	return true;
}

void listeners_begin(struct listeners *l, const struct event_lines *lines)
{
	struct client_text *text = client_text_new(lines->at, lines->len);

	give(l->all, lines, text);
	client_text_release(text);
}

void listeners_publish(struct listeners *l, const struct event_lines *lines)
{
	struct client_text *text;

	if (!l->n)
		return;
	text = client_text_new(lines->at, lines->len);
	for (struct listener *one = l->all, *next; one; one = next) {
		next = one->next;
		if (lines->logged || one->drops)
			give(one, lines, text);
	}
	client_text_release(text);
}
