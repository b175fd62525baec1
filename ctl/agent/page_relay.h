// SPDX-License-Identifier: GPL-2.0-only
// Answers a request with the answer of another HTTP server, on a unix socket.
#pragma once

struct event_base;
struct evhttp_request;
struct page_relays;

struct page_relays *page_relays_new(struct event_base *loop, const char *path);
// Ends all answers; before the server of the requests is freed. NULL is allowed.
void page_relays_free(struct page_relays *all);
// A request by GET. The answer may continue for as long as the client reads.
void page_relay(struct page_relays *all, struct evhttp_request *request);
