// SPDX-License-Identifier: GPL-2.0-only
// The socket interface of libcurl's multi handle, served by libevent (libcurl-multi(3),
// "MULTI_SOCKET").
#include "ctl/net/curl_loop.h"

#include <errno.h>

#include <event2/event.h>

#include "ctl/base/mem.h"
#include "ctl/net/loop.h"

#define AUTHORITIES_S 3600 // the authorities of the system are read again after that time

struct transfer {
	struct transfer *next, **link; // links in the list of the loop
	CURL *easy;
	curl_loop_done *done;
	void *ctx;
};

struct curl_loop {
	struct event_base *base;
	struct event *timer;
	CURLM *multi;
	struct transfer *transfers;
};

static void transfer_free(struct transfer *t)
{
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	free(t);
}

static struct transfer *transfer_of(CURL *easy)
{
	char *private = NULL;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
	return (struct transfer *)(void *)private;
}

// Takes the handle out before the call: `done` may start it again or clean it up.
static void finish(struct curl_loop *loop, CURL *easy, CURLcode code)
{
	struct transfer *t = transfer_of(easy), ended = *t;

	curl_multi_remove_handle(loop->multi, easy);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, NULL);
	transfer_free(t);
	ended.done(ended.ctx, easy, code);
}

static void finish_all(struct curl_loop *loop)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(loop->multi, &left)))
		if (message->msg == CURLMSG_DONE)
			finish(loop, message->easy_handle, message->data.result);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct curl_loop *loop = ctx;
	int running;

	curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	finish_all(loop);
}

static void on_socket(evutil_socket_t fd, short what, void *ctx)
{
	struct curl_loop *loop = ctx;
	int running, ready = (what & EV_READ ? CURL_CSELECT_IN : 0) |
			     (what & EV_WRITE ? CURL_CSELECT_OUT : 0);

	curl_multi_socket_action(loop->multi, fd, ready, &running);
	finish_all(loop);
}

// libcurl reports which events of a socket it needs; `own` is the event set by curl_multi_assign.
static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *own)
{
	struct curl_loop *loop = ctx;
	struct event *event = own;
	short kind = (short)((what & CURL_POLL_IN ? EV_READ : 0) |
			     (what & CURL_POLL_OUT ? EV_WRITE : 0) | EV_PERSIST);

	loop_event_free(event);
	if (what == CURL_POLL_REMOVE)
		return 0;
	event = loop_event(loop->base, fd, kind, on_socket, loop);
	if (!event)
		mem_exhausted();
	curl_multi_assign(loop->multi, fd, event);
	return event_add(event, NULL);
}

// -1: no timer. libcurl must not be called from here, so 0 is a timer as well.
static int set_timer(CURLM *multi, long timeout_ms, void *ctx)
{
	struct curl_loop *loop = ctx;
	struct timeval in = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};

	return timeout_ms < 0 ? event_del(loop->timer) : event_add(loop->timer, &in);
}

int curl_loop_new(struct event_base *base, struct curl_loop **ret, struct err *err)
{
	struct curl_loop *loop;
	int code = curl_calls_load(err);

	if (code)
		return code;
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return err_system(err, EIO, "cannot start libcurl");
	loop = mem_new(struct curl_loop);
	loop->base = base;
	loop->timer = loop_timer(base, on_timer, loop);
	loop->multi = curl_multi_init();
	if (!loop->timer || !loop->multi)
		mem_exhausted();
	curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
	curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
	*ret = loop;
	return 0;
}

void curl_loop_free(struct curl_loop *loop)
{
	if (!loop)
		return;
	while (loop->transfers)
		curl_loop_stop(loop, loop->transfers->easy);
	curl_multi_cleanup(loop->multi);
	loop_event_free(loop->timer);
	free(loop);
	curl_global_cleanup();
}

struct event_base *curl_loop_base(const struct curl_loop *loop)
{
	return loop->base;
}

// libcurl caches only a single file. It knows the file of the system, unless it was built only for
// a folder.
void curl_trust(CURL *easy, const char *ca)
{
	const char *system_file = NULL;

	curl_easy_getinfo(easy, CURLINFO_CAINFO, &system_file);
	curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, ca ? 0L : (long)AUTHORITIES_S);
	if (ca)
		curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
	if (ca || system_file)
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
}

void curl_trust_all(CURL *easy)
{
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
	curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
}

int curl_loop_start(struct curl_loop *loop, CURL *easy, curl_loop_done *done, void *ctx,
		    struct err *err)
{
	struct transfer *t = mem_new(struct transfer);
	CURLMcode code;

	*t = (struct transfer){.next = loop->transfers,
			       .link = &loop->transfers,
			       .easy = easy,
			       .done = done,
			       .ctx = ctx};
	if (t->next)
		t->next->link = &t->next;
	loop->transfers = t;
	curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
	code = curl_multi_add_handle(loop->multi, easy);
	if (!code)
		return 0;
	curl_easy_setopt(easy, CURLOPT_PRIVATE, NULL);
	transfer_free(t);
	return err_stated(err, EINVAL, "cannot start a transfer (libcurl: %s)",
			  curl_multi_strerror(code));
}

void curl_loop_stop(struct curl_loop *loop, CURL *easy)
{
	struct transfer *t = transfer_of(easy);

	if (!t)
		return;
	curl_multi_remove_handle(loop->multi, easy);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, NULL);
	transfer_free(t);
}
