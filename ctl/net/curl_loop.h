// SPDX-License-Identifier: GPL-2.0-only
// Transfers of libcurl on an event loop.
#pragma once

#include "ctl/base/err.h"
#include "ctl/net/curl_calls.h"

struct event_base;
struct curl_loop;

// Called once for each transfer that ends by itself. It may start and stop transfers, and hand
// `easy` to curl_easy_cleanup, but not free the loop.
typedef void curl_loop_done(void *ctx, CURL *easy, CURLcode code);

// The event base stays the caller's and outlives *ret.
int curl_loop_new(struct event_base *base, struct curl_loop **ret, struct err *err);
// Stops what still runs, without calls of `done`. NULL is allowed.
void curl_loop_free(struct curl_loop *loop);
struct event_base *curl_loop_base(const struct curl_loop *loop);

// Sets the authorities whose certificates a transfer accepts: only those in the file, or (NULL) the
// system's. The file is read for each transfer; the system's file, which takes 40 ms, once an hour
// and loop.
void curl_trust(CURL *easy, const char *ca);
// It accepts any certificate, and reads no authorities.
void curl_trust_all(CURL *easy);

// Starts the transfer that `easy` describes. The handle stays the caller's: it may be changed or
// cleaned up in `done` and after curl_loop_stop. CURLOPT_PRIVATE is used by the loop.
int curl_loop_start(struct curl_loop *loop, CURL *easy, curl_loop_done *done, void *ctx,
		    struct err *err);
// Ends a transfer without calling `done`. It is not an error if the transfer has ended or was never
// started.
void curl_loop_stop(struct curl_loop *loop, CURL *easy);
