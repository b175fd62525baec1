// SPDX-License-Identifier: GPL-2.0-only
// Speaks HTTP/1.0 to the other server, because its answers then have no chunks. Reads only as fast
// as the client does.
#include "ctl/agent/page_relay.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl/agent/api_answer.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/net/local.h"
#include "ctl/net/loop.h"

#define HEAD_MAX   8192
#define RELAYS_MAX 64
#define HEAD_S     10
#define GONE       "the agent does not answer; the filter in the kernel is not affected"

struct relay {
	struct page_relays *of;
	struct relay *next;
	struct evhttp_request *request;
	struct bufferevent *from;
	bool started; // the head was sent
};

struct page_relays {
	struct event_base *loop;
	const char *path;
	struct relay *relays;
	size_t n;
};

static void forget(struct relay *r)
{
	struct relay **at = &r->of->relays;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->of->n--;
	bufferevent_free(r->from);
	free(r);
}

static void on_client_left(struct evhttp_connection *connection, void *relay)
{
	struct relay *r = relay;

	if (!evhttp_request_get_connection(r->request)) // libevent has left it to us
		evhttp_request_free(r->request);
	forget(r);
}

static void end(struct relay *r)
{
	struct evhttp_request *request = r->request;
	bool started = r->started;

	evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
	forget(r);
	if (started)
		evhttp_send_reply_end(request);
	else
		api_refuse(request, HTTP_SERVUNAVAIL, GONE);
}

// "HTTP/1.0 200 OK"; 0: not an answer.
static int status_of(const char *head)
{
	const char *space = strchr(head, ' ');
	uint64_t status;

	if (strncmp(head, "HTTP/1.", 7) != 0 || !space ||
	    num_parse_u64(space + 1, strspn(space + 1, "0123456789"), 200, 599, &status))
		return 0;
	return (int)status;
}

// False: the head has not arrived yet, or is invalid, and the relay has ended.
static bool take_head(struct relay *r, struct evbuffer *input)
{
	struct evbuffer_ptr end_of = evbuffer_search(input, "\r\n\r\n", 4, NULL);
	char head[64] = "";
	int status;

	if (end_of.pos < 0 && evbuffer_get_length(input) < HEAD_MAX)
		return false;
	evbuffer_copyout(input, head, sizeof(head) - 1);
	status = end_of.pos < 0 ? 0 : status_of(head);
	if (!status) {
		end(r);
		return false;
	}
	evbuffer_drain(input, (size_t)end_of.pos + 4);
	evhttp_add_header(evhttp_request_get_output_headers(r->request), "Content-Type",
			  "application/json");
	evhttp_send_reply_start(r->request, status, NULL);
	r->started = true;
	bufferevent_set_timeouts(r->from, NULL, NULL);
	return true;
}

static void on_sent(struct evhttp_connection *connection, void *relay)
{
	struct relay *r = relay;

	bufferevent_enable(r->from, EV_READ);
}

static void on_input(struct bufferevent *from, void *relay)
{
	LOOP_SPAN("on_input");
	struct evbuffer *input = bufferevent_get_input(from);
	struct relay *r = relay;

	if (!r->started && !take_head(r, input))
		return;
	if (!evbuffer_get_length(input))
		return;
	bufferevent_disable(from, EV_READ);
	evhttp_send_reply_chunk_with_cb(r->request, input, on_sent, r);
}

static void on_event(struct bufferevent *from, short what, void *relay)
{
	LOOP_SPAN("on_event");

	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT))
		end(relay);
}

static void begin(struct relay *r, int fd)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(r->request);
	const struct timeval head = {.tv_sec = HEAD_S};
	const char *path = evhttp_uri_get_path(uri), *query = evhttp_uri_get_query(uri);

	r->from = bufferevent_socket_new(r->of->loop, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!r->from)
		mem_exhausted();
	bufferevent_set_timeouts(r->from, &head, &head);
	bufferevent_setcb(r->from, on_input, NULL, on_event, r);
	evbuffer_add_printf(bufferevent_get_output(r->from), "GET %s%s%s HTTP/1.0\r\n\r\n", path,
			    query ? "?" : "", query ? query : "");
	bufferevent_enable(r->from, EV_READ | EV_WRITE);
	evhttp_connection_set_closecb(evhttp_request_get_connection(r->request), on_client_left, r);
}

void page_relay(struct page_relays *all, struct evhttp_request *request)
{
	int fd = all->n < RELAYS_MAX ? local_connect(all->path, SOCK_NONBLOCK) : -1;
	struct relay *r;

	if (fd < 0) {
		api_refuse(request, HTTP_SERVUNAVAIL,
			   all->n < RELAYS_MAX ? GONE : "too many clients read");
		return;
	}
	r = mem_new(struct relay);
	*r = (struct relay){.of = all, .next = all->relays, .request = request};
	all->relays = r;
	all->n++;
	begin(r, fd);
}

struct page_relays *page_relays_new(struct event_base *loop, const char *path)
{
	struct page_relays *all = mem_new(struct page_relays);

	*all = (struct page_relays){.loop = loop, .path = path};
	return all;
}

void page_relays_free(struct page_relays *all)
{
	if (!all)
		return;
	while (all->relays)
		end(all->relays);
	free(all);
}
