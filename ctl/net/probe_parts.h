// SPDX-License-Identifier: GPL-2.0-only
// Shared by the kinds of probes.
#pragma once

#include <event2/event.h>
#include <sys/types.h>

#include "ctl/net/curl_loop.h"
#include "ctl/net/probe.h"

#define PROBE_BODY_MAX (16u << 10) // bytes of a body that are read
#define PROBE_PROGRAMS 16          // that run at the same time

struct probe_dying; // a program that was killed

struct probes {
	struct event_base *base;
	struct curl_loop *curl;
	unsigned programs;                           // that run
	struct probe *first_waiting, **last_waiting; // for a program to end
	struct probe_dying *dying;
};

struct probe {
	struct probes *all;
	struct probe_spec spec;
	const struct probe_form *form;
	probe_done *done;
	void *ctx;
	bool runs;
	uint64_t began_us;
	struct event *timer; // the time-out; at once: the result that is there already
	struct probe_result result;
	bool ended;          // `result` is known, and the timer reports it
	int fd;              // socket or pidfd; -1
	struct event *event; // of fd
	// PROBE_HTTP
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	char *body;
	size_t body_len;
	bool body_full;
	int no_socket; // the error of spec.open; 0: none
	// PROBE_DNS
	unsigned char *query;
	int query_len;
	// PROBE_EXEC
	pid_t pid;           // 0: none
	struct probe *next;  // that waits
	struct probe **link; // NULL: it does not wait
};

// A kind of probe. start: 0; else the probe ends with `result.why`, set by probe_fail(). stop frees
// the results of start, also of an incomplete one. free releases data kept between two starts;
// NULL: none.
struct probe_form {
	int (*start)(struct probe *p);
	void (*stop)(struct probe *p);
	void (*free)(struct probe *p);
};
extern const struct probe_form probe_http, probe_dns, probe_exec;

// The answer is good.
void probe_pass(struct probe *p);
// It is bad or missing. Returns -EPROTO, for start. The first reason counts.
__attribute__((format(printf, 2, 3))) int probe_fail(struct probe *p, const char *fmt, ...);
// "connection refused": the error of a socket.
int probe_fail_errno(struct probe *p, int code);
// Restarts `timeout_ms`, for a program that has waited.
void probe_restart_clock(struct probe *p);

// Opens a non-blocking socket with the source address and the device of the spec, connected or
// connecting. 0 and p->fd; else a failed probe.
int probe_connect(struct probe *p, int type);
// Waits for p->fd. 0; else a failed probe.
int probe_wait(struct probe *p, short what, event_callback_fn ready);
void probe_close(struct probe *p);

// Does not wait for programs that were killed.
void probe_exec_forget(struct probes *all);
