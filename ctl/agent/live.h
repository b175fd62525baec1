// SPDX-License-Identifier: GPL-2.0-only
// Sends each document of a stream to all clients that read it. There are two kinds of documents, of
// which not all clients read the second one.
//
// A client that does not read for a while misses documents; the others do not wait for it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct evhttp_request;
struct live_stream;

enum live_kind { LIVE_RATES, LIVE_STATE, LIVE_KINDS };

// Pages have a smaller share of the readers, so they leave room for the API.
enum live_from { LIVE_FROM_API, LIVE_FROM_PAGE, LIVE_FROMS };

// path: by which clients ask for it, for messages; it stays the caller's.
struct live_stream *live_new(const char *path);
// Ends all answers. NULL is allowed.
void live_free(struct live_stream *l);
// A document, which is a line: for all who read this kind, and for who comes next.
void live_publish(struct live_stream *l, enum live_kind kind, const char *line, size_t len);
// There is no present document any more.
void live_forget(struct live_stream *l, enum live_kind kind);
// The answer begins with the present documents, and continues until the client leaves.
void live_answer(struct live_stream *l, struct evhttp_request *request, enum live_from from,
		 bool reads_state);
size_t live_readers(const struct live_stream *l, enum live_kind kind);
