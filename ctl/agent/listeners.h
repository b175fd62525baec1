// SPDX-License-Identifier: GPL-2.0-only
// Those who receive events, each through a queue of its own: clients, and a process of the agent.
//
// An event that does not fit into the queue of one is counted for it; the others do not wait.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LISTENER_QUEUE 1000 // events that were not sent yet

struct agent_process;
struct evhttp_request;
struct listener;
struct listeners;

enum event_kind {
	EVENT_LOGGED, // a record of `log`
	EVENT_DROP,
	EVENT_CHANGE,
	EVENT_KINDS
};
#define EVENT_BIT(kind) (1u << (kind))

// Documents, each of which is a line.
struct event_lines {
	const char *at;
	size_t len, n;
	enum event_kind kind;
	bool old; // they are older than the agent: not for a process
};

struct listeners *listeners_new(void);
// Ends all answers. NULL is allowed.
void listeners_free(struct listeners *l);
// The answer ends after `count` events (0: never) or when the client leaves. kinds: bits of the
// events that it receives. False: there are too many, and the request was refused.
bool listeners_add(struct listeners *l, struct evhttp_request *request, unsigned kinds,
		   uint64_t count);
// For the one that was added last.
void listeners_begin(struct listeners *l, const struct event_lines *lines);
// For all who receive this kind.
void listeners_publish(struct listeners *l, const struct event_lines *lines);
// A line that is no event, for all who receive this kind, or only for the one that was added last.
void listeners_tell(struct listeners *l, enum event_kind kind, bool last, const char *line);
// How many receive this kind.
size_t listeners_of(const struct listeners *l, enum event_kind kind);

// One that reads events from its standard input. Its events are missed while it has no process.
struct listener *listeners_add_process(struct listeners *l, unsigned kinds);
// NULL: the present one is not used any more.
void listener_use(struct listener *l, struct agent_process *process);
// Its process has ended, and has handled so many events; the others that it was given are missed.
void listener_end(struct listener *l, uint64_t handled);
// Events that the pipe of its process has not taken.
size_t listener_waiting(struct listener *l);
// A line that is no event.
void listener_tell(struct listener *l, const char *line);
// Events that were left out so far.
uint64_t listener_missed(const struct listener *l);
