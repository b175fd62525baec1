// SPDX-License-Identifier: GPL-2.0-only
// Watches the connections of an HTTP server from their bufferevents, which it makes for libevent.
#include "ctl/agent/clients.h"

#include <ctype.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/api_answer.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/net/loop.h"

#define NAME_BYTES 64 // room for a name, which has 16
#define ACCEPTS    32 // connections accepted at once; then the rest of the loop has its turn
#define ACCEPTS_MS 5
#define ERROR_S    1
#define LOOK_MS    200
#define GONE_MOST  64
#define TRIM_GONE  32 // clients
#define TRIM_MS    10
#define CROWD_MS   10000 // a client was closed for others so lately

struct client {
	TAILQ_ENTRY(client) in;
	struct clients *all;
	struct bufferevent *stream; // a reference of ours
	uint64_t since_ms;          // the beginning of its request or answer
	size_t received;            // bytes since its last answer
	bool leaves;
	bool streams; // its answer continues, also while there is nothing to send
};

TAILQ_HEAD(client_list, client);

struct clients {
	TAILQ_ENTRY(clients) in;
	struct agent *agent;
	struct evconnlistener *listener;
	struct clients_bounds bounds;
	struct client_list list; // by since_ms
	size_t n, held;
	size_t gone; // since the last trim
	struct agent_task look, resume, trim;
	size_t accepts; // since accepts_ms
	uint64_t accepts_ms, crowd_ms;
	bool crowd; // as reported
};

static TAILQ_HEAD(, clients) everywhere = TAILQ_HEAD_INITIALIZER(everywhere);

// ---- one client ---------------------------------------------------------------------------------

// libevent has freed the connection: the last reference is ours, and the callbacks are gone. The
// descriptor is closed with the stream; the client has seen the end already.
static bool is_gone(const struct client *c)
{
	bufferevent_event_cb on_event;

	bufferevent_getcb(c->stream, NULL, NULL, &on_event, NULL);
	return !on_event;
}

// From a complete request to its answer the server does not read. While it streams, it does: it
// learns that the client has left.
static bool has_request_to_send(const struct client *c)
{
	return !c->streams && bufferevent_get_enabled(c->stream) & EV_READ;
}

static size_t unread(const struct client *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->stream));
}

static size_t held(const struct client *c)
{
	return c->received + unread(c);
}

// A timeout that has come early; the server closes the connection.
static void end(struct bufferevent *stream, int when)
{
	bufferevent_trigger_event(stream, BEV_EVENT_READING | BEV_EVENT_TIMEOUT, when);
}

static void begin(struct client *c)
{
	c->since_ms = agent_now_ms();
	TAILQ_REMOVE(&c->all->list, c, in);
	TAILQ_INSERT_TAIL(&c->all->list, c, in);
}

// Not during the call, which may be one of its own.
static void leave(struct client *c)
{
	c->leaves = true;
	bufferevent_disable(c->stream, EV_READ);
	end(c->stream, BEV_TRIG_DEFER_CALLBACKS);
}

static void close_the_largest(struct clients *all)
{
	struct client *largest = NULL;

	for (struct client *c = TAILQ_FIRST(&all->list); c; c = TAILQ_NEXT(c, in))
		if (!c->leaves && !is_gone(c) && (has_request_to_send(c) || unread(c)) &&
		    (!largest || held(c) > held(largest)))
			largest = c;
	all->crowd_ms = agent_now_ms();
	if (largest)
		leave(largest);
}

static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *change, void *client)
{
	struct client *c = client;

	c->received += change->n_added;
	c->all->held += change->n_added;
	if (!change->n_added)
		return;
	if (is_gone(c) || evbuffer_get_length(input) > c->all->bounds.unread_max)
		leave(c);
	if (c->all->held > c->all->bounds.held_max)
		close_the_largest(c->all);
}

static void on_output(struct evbuffer *output, const struct evbuffer_cb_info *change, void *client)
{
	struct client *c = client;
	struct clients *all = c->all;
	size_t next; // bytes of the next request

	all->held += change->n_added - change->n_deleted;
	if (change->n_added && all->held > all->bounds.held_max)
		close_the_largest(all);
	if (!change->orig_size)
		begin(c);
	if (evbuffer_get_length(output))
		return;
	next = evbuffer_get_length(bufferevent_get_input(c->stream));
	all->held -= c->received - next;
	c->received = next;
	begin(c);
}

