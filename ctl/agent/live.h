// SPDX-License-Identifier: GPL-2.0-only
// Sends each document of a stream to all clients that read it.
//
// A client that does not read for a while misses documents; the others do not wait for it.
#pragma once

#include <stddef.h>

struct evhttp_request;
struct live_stream;

struct live_stream *live_new(void);
// Ends all answers. NULL is allowed.
void live_free(struct live_stream *l);
// A document, which is a line: for all who read, and for who comes next.
void live_publish(struct live_stream *l, const char *line, size_t len);
// There is no present document any more.
void live_forget(struct live_stream *l);
// The answer begins with the present document, and continues until the client leaves.
void live_answer(struct live_stream *l, struct evhttp_request *request);
size_t live_readers(const struct live_stream *l);
