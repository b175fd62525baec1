// SPDX-License-Identifier: GPL-2.0-only
// An HTTP server on one socket, with bounds for its clients.
#pragma once

#include <stddef.h>

#include "ctl/agent/clients.h"
#include "ctl/base/err.h"
#include "ctl/base/json.h"

struct agent;
struct door;
struct evhttp_request;
struct sockaddr;

#define DOOR_HEADERS_MAX 8192 // bytes of the headers of a request

struct door_about {
	struct clients_bounds bounds;
	size_t body_max; // of a request, in bytes
	void (*answer)(struct evhttp_request *request, void *ctx);
};

// where: in messages. 0 or -errno with err set.
int door_open(struct agent *a, const struct door_about *about, const struct sockaddr *address,
	      int len, const char *where, void *ctx, struct door **ret, struct err *err);
// A unix socket, which belongs to this user. The socket of a killed agent is removed: there is one
// at a time.
int door_open_path(struct agent *a, const struct door_about *about, const char *path, void *ctx,
		   struct door **ret, struct err *err);
// A socket that listens already, which is taken over.
int door_open_socket(struct agent *a, const struct door_about *about, int fd, void *ctx,
		     struct door **ret, struct err *err);
// Closes all connections. NULL is allowed.
void door_close(struct door *d);
void door_report(const struct door *d, struct json *problems);
