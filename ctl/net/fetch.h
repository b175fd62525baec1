// SPDX-License-Identifier: GPL-2.0-only
// Fetches a text over HTTP or HTTPS: conditional, bounded in size, time and redirects, certificates
// checked. A proxy of the environment is used (libcurl-env(3)).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"

struct curl_loop;
struct dns_options;
struct fetch;

struct fetch_request {
	const char *url;
	const char *ca;                // file of trusted certificates; NULL: the system's
	const char *etag, *modified;   // ETag of the caller's copy; NULL: none
	size_t bytes_max;              // of the text, unpacked
	unsigned timeout_ms;           // limit for the whole fetch, with its redirects; 0:
				       // FETCH_TIMEOUT_MS
	const struct dns_options *dns; // for host names; outlives the fetch; NULL: the defaults
};
#define FETCH_TIMEOUT_MS 60000
#define FETCH_BYTES_MAX  (256u << 20)

struct fetch_result {
	int code;       // 0 or -errno
	struct err err; // then: why not, with the URL
	bool same;      // the caller's copy is the present one; no text
	char *text;     // NUL-terminated after len bytes
	size_t len;
	char *etag, *modified; // NULL: the server sent none
};
void fetch_result_free(struct fetch_result *r);

#define FETCH_DIGEST 65 // size of SHA-256 in hexadecimal, with the final NUL
// 0 or -errno with err set.
int fetch_digest(const char *text, size_t len, char ret[FETCH_DIGEST], struct err *err);

// Called once, when the fetch has ended; *result is the callee's to free.
typedef void fetch_done(void *ctx, struct fetch_result *result);

// The request may be freed after the call. 0 or -errno with err set.
int fetch_start(struct curl_loop *loop, const struct fetch_request *request, fetch_done *done,
		void *ctx, struct fetch **ret, struct err *err);
// Ends it without a call of `done`.
void fetch_cancel(struct fetch *f);

// Fetches n texts side by side and waits for them. 0, results[i] filled, or -errno with err set: no
// transfer could start.
int fetch_all(const struct fetch_request *requests, size_t n, struct fetch_result *results,
	      struct err *err);
