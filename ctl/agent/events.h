// SPDX-License-Identifier: GPL-2.0-only
// Requests for the events that the agent reads: packets that rules log, and drops.
#pragma once

#include "ctl/base/json.h"

struct agent;
struct evhttp_request;

#define API_EVENTS "/v1/events"

// GET /v1/events. query: its words; "count", "logged" (without drops), "since" (a time: first the
// events of this time that are kept).
void events_answer(struct agent *a, struct evhttp_request *request, const struct json *query);