// Often: mem_trim() holds the loop for as long as there is much to give back to the system.
static int trim(void *clients, struct err *err)
{
	struct clients *all = clients;

	all->gone = 0;
	mem_trim();
	return 0;
}

// Soon, when libevent has freed what they had.
static void trim_after(struct clients *all)
{
	if (++all->gone == TRIM_GONE)
		agent_task_in(&all->trim, TRIM_MS);
}

static void forget(struct client *c)
{
	struct clients *all = c->all;

	evbuffer_remove_cb(bufferevent_get_input(c->stream), on_input, c);
	evbuffer_remove_cb(bufferevent_get_output(c->stream), on_output, c);
	all->held -= held(c);
	all->n--;
	trim_after(all);
	TAILQ_REMOVE(&all->list, c, in);
	bufferevent_decref(c->stream);
	free(c);
}

static void evict(struct client *c)
{
	end(c->stream, 0);
	if (is_gone(c))
		forget(c);
	else
		c->leaves = true;
}

// ---- all clients --------------------------------------------------------------------------------

// The client to close for another one; NULL: all wait for responses.
static struct client *slowest(const struct clients *all)
{
	struct client *reader = NULL;

	for (struct client *c = TAILQ_FIRST(&all->list); c; c = TAILQ_NEXT(c, in)) {
		if (c->leaves || is_gone(c))
			continue;
		if (has_request_to_send(c))
			return c;
		if (!reader && unread(c))
			reader = c;
	}
	return reader;
}

// As many as a callback may take; the next scan continues.
static void forget_gone(struct clients *all)
{
	size_t gone = 0;

	for (struct client *c = TAILQ_FIRST(&all->list), *next; c && gone < GONE_MOST; c = next) {
		next = TAILQ_NEXT(c, in);
		if (!is_gone(c))
			continue;
		forget(c);
		gone++;
	}
}

static bool make_room(struct clients *all)
{
	struct client *c;

	forget_gone(all);
	if (all->n < all->bounds.most)
		return true;
	c = slowest(all);
	if (!c)
		return false;
	all->crowd_ms = agent_now_ms();
	evict(c);
	return true;
}

static bool is_late(const struct client *c, uint64_t now)
{
	uint64_t took = now - c->since_ms;

	return has_request_to_send(c) ? took > c->all->bounds.request_s * 1000ull
				      : unread(c) && took > c->all->bounds.answer_s * 1000ull;
}

static void tell_crowd(struct clients *all, uint64_t now)
{
	bool crowd = all->crowd_ms && now - all->crowd_ms < CROWD_MS;

	if (crowd == all->crowd)
		return;
	all->crowd = crowd;
	if (crowd)
		log_warning("api: too many %s: the slowest are closed", all->bounds.who);
	agent_changed(all->agent);
}

static int look(void *clients, struct err *err)
{
	struct clients *all = clients;
	uint64_t now = agent_now_ms();

	forget_gone(all);
	for (struct client *c = TAILQ_FIRST(&all->list), *next; c; c = next) {
		next = TAILQ_NEXT(c, in);
		if (!c->leaves && is_late(c, now))
			evict(c);
	}
	tell_crowd(all, now);
	if (all->n || all->crowd)
		agent_task_in(&all->look, LOOK_MS);
	return 0;
}

static void pause_accepts(struct clients *all)
{
	evconnlistener_disable(all->listener);
	agent_task_move(&all->resume, ACCEPTS_MS);
}

static int resume(void *clients, struct err *err)
{
	struct clients *all = clients;

	if (all->n < all->bounds.most || slowest(all))
		evconnlistener_enable(all->listener);
	else
		pause_accepts(all);
	return 0;
}

static void on_error_over(evutil_socket_t none, short what, void *listener)
{
	evconnlistener_enable(listener);
}

// For lack of descriptors. The client waits; without the pause the loop would try without end.
static void on_accept_error(struct evconnlistener *listener, void *http)
{
	const struct timeval pause = {.tv_sec = ERROR_S};
	struct err err = {0};

	err_system(&err, errno, "cannot accept a client");
	log_warning("api: %s", err.text);
	evconnlistener_disable(listener);
	event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, on_error_over, listener,
			&pause); // once a second at most, and short
}

