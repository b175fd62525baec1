// SPDX-License-Identifier: GPL-2.0-only
// Requests for the rates that the agent measures: the present ones, and their history.
#pragma once

#include <stdbool.h>

#include "ctl/agent/history_plan.h"
#include "ctl/agent/live.h"
#include "ctl/base/err.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"

struct agent;
struct evhttp_request;

// Not with --no-history.
bool history_is_kept(const struct agent *a);
// GET /v1/live. reads_state: with the documents of overview.h.
void history_live(struct agent *a, struct evhttp_request *request, enum live_from from,
		  bool reads_state);

struct history_query {
	enum history_span span;
	VEC(char *) series; // none: the totals and the busiest
};
void history_query_free(struct history_query *q);
// The query of GET /v1/history: "span", "series" (names, divided by line feeds). 0; -ENOENT: there
// is no history, or not this series; or -EINVAL, each with err set.
int history_query_make(const struct agent *a, const struct json *query, struct history_query *ret,
		       struct err *err);
// The document of the answer. It takes long: for a copy of the agent (process.h).
void history_query_write(const struct agent *a, const struct history_query *q, struct text *to);
