// SPDX-License-Identifier: GPL-2.0-only
// Starts and ends probes of each kind; those by a TCP connection are made here.
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/net/loop.h"
#include "ctl/net/probe_parts.h"

// ---- a TCP connection ---------------------------------------------------------------------------

static void on_connected(evutil_socket_t fd, short what, void *ctx)
{
	struct probe *p = ctx;
	int code = 0;
	socklen_t len = sizeof(code);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len))
		code = errno;
	if (code)
		probe_fail_errno(p, code);
	else
		probe_pass(p);
}

static int start(struct probe *p)
{
	static const struct linger reset = {.l_onoff = 1};
	int code = probe_connect(p, SOCK_STREAM);

	if (code)
		return code;
	if (setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)))
		return probe_fail_errno(p, errno);
	return probe_wait(p, EV_WRITE, on_connected);
}

static const struct probe_form probe_tcp = {.start = start, .stop = probe_close};

// ---- start and end ------------------------------------------------------------------------------

static const struct probe_form *form_of(enum probe_kind kind)
{
	switch (kind) {
	case PROBE_TCP:
		return &probe_tcp;
	case PROBE_HTTP:
		return &probe_http;
	case PROBE_DNS:
		return &probe_dns;
	case PROBE_EXEC:
		break;
	}
	return &probe_exec;
}

int probes_new(struct event_base *base, struct probes **ret, struct err *err)
{
	struct probes *all = mem_new(struct probes);
	int code = curl_loop_new(base, &all->curl, err);

	if (code) {
		free(all);
		return code;
	}
	all->base = base;
	all->last_waiting = &all->first_waiting;
	*ret = all;
	return 0;
}

void probes_free(struct probes *all)
{
	if (!all)
		return;
	probe_exec_forget(all);
	curl_loop_free(all->curl);
	free(all);
}

// "no answer within 1s".
static void fail_time(struct probe *p)
{
	num_text time;

	probe_fail(p, PROBE_NO_ANSWER "%s", num_format_duration_ms(p->spec.timeout_ms, time));
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct probe *p = ctx;
	struct probe_result result;

	if (!p->ended) {
		fail_time(p);
		return;
	}
	result = p->result;
	p->runs = p->ended = false;
	p->done(p->ctx, &result);
}

struct probe *probe_new(struct probes *all, const struct probe_spec *spec, probe_done *done,
			void *ctx)
{
	struct probe *p = mem_new(struct probe);

	*p = (struct probe){.all = all,
			    .spec = *spec,
			    .form = form_of(spec->kind),
			    .done = done,
			    .ctx = ctx,
			    .fd = -1};
	p->timer = loop_timer(all->base, on_timer, p);
	if (!p->timer)
		mem_exhausted();
	return p;
}

void probe_start(struct probe *p)
{
	p->runs = true;
	p->ended = false;
	p->result = (struct probe_result){0};
	probe_restart_clock(p);
	p->form->start(p);
}

void probe_stop(struct probe *p)
{
	if (p->runs && !p->ended)
		p->form->stop(p);
	p->runs = p->ended = false;
	event_del(p->timer);
}

void probe_free(struct probe *p)
{
	if (!p)
		return;
	probe_stop(p);
	if (p->form->free)
		p->form->free(p);
	loop_event_free(p->event);
	loop_event_free(p->timer);
	free(p);
}
