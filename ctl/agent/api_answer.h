// SPDX-License-Identifier: GPL-2.0-only
// How the API answers a request.
#pragma once

#include <stddef.h>

#include "ctl/base/text.h"

struct bufferevent;
struct evbuffer;
struct evhttp_request;

// Takes the bytes out of `body`; a request by HEAD gets only their length. No callback for the end
// of the connection is left.
void api_answer(struct evhttp_request *request, int status, const char *type,
		struct evbuffer *body);
// A document with an error, as a command fails with -j.
void api_refuse(struct evhttp_request *request, int status, const char *text);
// Status 405; methods: which the path has, "GET, HEAD".
void api_refuse_method(struct evhttp_request *request, const char *methods);
// Appends that document.
void api_error_document(const char *message, struct text *ret);
// libevent answers a request that it cannot read with a page of HTML; clients get a document
// instead. For a new connection, before any other callback for its output is added: these see the
// final output.
void api_pages_replace(struct bufferevent *stream);
