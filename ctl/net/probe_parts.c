// SPDX-License-Identifier: GPL-2.0-only
// Shared by the kinds of probes: their result, time-out and sockets.
#include "ctl/net/probe_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/time.h"
#include "ctl/net/loop.h"

// ---- results ------------------------------------------------------------------------------------

static void tell_soon(struct probe *p)
{
	static const struct timeval at_once = {0};

	p->ended = true;
	p->result.took_us = (uint32_t)(time_us(CLOCK_MONOTONIC) - p->began_us);
	p->form->stop(p);
	evtimer_add(p->timer, &at_once);
}

void probe_pass(struct probe *p)
{
	if (p->ended)
		return;
	p->result.good = true;
	tell_soon(p);
}

int probe_fail(struct probe *p, const char *fmt, ...)
{
	va_list args;

	if (p->ended)
		return -EPROTO;
	va_start(args, fmt);
	vsnprintf(p->result.why, sizeof(p->result.why), fmt, args);
	va_end(args);
	tell_soon(p);
	return -EPROTO;
}

// Descriptors, memory, ports or processes of this host have run out.
static bool is_ours(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOMEM || code == ENOBUFS ||
	       code == EADDRNOTAVAIL || code == EAGAIN || code == EPERM;
}

int probe_fail_errno(struct probe *p, int code)
{
	const char *words = strerror(code);

	p->result.unknown = is_ours(code) && !p->ended;
	// "Connection refused" in the middle of a sentence.
	return probe_fail(p, "%c%s", words[0] >= 'A' && words[0] <= 'Z' ? words[0] + 32 : words[0],
			  words + 1);
}

void probe_restart_clock(struct probe *p)
{
	struct timeval limit = {.tv_sec = p->spec.timeout_ms / 1000,
				.tv_usec = p->spec.timeout_ms % 1000 * 1000};

	p->began_us = time_us(CLOCK_MONOTONIC);
	evtimer_add(p->timer, &limit);
}

// ---- sockets ------------------------------------------------------------------------------------

static socklen_t socket_address(const struct addr *a, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (a->family == 4) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
		memcpy(&in4->sin_addr, a->bytes, 4);
		return sizeof(*in4);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, a->bytes, 16);
	return sizeof(*in6);
}

static int choose_way(const struct probe *p)
{
	struct sockaddr_storage source;
	socklen_t len;

	if (p->spec.device && setsockopt(p->fd, SOL_SOCKET, SO_BINDTODEVICE, p->spec.device,
					 (socklen_t)strlen(p->spec.device)))
		return -errno;
	if (!p->spec.source.family)
		return 0;
	len = socket_address(&p->spec.source, 0, &source);
	return bind(p->fd, (struct sockaddr *)&source, len) ? -errno : 0;
}

static int probe_socket(struct probe *p, int family, int type)
{
	const struct probe_spec *s = &p->spec;

	p->fd = s->open ? s->open(s->open_ctx, s->port, type)
			: socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p->fd >= 0)
		return 0;
	return s->open ? p->fd : -errno;
}

int probe_connect(struct probe *p, int type)
{
	struct sockaddr_storage to;
	socklen_t len = socket_address(&p->spec.addr, p->spec.port, &to);
	int code;

	if ((code = probe_socket(p, to.ss_family, type)))
		return probe_fail_errno(p, -code);
	if ((code = choose_way(p)))
		return probe_fail_errno(p, -code);
	if (connect(p->fd, (struct sockaddr *)&to, len) && errno != EINPROGRESS)
		return probe_fail_errno(p, errno);
	return 0;
}

int probe_wait(struct probe *p, short what, event_callback_fn ready)
{
	loop_event_free(p->event);
	p->event = loop_event(p->all->base, p->fd, what, ready, p);
	if (!p->event || event_add(p->event, NULL))
		return probe_fail_errno(p, ENOMEM);
	return 0;
}

void probe_close(struct probe *p)
{
	if (p->event)
		event_del(p->event);
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}
