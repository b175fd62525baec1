// SPDX-License-Identifier: GPL-2.0-only
// How the API answers a request.
#pragma once

#include <stddef.h>

struct evbuffer;
struct evhttp_request;

// Takes the bytes out of `body`; no callback for the end of the connection is left.
void api_answer(struct evhttp_request *request, int status, const char *type,
		struct evbuffer *body);
// A document with an error, as a command fails with -j.
void api_refuse(struct evhttp_request *request, int status, const char *text);
