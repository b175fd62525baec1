// SPDX-License-Identifier: GPL-2.0-only
// Probes of a server on an event loop: connections, requests and answers. None blocks.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"

struct event_base;
struct pattern;
struct probes; // what all probes of a loop share
struct probe;

enum probe_kind { PROBE_TCP, PROBE_HTTP, PROBE_DNS, PROBE_EXEC };

struct probe_span {
	uint16_t first, last;
};

// The target and the request. Pointers remain the caller's and must be valid as long as the probe
// exists.
struct probe_spec {
	enum probe_kind kind;
	struct addr addr;
	uint16_t port;
	struct addr source; // family 0: as the kernel chooses
	const char *device; // NULL: as the kernel chooses
	// Makes the socket for a connection to `port`: SOCK_STREAM or SOCK_DGRAM, not blocking,
	// bound. A descriptor or -errno. NULL: as usual. Not with source or device.
	int (*open)(void *ctx, uint16_t port, int type);
	void *open_ctx;
	uint32_t timeout_ms;
	// PROBE_HTTP
	bool tls, insecure;
	const char *path, *host, *sni, *ca; // NULL (except path): not given
	const struct pattern *body;         // in its first 16 KiB; NULL: any
	const struct probe_span *statuses;
	size_t n_statuses;
	// PROBE_DNS
	const char *name;
	uint16_t type;
	// PROBE_EXEC
	const char *const *arguments;   // the first is the program; NULL ends
	const char *const *environment; // NAME=VALUE; NULL ends
};

// Begins the reason of a failure without an answer, or without a whole one.
#define PROBE_NO_ANSWER "no answer within "

struct probe_result {
	bool good;
	// not good because something is missing on this host: no result about the server
	bool unknown;
	uint32_t took_us;
	char why[96]; // not good: "connection refused", "status 500"
};

// Called once for each probe_start() that probe_stop() does not end, never from inside of
// probe_start(). It may start the probe again or free it.
typedef void probe_done(void *ctx, const struct probe_result *result);

// The loop stays the caller's and outlives *ret. 0 or -errno with err set.
int probes_new(struct event_base *base, struct probes **ret, struct err *err);
void probes_free(struct probes *all); // after its probes; NULL is allowed

struct probe *probe_new(struct probes *all, const struct probe_spec *spec, probe_done *done,
			void *ctx);
void probe_free(struct probe *p);  // NULL is allowed
void probe_start(struct probe *p); // it is not running
void probe_stop(struct probe *p);
