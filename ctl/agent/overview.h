// SPDX-License-Identifier: GPL-2.0-only
// The state of the instance for the clients of /v1/live?state: the document of `weir page
// --document`, which is made every few seconds and soon after a command while there is such a
// client, once for all clients.
#pragma once

struct agent;
struct live_stream;
struct overview;

struct overview *overview_new(struct agent *a, struct live_stream *to);
void overview_free(struct overview *o); // NULL is allowed
// A client has begun to read.
void overview_want(struct overview *o);
