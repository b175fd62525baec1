// SPDX-License-Identifier: GPL-2.0-only
// Clients that receive events, each through a queue of its own.
//
// An event that does not fit into the queue of a client is counted for it; the others do not wait.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LISTENER_QUEUE 1000 // events that were not sent yet

struct evhttp_request;
struct listeners;

// Documents, each of which is a line.
struct event_lines {
	const char *at;
	size_t len, n;
	bool logged; // records of `log`; else drops
};

struct listeners *listeners_new(void);
// Ends all answers. NULL is allowed.
void listeners_free(struct listeners *l);
// The answer begins with the first event, and ends after `count` events (0: never) or when the
// client leaves. drops: not only records of `log`. False: there are too many, and the request was
// refused.
bool listeners_add(struct listeners *l, struct evhttp_request *request, bool drops, uint64_t count);
// For the one that was added last.
void listeners_begin(struct listeners *l, const struct event_lines *lines);
// For all who want them.
void listeners_publish(struct listeners *l, const struct event_lines *lines);
// How many want drops.
size_t listeners_of_drops(const struct listeners *l);
