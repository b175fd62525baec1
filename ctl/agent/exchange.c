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
#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/net/loop.h"

#define MODEST_NICE 10
#define SAID_MAX    (64u << 10) // bytes of messages that are kept

struct exchange {
	struct exchange_request request;
	struct evbuffer *input, *output;
	struct text said;
	struct event *readable, *talking, *writable, *ended, *timer;
	int from, to, errors; // the ends of its pipes; errors -1: not read, or closed
	int pidfd;
	pid_t pid;
	bool closed, exited;
	int status;
};

static void forget(struct exchange *c)
{
	struct event *events[] = {c->readable, c->talking, c->writable, c->ended, c->timer};

	for (size_t n = 0; n < ARRAY_SIZE(events); n++)
		loop_event_free(events[n]);
	if (c->input)
		evbuffer_free(c->input);
	if (c->output)
		evbuffer_free(c->output);
	fd_close(c->from);
	fd_close(c->to);
	fd_close(c->errors);
	fd_close(c->pidfd);
	text_free(&c->said);
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

static void give_document(struct exchange *c)
{
	size_t len = evbuffer_get_length(c->output);
	CLEANUP_JSON struct json *document =
		len ? json_parse((const char *)evbuffer_pullup(c->output, -1), len, NULL, 0) : NULL;

	c->request.done(c->request.ctx, &(struct exchange_result){.status = c->status,
								  .document = document,
								  .said = text_get(&c->said)});
}

// Its end and the ends of its output come in any order.
static void finish_if_over(struct exchange *c)
{
	if (!c->closed || !c->exited || c->errors >= 0)
		return;
	if (c->request.done_all)
		c->request.done_all(c->request.ctx, c->status, c->output);
	else
		give_document(c);
	forget(c);
}

static void on_end(evutil_socket_t fd, short what, void *exchange)
{
	struct exchange *c = exchange;
	int status = 0;

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

static void keep(struct exchange *c, const char *data, size_t len)
{
	size_t room = SAID_MAX - c->said.len;

	text_add_shown(&c->said, data, len < room ? len : room);
}

// The lines as they are: text_add_shown takes an end of line for a control character.
static void keep_lines(struct exchange *c, const char *data, size_t len)
{
	while (len) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;

		keep(c, data, n);
		if (end && c->said.len < SAID_MAX)
			text_addc(&c->said, '\n');
		data += n + (end != NULL);
		len -= n + (end != NULL);
	}
}

static void on_message(evutil_socket_t fd, short what, void *exchange)
{
	struct exchange *c = exchange;
	char data[4096];
	ssize_t len = read(fd, data, sizeof(data));

	if (len > 0)
		keep_lines(c, data, (size_t)len);
	if (len > 0 || (len < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	event_del(c->talking);
	fd_close(c->errors);
	c->errors = -1;
	finish_if_over(c);
}

static void on_room(evutil_socket_t fd, short what, void *exchange)
{
	struct exchange *c = exchange;
	int n = evbuffer_write(c->input, fd);

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

	kill(c->pid, SIGKILL);
}

// ours: 0, the end that is read, or 1.
static int make_pipe(int ours, int *ret_ours, int *ret_theirs, struct err *err)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC))
		return err_system(err, errno, "cannot make a pipe");
	evutil_make_socket_nonblocking(pipes[ours]);
	*ret_ours = pipes[ours];
	*ret_theirs = pipes[!ours];
	return 0;
}

static int spawn(struct agent *a, struct exchange *c, struct err *err)
{
	CLEANUP_FD int in = -1, out = -1, errors = -1;
	int code;

	if ((code = make_pipe(0, &c->from, &out, err)))
		return code;
	if ((code = make_pipe(1, &c->to, &in, err)))
		return code;
	if (c->request.tells && (code = make_pipe(0, &c->errors, &errors, err)))
		return code;
	if (c->request.silent)
		errors = open("/dev/null", O_WRONLY | O_CLOEXEC);
	code = child_spawn(a, c->request.args,
			   &(struct child_files){in, out, errors, c->request.tells, c->request.by},
			   &c->pid, err);
	if (code)
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
	c->readable = loop_event(a->loop, c->from, EV_READ | EV_PERSIST, on_output, c);
	if (c->errors >= 0)
		c->talking = loop_event(a->loop, c->errors, EV_READ | EV_PERSIST, on_message, c);
	c->writable = loop_event(a->loop, c->to, EV_WRITE | EV_PERSIST, on_room, c);
	c->ended = loop_event(a->loop, c->pidfd, EV_READ | EV_PERSIST, on_end, c);
	c->timer = loop_timer(a->loop, on_timeout, c);
	if (!c->readable || !c->writable || !c->ended || !c->timer ||
	    (c->errors >= 0 && (!c->talking || event_add(c->talking, NULL))) ||
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

	*c = (struct exchange){
		.request = *request, .from = -1, .to = -1, .errors = -1, .pidfd = -1};
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
	c->request.args = NULL; // these are the caller's
	c->request.by = NULL;
	*ret = c;
	return 0;
}

void exchange_failure(const struct exchange_result *r, const char *what, struct err *ret)
{
	const struct json *error = json_get(r->document, "error");
	const char *text = json_get_string(error, "text"), *hint = json_get_string(error, "hint");

	if (text && hint)
		err_input(ret, "%s (%s)", text, hint);
	else if (text)
		err_input(ret, "%s", text);
	else if (r->status < 0)
		err_input(ret, "%s was killed", what);
	else
		err_input(ret, "%s has ended with exit status %d and no answer", what, r->status);
	ret->kind = r->status > 0 ? (enum err_kind)r->status : ERR_SYSTEM;
}

void exchange_log(const struct exchange_result *r, bool last_line,
		  void (*log)(const char *fmt, ...))
{
	static const char name[] = "weir: ";

	for (const char *at = r->said, *end; *at; at = *end ? end + 1 : end) {
		at += strncmp(at, name, strlen(name)) ? 0 : strlen(name);
		end = strchrnul(at, '\n');
		if (!last_line || !end[0] || !end[1])
			log("%.*s", (int)(end - at), at);
	}
}
