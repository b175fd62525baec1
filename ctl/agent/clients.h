// SPDX-License-Identifier: GPL-2.0-only
// The clients of an HTTP server: how many there may be, how long a request or an answer may take,
// and who has to leave.
//
// libevent bounds neither. Its timeout begins again with each byte, and it accepts connections as
// long as there are any.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/base/json.h"

struct agent;
struct clients;
struct evconnlistener;
struct evhttp;
struct evhttp_connection;

// Events of clients have the lowest priority in the loop, which has this many.
#define CLIENTS_PRIORITIES 3

struct clients_bounds {
	const char *who; // in messages: "clients on the socket"
	// Connections. If another one arrives, the one is closed whose request has been incomplete,
	// or else whose response has been unread, for the longest time. If all wait for responses,
	// new ones wait as well.
	size_t most;
	// bytes of an incomplete request; with more the client is closed
	size_t unread_max;
	// bytes of all requests and answers together; above it, who has most is closed
	size_t held_max;
	unsigned request_s; // from the connection, or the last answer, to the end of a request
	unsigned answer_s;  // to read an answer
};

// The server and its listener must exist for as long.
struct clients *clients_new(struct agent *a, struct evhttp *http, struct evconnlistener *listener,
			    const struct clients_bounds *bounds);
// After the server was freed, or before it has turned the loop. NULL is allowed.
void clients_free(struct clients *all);
// Adds a problem if a client was closed lately because there were too many, or too many bytes.
void clients_report(const struct clients *all, struct json *problems);
// Closes a connection soon, not during the call.
void client_leave(struct evhttp_connection *connection);
// Its answer continues until the next call, and may have nothing to send for hours: only what it
// has not read is late then.
void client_streams(struct evhttp_connection *connection, bool streams);
// Has it closed its end? False if it only sends no more.
bool client_left(struct evhttp_connection *connection);
// The author of its changes, "agent (api, curl)": the program of a client on the socket. Only root
// can connect there.
void client_author(struct evhttp_connection *connection, char *buf, size_t size);
// Bytes that it has not read yet.
size_t client_unread(struct evhttp_connection *connection);
