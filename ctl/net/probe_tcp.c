// SPDX-License-Identifier: GPL-2.0-only
// Probes by tcp: the connection is established. It is reset, so that neither side has to wait for
// its end.
#include <errno.h>
#include <sys/socket.h>

#include "ctl/net/probe_parts.h"

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

const struct probe_form probe_tcp = {.start = start, .stop = probe_close};
