// SPDX-License-Identifier: GPL-2.0-only
// A text that the answers of many clients share.
#pragma once

#include <stddef.h>

struct evhttp_request;

struct client_text {
	unsigned owners; // including who made it
	size_t len;
	char at[];
};

struct client_text *client_text_new(const char *at, size_t len);
void client_text_release(struct client_text *t); // NULL is allowed
// Adds it to an answer that has started.
void client_text_send(struct client_text *t, struct evhttp_request *request);
