// SPDX-License-Identifier: GPL-2.0-only
// The events that the agent reads, and its listeners for them.
#pragma once

#include "ctl/agent/listeners.h"
#include "ctl/base/json.h"

struct agent;
struct evhttp_request;

#define API_EVENTS "/v1/events"

// GET /v1/events. query: its words; "count", "logged" (without drops), "since" (a time: first the
// events of this time that are kept).
void events_answer(struct agent *a, struct evhttp_request *request, const struct json *query);
// A listener for packets that rules log and for changes, without a process yet. It lives as long as
// the part.
struct listener *events_listen(struct agent *a);
