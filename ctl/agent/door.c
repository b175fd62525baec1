// SPDX-License-Identifier: GPL-2.0-only
// Listens by libevent.
#include "ctl/agent/door.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/base/mem.h"

#define SILENCE_S 10 // request of a client, until it is released
#define BACKLOG   1024
#define FLAGS     (LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE)
#define METHODS                                                                                    \
	(EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | \
	 EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH)

struct door {
	struct evhttp *http;
	struct clients *clients;
	char *path; // of a unix socket; NULL: of an address
};

static int no_memory(const char *where, struct err *err)
{
	return err_system(err, ENOMEM, "cannot listen on '%s'", where);
}

// Takes over the listener.
static int serve(struct agent *a, const struct door_about *about, struct evconnlistener *listener,
		 const char *where, void *ctx, struct door **ret, struct err *err)
{
	struct evhttp *http = evhttp_new(a->loop);
	struct door *d;

	if (!http || !evhttp_bind_listener(http, listener)) {
		evconnlistener_free(listener);
		if (http)
			evhttp_free(http);
		return no_memory(where, err);
	}
	evhttp_set_max_headers_size(http, DOOR_HEADERS_MAX);
	evhttp_set_max_body_size(http, (ev_ssize_t)about->body_max);
	evhttp_set_timeout(http, SILENCE_S);
	evhttp_set_allowed_methods(http, METHODS); // others are refused by libevent
	evhttp_set_gencb(http, about->answer, ctx);
	d = mem_new(struct door);
	*d = (struct door){.http = http, .clients = clients_new(a, http, listener, &about->bounds)};
	*ret = d;
	return 0;
}

int door_open(struct agent *a, const struct door_about *about, const struct sockaddr *address,
	      int len, const char *where, void *ctx, struct door **ret, struct err *err)
{
	struct evconnlistener *listener =
		evconnlistener_new_bind(a->loop, NULL, NULL, FLAGS, BACKLOG, address, len);

	if (!listener)
		return err_system(err, errno, "cannot listen on '%s'", where);
	return serve(a, about, listener, where, ctx, ret, err);
}

int door_open_path(struct agent *a, const struct door_about *about, const char *path, void *ctx,
		   struct door **ret, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t before;
	int code;

	if (strlen(path) >= sizeof(address.sun_path))
		return err_system(err, ENAMETOOLONG, "cannot listen on '%s'", path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	unlink(path);
	before = umask(0177);
	code = door_open(a, about, (const struct sockaddr *)&address, sizeof(address), path, ctx,
			 ret, err);
	umask(before);
	if (code)
		return code;
	(*ret)->path = mem_strdup(path);
	return 0;
}

int door_open_socket(struct agent *a, const struct door_about *about, int fd, void *ctx,
		     struct door **ret, struct err *err)
{
	struct evconnlistener *listener =
		evconnlistener_new(a->loop, NULL, NULL, FLAGS, 0, fd); // 0: it listens already

	if (!listener) {
		close(fd);
		return no_memory("a socket", err);
	}
	return serve(a, about, listener, "a socket", ctx, ret, err);
}

void door_close(struct door *d)
{
	if (!d)
		return;
	evhttp_free(d->http); // with its listener
	clients_free(d->clients);
	if (d->path)
		unlink(d->path);
	free(d->path);
	free(d);
}

void door_report(const struct door *d, struct json *problems)
{
	if (d)
		clients_report(d->clients, problems);
}
