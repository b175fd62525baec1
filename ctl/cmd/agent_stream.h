// SPDX-License-Identifier: GPL-2.0-only
// A stream of documents of the agent's API, such as /v1/events and /v1/samples.
#pragma once

#include "ctl/base/err.h"
#include "ctl/base/json.h"

struct agent_stream;

typedef void agent_stream_visit(void *ctx, const struct json *document);

// request: path and query. *ret NULL: no agent runs, or one without this path. 0 or -errno with err
// set.
int agent_stream_open(const char *instance, const char *request, struct agent_stream **ret,
		      struct err *err);
void agent_stream_close(struct agent_stream *a); // NULL is allowed
// Becomes readable when documents may have arrived, but for those that agent_stream_open() has
// received.
int agent_stream_fd(const struct agent_stream *a);
// Visits the documents that arrive within timeout_ms. 0; -EPIPE: the agent has ended; -EINTR: a
// signal.
int agent_stream_poll(struct agent_stream *a, int timeout_ms, agent_stream_visit *visit, void *ctx);
