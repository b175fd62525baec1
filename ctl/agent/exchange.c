// SPDX-License-Identifier: GPL-2.0-only
// Feeds a command and reads what it prints.
#include "ctl/agent/exchange.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/child.h"
#include "ctl/base/mem.h"

#define MODEST_NICE 10

struct exchange {
	struct exchange_request request;
	struct evbuffer *input, *output;
	struct event *readable, *writable, *ended, *timer;
	int from, to; // the ends of its pipes
	int pidfd;
	pid_t pid;
	bool closed, exited;
	int status;
};

static void forget(struct exchange *c)
{
	struct event *events[] = {c->readable, c->writable, c->ended, c->timer};

	for (size_t n = 0; n < ARRAY_SIZE(events); n++)
		if (events[n])
			event_free(events[n]);
	if (c->input)
		evbuffer_free(c->input);
	if (c->output)
		evbuffer_free(c->output);
	fd_close(c->from);
	fd_close(c->to);
	fd_close(c->pidfd);
	free(c);
}

void exchange_stop(struct exchange *c)
{
	if (!c)
		return;
	if (!c->exited && c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	forget(c);
}

// Its end and the end of its output come in any order.
static void finish_if_over(struct exchange *c)
{
	if (!c->closed || !c->exited)
		return;
	if (c->request.done_all)
		c->request.done_all(c->request.ctx, c->status, c->output);
	else
		c->request.done(c->request.ctx, c->status,
				(const char *)evbuffer_pullup(c->output, -1),
				evbuffer_get_length(c->output));
	forget(c);
}

static void on_end(evutil_socket_t fd, short what, void *exchange)
{
	struct exchange *c = exchange;
	int status = 0;

	(void)fd;
	(void)what;
	if (waitpid(c->pid, &status, WNOHANG) <= 0)
		return;
	event_del(c->ended);
	c->exited = true;
	c->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	finish_if_over(c);
}

static void on_output(evutil_socket_t fd, short what, void *exchange)
{
	struct exchange *c = exchange;
	int n = evbuffer_read(c->output, fd, 65536);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		event_del(c->readable);
		c->closed = true;
		finish_if_over(c);
		return;
	}
	if (c->request.part) {
		c->request.part(c->request.ctx, (const char *)evbuffer_pullup(c->output, -1),
				evbuffer_get_length(c->output));
		evbuffer_drain(c->output, evbuffer_get_length(c->output));
	} else if (evbuffer_get_length(c->output) > c->request.output_max) {
		kill(c->pid, SIGKILL);
	}
}

static void on_room(evutil_socket_t fd, short what, void *exchange)
{
	struct exchange *c = exchange;
	int n = evbuffer_write(c->input, fd);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n >= 0 && evbuffer_get_length(c->input))
		return;
	event_del(c->writable);
	fd_close(c->to);
	c->to = -1;
}

static void on_timeout(evutil_socket_t fd, short what, void *exchange)
{
	struct exchange *c = exchange;

	(void)fd;
	(void)what;
	kill(c->pid, SIGKILL);
}

static int spawn(struct agent *a, struct exchange *c, struct err *err)
{
	CLEANUP_FD int in = -1, out = -1, silent = -1;
	int pipes[2], code;

	if (pipe2(pipes, O_CLOEXEC))
		return err_system(err, errno, "cannot make a pipe");
	c->from = pipes[0];
	out = pipes[1];
	if (pipe2(pipes, O_CLOEXEC))
		return err_system(err, errno, "cannot make a pipe");
	in = pipes[0];
	c->to = pipes[1];
	evutil_make_socket_nonblocking(c->from);
	evutil_make_socket_nonblocking(c->to);
	if (c->request.silent)
		silent = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if ((code = child_spawn(a, c->request.args, &(struct child_files){in, out, silent}, &c->pid,
				err)))
		return code;
	if (c->request.modest)
		setpriority(PRIO_PROCESS, (id_t)c->pid, MODEST_NICE);
	return 0;
}

static int watch(struct agent *a, struct exchange *c, struct err *err)
{
	struct timeval timeout = {.tv_sec = (time_t)c->request.timeout_s};

	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->pidfd < 0)
		return err_system(err, errno, "cannot watch a command");
	c->readable = event_new(a->loop, c->from, EV_READ | EV_PERSIST, on_output, c);
	c->writable = event_new(a->loop, c->to, EV_WRITE | EV_PERSIST, on_room, c);
	c->ended = event_new(a->loop, c->pidfd, EV_READ | EV_PERSIST, on_end, c);
	c->timer = evtimer_new(a->loop, on_timeout, c);
	if (!c->readable || !c->writable || !c->ended || !c->timer ||
	    event_add(c->readable, NULL) || event_add(c->writable, NULL) ||
	    event_add(c->ended, NULL) || (c->request.timeout_s && evtimer_add(c->timer, &timeout)))
		return err_system(err, ENOMEM, "cannot watch a command");
	return 0;
}

int exchange_start(struct agent *a, const struct exchange_request *request, struct exchange **ret,
		   struct err *err)
{
	struct exchange *c = mem_new(struct exchange);
	int code;

	*c = (struct exchange){.request = *request, .from = -1, .to = -1, .pidfd = -1};
	c->input = evbuffer_new();
	c->output = evbuffer_new();
	if (!c->input || !c->output ||
	    (request->input_len && evbuffer_add(c->input, request->input, request->input_len)))
		code = err_system(err, ENOMEM, "cannot start a command");
	else if (!(code = spawn(a, c, err)))
		code = watch(a, c, err);
	if (code) {
		exchange_stop(c);
		return code;
	}
	c->request.args = NULL; // the caller's
	*ret = c;
	return 0;
}
