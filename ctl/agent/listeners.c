// SPDX-License-Identifier: GPL-2.0-only
// A queue is the output of a connection, or the input of a process: it has the places where events
// end in it.
#include "ctl/agent/listeners.h"

#include <event2/bufferevent.h>
#include <event2/http.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/api_answer.h"
#include "ctl/agent/client_text.h"
#include "ctl/agent/clients.h"
#include "ctl/agent/process.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"

#define MOST 256 // clients

// Events that were sent in one text.
struct sent_events {
	uint64_t end; // bytes sent up to its end
	uint32_t n;   // events
};

struct listener {
	struct listeners *of;
	struct listener *next;
	struct evhttp_request *request; // NULL: a process
	struct agent_process *process;  // NULL: a client, or it does not run
	unsigned kinds;
	bool limited;
	uint64_t left;       // events until the end, if limited
	uint64_t sent;       // bytes
	uint64_t given;      // events, to this process
	uint64_t missed;     // events since the last one that was sent
	uint64_t missed_all; // events
	struct sent_events queue[LISTENER_QUEUE];
	size_t first, batches, events; // in the queue
};

struct listeners {
	struct listener *all;
	size_t clients, n_of[EVENT_KINDS];
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
	l->of->clients -= l->request != NULL;
	for (enum event_kind kind = 0; kind < EVENT_KINDS; kind++)
		l->of->n_of[kind] -= !!(l->kinds & EVENT_BIT(kind));
	free(l);
}

static struct listener *add(struct listeners *l, const struct listener *from)
{
	struct listener *one = mem_new(struct listener);

	*one = *from;
	one->of = l;
	one->next = l->all;
	l->all = one;
	l->clients += one->request != NULL;
	for (enum event_kind kind = 0; kind < EVENT_KINDS; kind++)
		l->n_of[kind] += !!(one->kinds & EVENT_BIT(kind));
	return one;
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
	client_streams(connection_of(l), true);
	l->sent = client_unread(connection_of(l));
}

static void end(struct listener *l)
{
	struct evhttp_request *request = l->request;

	if (request) {
		evhttp_connection_set_closecb(connection_of(l), NULL, NULL);
		client_streams(connection_of(l), false);
	}
	forget(l);
	if (request)
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

size_t listeners_of(const struct listeners *l, enum event_kind kind)
{
	return l->n_of[kind];
}

// ---- the queue ----------------------------------------------------------------------------------

static uint64_t unread(const struct listener *l)
{
	return l->request ? client_unread(connection_of(l)) : process_unsent(l->process);
}

// Removes what was taken.
static void clean_queue(struct listener *l)
{
	uint64_t taken = l->sent - unread(l);

	for (; l->batches && l->queue[l->first].end <= taken; l->batches--) {
		l->events -= l->queue[l->first].n;
		l->first = (l->first + 1) % LISTENER_QUEUE;
	}
}

static bool is_open(const struct listener *l)
{
	return l->request || (l->process && process_reads(l->process));
}

static void miss(struct listener *l, uint64_t n)
{
	l->missed += n;
	l->missed_all += n;
}

// n 0: not an event.
static void send_text(struct listener *l, struct client_text *text, size_t n)
{
	uint64_t before = unread(l);

	if (l->request)
		client_text_send(text, l->request);
	else
		process_send(l->process, text->at, text->len);
	l->sent += unread(l) - before;
	if (!n)
		return;
	l->queue[(l->first + l->batches++) % LISTENER_QUEUE] =
		(struct sent_events){.end = l->sent, .n = (uint32_t)n};
	l->events += n;
	l->given += n;
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

static bool has_room(struct listener *l, size_t n)
{
	if (!is_open(l))
		return false;
	clean_queue(l);
	return l->events + n <= LISTENER_QUEUE;
}

// May end the answer. queued: else it needs no room in the queue.
static void give(struct listener *l, const struct event_lines *lines, struct client_text *text,
		 bool queued)
{
	if (queued && !has_room(l, lines->n)) {
		miss(l, lines->n);
		return;
	}
	send_missed(l);
	if (l->limited && l->left <= lines->n) {
		send_last(l, lines);
		return;
	}
	l->left -= l->limited ? lines->n : 0;
	send_text(l, text, queued ? lines->n : 0);
}

// ---- clients ------------------------------------------------------------------------------------

bool listeners_add(struct listeners *l, struct evhttp_request *request, unsigned kinds,
		   uint64_t count)
{
	const struct listener client = {
		.request = request, .kinds = kinds, .limited = count, .left = count};
	struct listener *one;

	if (l->clients >= MOST) {
		api_refuse(request, HTTP_SERVUNAVAIL, "too many clients read /v1/events");
		return false;
	}
	one = add(l, &client);
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_client_left, one);
	start(one);
	return true;
}

void listeners_begin(struct listeners *l, const struct event_lines *lines)
{
	struct client_text *text = client_text_new(lines->at, lines->len);

	give(l->all, lines, text, false);
	client_text_release(text);
}

static bool receives(const struct listener *l, const struct event_lines *lines)
{
	return (l->kinds & EVENT_BIT(lines->kind)) && (l->request || !lines->old);
}

void listeners_publish(struct listeners *l, const struct event_lines *lines)
{
	struct client_text *text;

	if (!l->all)
		return;
	text = client_text_new(lines->at, lines->len);
	for (struct listener *one = l->all, *next; one; one = next) {
		next = one->next;
		if (receives(one, lines))
			give(one, lines, text, true);
	}
	client_text_release(text);
}

void listeners_tell(struct listeners *l, enum event_kind kind, bool last, const char *line)
{
	for (struct listener *one = l->all; one; one = last ? NULL : one->next)
		if (one->kinds & EVENT_BIT(kind))
			listener_tell(one, line);
}

// ---- a process ----------------------------------------------------------------------------------

struct listener *listeners_add_process(struct listeners *l, unsigned kinds)
{
	return add(l, &(struct listener){.kinds = kinds});
}

void listener_use(struct listener *l, struct agent_process *process)
{
	l->process = process;
	l->sent = l->given = 0;
	l->first = l->batches = l->events = 0;
}

void listener_end(struct listener *l, uint64_t handled)
{
	miss(l, l->given > handled ? l->given - handled : 0);
	listener_use(l, NULL);
}

size_t listener_waiting(struct listener *l)
{
	if (l->process)
		clean_queue(l);
	return l->events;
}

void listener_tell(struct listener *l, const char *line)
{
	if (is_open(l))
		send_words(l, line);
}

uint64_t listener_missed(const struct listener *l)
{
	return l->missed_all;
}