static void count_accept(struct clients *all)
{
	uint64_t now = agent_now_ms();

	if (now - all->accepts_ms >= ACCEPTS_MS) {
		all->accepts_ms = now;
		all->accepts = 0;
	}
	if (++all->accepts >= ACCEPTS)
		pause_accepts(all);
}

// A connection was accepted.
static struct bufferevent *on_new(struct event_base *loop, void *clients)
{
	LOOP_SPAN("on_new");
	struct clients *all = clients;
	struct client *c = mem_new(struct client);

	count_accept(all);
	if (all->n >= all->bounds.most && !make_room(all))
		pause_accepts(all);
	*c = (struct client){.all = all, .since_ms = agent_now_ms()};
	c->stream = bufferevent_socket_new(loop, -1, BEV_OPT_CLOSE_ON_FREE);
	if (!c->stream)
		mem_exhausted();
	bufferevent_incref(c->stream);
	bufferevent_priority_set(c->stream, CLIENTS_PRIORITIES - 1);
	api_pages_replace(c->stream);
	if (!evbuffer_add_cb(bufferevent_get_input(c->stream), on_input, c) ||
	    !evbuffer_add_cb(bufferevent_get_output(c->stream), on_output, c))
		mem_exhausted();
	all->n++;
	TAILQ_INSERT_TAIL(&all->list, c, in);
	agent_task_in(&all->look, LOOK_MS);
	return c->stream;
}

struct clients *clients_new(struct agent *a, struct evhttp *http, struct evconnlistener *listener,
			    const struct clients_bounds *bounds)
{
	struct clients *all = mem_new(struct clients);

	*all = (struct clients){.agent = a, .listener = listener, .bounds = *bounds};
	TAILQ_INIT(&all->list);
	TAILQ_INSERT_TAIL(&everywhere, all, in);
	agent_task_init(&all->look, a, "clients", look, all);
	agent_task_init(&all->resume, a, "pause of clients", resume, all);
	agent_task_init(&all->trim, a, "memory of clients", trim, all);
	evconnlistener_set_error_cb(listener, on_accept_error);
	evhttp_set_bevcb(http, on_new, all);
	return all;
}

void clients_free(struct clients *all)
{
	struct client *c;

	if (!all)
		return;
	while ((c = TAILQ_FIRST(&all->list)))
		forget(c);
	TAILQ_REMOVE(&everywhere, all, in);
	agent_task_free(&all->look);
	agent_task_free(&all->resume);
	agent_task_free(&all->trim);
	free(all);
}

void clients_report(const struct clients *all, struct json *problems)
{
	CLEANUP_FREE char *text =
		mem_printf("too many %s: the slowest are closed", all->bounds.who);

	if (all->crowd)
		json_append(problems, json_string(text));
}

void client_leave(struct evhttp_connection *connection)
{
	end(evhttp_connection_get_bufferevent(connection), BEV_TRIG_DEFER_CALLBACKS);
}

void client_streams(struct evhttp_connection *connection, bool streams)
{
	const struct bufferevent *stream = evhttp_connection_get_bufferevent(connection);
	struct clients *all;
	struct client *c;

	TAILQ_FOREACH(all, &everywhere, in)
	TAILQ_FOREACH(c, &all->list, in)
	if (c->stream == stream)
		c->streams = streams;
}

bool client_left(struct evhttp_connection *connection)
{
	struct pollfd fd = {.fd = bufferevent_getfd(evhttp_connection_get_bufferevent(connection))};

	return poll(&fd, 1, 0) > 0 && fd.revents & (POLLHUP | POLLERR);
}

void client_author(struct evhttp_connection *connection, char *buf, size_t size)
{
	int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(connection));
	CLEANUP_FREE char *path = NULL, *name = NULL;
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	size_t n;

	snprintf(buf, size, "%s", PROCESS_AGENT_API);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || peer.pid <= 0)
		return;
	path = mem_printf("/proc/%d/comm", peer.pid);
	if (file_read(path, NAME_BYTES, &name, &n, NULL))
		return;
	for (n = 0; name[n] && name[n] != '\n'; n++)
		if (!isalnum((unsigned char)name[n]) && !strchr("._-+:/", name[n]))
			name[n] = '?';
	snprintf(buf, size, "agent (api, %.*s)", (int)n, name);
}

size_t client_unread(struct evhttp_connection *connection)
{
	return evbuffer_get_length(
		bufferevent_get_output(evhttp_connection_get_bufferevent(connection)));
}
