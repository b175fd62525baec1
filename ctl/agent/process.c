// SPDX-License-Identifier: GPL-2.0-only
// Starts this program again, or its copy, with pipes. The agent has no threads, so its copy may
// call anything.
#include "ctl/agent/process.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/task.h"
#include "ctl/base/file.h"
#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/lock.h"
#include "ctl/net/geo_db.h"
#include "ctl/net/loop.h"

#define MODEST_NICE 10
#define SAID_MAX    (64u << 10) // bytes of messages that are kept
#define OUTPUT_FD   3           // of a copy
#define PIPE_MOST   (1 << 20)   // bytes; default of /proc/sys/fs/pipe-max-size

struct agent_process {
	struct process_request request;
	struct evbuffer *input, *output;
	struct text said;
	struct event *readable, *talking, *writable, *ended;
	struct agent_task timeout;
	int from, to, errors; // the ends of its pipes; -1: closed, or not used
	int pidfd;
	pid_t pid;
	bool exited;
	int status;
};

// The header that a copy writes before its output.
struct ending {
	int code;
	struct err err;
};

// ---- the end ------------------------------------------------------------------------------------

static void forget(struct agent_process *p)
{
	struct event *events[] = {p->readable, p->talking, p->writable, p->ended};

	for (size_t n = 0; n < ARRAY_SIZE(events); n++)
		loop_event_free(events[n]);
	agent_task_free(&p->timeout);
	if (p->input)
		evbuffer_free(p->input);
	if (p->output)
		evbuffer_free(p->output);
	fd_close(p->from);
	fd_close(p->to);
	fd_close(p->errors);
	fd_close(p->pidfd);
	text_free(&p->said);
	free(p);
}

void process_stop(struct agent_process *p)
{
	if (!p)
		return;
	if (!p->exited && p->pid > 0) {
		kill(p->pid, SIGKILL);
		while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	forget(p);
}

// One call writes at most 128 blocks of the buffer.
void process_flush(struct agent_process *p)
{
	if (p->to < 0 || !evbuffer_get_length(p->input))
		return;
	fcntl(p->to, F_SETPIPE_SZ, PIPE_MOST);
	while (evbuffer_get_length(p->input) && evbuffer_write(p->input, p->to) > 0)
		continue;
}

void process_leave(struct agent_process *p)
{
	if (!p)
		return;
	process_flush(p);
	forget(p);
}

static void close_pipe(struct event **event, int *fd)
{
	loop_event_free(TAKE_PTR(*event));
	fd_close(*fd);
	*fd = -1;
}

static void take_ending(struct process_result *ret)
{
	struct ending ending;

	if (ret->status || !process_take(ret, &ending, sizeof(ending))) {
		ret->status = -1;
		err_stated(&ret->err, ECHILD, "a process of the agent was killed");
		return;
	}
	ret->status = ending.code;
	ret->err = ending.err;
}

static void give_result(struct agent_process *p)
{
	struct process_result result = {
		.status = p->status, .output = p->output, .said = text_get(&p->said)};
	size_t len = evbuffer_get_length(p->output);
	CLEANUP_JSON struct json *document = NULL;

	if (p->request.run)
		take_ending(&result);
	else if (len && !p->request.plain && !p->request.part)
		document = json_parse((const char *)evbuffer_pullup(p->output, -1), len, NULL, 0);
	result.document = document;
	p->request.done(p->request.ctx, &result);
}

// Its end and the ends of its output come in any order.
static void finish_if_over(struct agent_process *p)
{
	if (p->from >= 0 || p->errors >= 0 || !p->exited)
		return;
	give_result(p);
	forget(p);
}

static void on_end(evutil_socket_t fd, short what, void *process)
{
	struct agent_process *p = process;
	int status = 0;

	if (waitpid(p->pid, &status, WNOHANG) <= 0)
		return;
	event_del(p->ended);
	p->exited = true;
	p->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	finish_if_over(p);
}

// Its output may stay open after its end, when the number is free for another process.
static void kill_it(const struct agent_process *p)
{
	if (!p->exited)
		kill(p->pid, SIGKILL);
}

static int on_timeout(void *process, struct err *err)
{
	kill_it(process);
	return 0;
}

// ---- input and output ---------------------------------------------------------------------------

static bool is_later(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void on_output(evutil_socket_t fd, short what, void *process)
{
	struct agent_process *p = process;
	int n = evbuffer_read(p->output, fd, 65536);

	if (is_later(n))
		return;
	if (n <= 0) {
		close_pipe(&p->readable, &p->from);
		finish_if_over(p);
		return;
	}
	if (p->request.part) {
		p->request.part(p->request.ctx, (const char *)evbuffer_pullup(p->output, -1),
				evbuffer_get_length(p->output));
		evbuffer_drain(p->output, evbuffer_get_length(p->output));
	} else if (p->request.output_max &&
		   evbuffer_get_length(p->output) > p->request.output_max) {
		kill_it(p);
	}
}

static void keep(struct agent_process *p, const char *data, size_t len)
{
	size_t room = p->said.len < SAID_MAX ? SAID_MAX - p->said.len : 0;

	text_add_shown(&p->said, data, len < room ? len : room);
}

// The lines as they are: text_add_shown takes an end of line for a control character.
static void keep_lines(struct agent_process *p, const char *data, size_t len)
{
	while (len) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;

		keep(p, data, n);
		if (end && p->said.len < SAID_MAX)
			text_addc(&p->said, '\n');
		data += n + (end != NULL);
		len -= n + (end != NULL);
	}
}

static void on_message(evutil_socket_t fd, short what, void *process)
{
	struct agent_process *p = process;
	char data[4096];
	ssize_t len = read(fd, data, sizeof(data));

	if (len > 0)
		keep_lines(p, data, (size_t)len);
	if (len > 0 || is_later(len))
		return;
	close_pipe(&p->talking, &p->errors);
	finish_if_over(p);
}

static void on_room(evutil_socket_t fd, short what, void *process)
{
	struct agent_process *p = process;
	int n = evbuffer_get_length(p->input) ? evbuffer_write(p->input, fd) : 0;

	if (is_later(n) || (n >= 0 && evbuffer_get_length(p->input)))
		return;
	if (n >= 0 && p->request.reads)
		event_del(p->writable);
	else
		close_pipe(&p->writable, &p->to);
}

// One that does not read any more has ended, or ends.
void process_send(struct agent_process *p, const char *input, size_t len)
{
	if (!p->writable)
		return;
	if (evbuffer_add(p->input, input, len) || event_add(p->writable, NULL))
		mem_exhausted();
}

bool process_reads(const struct agent_process *p)
{
	return p->writable;
}

size_t process_unsent(const struct agent_process *p)
{
	return evbuffer_get_length(p->input);
}

// ---- a command ----------------------------------------------------------------------------------

struct words {
	const char **at;
	size_t n, cap;
};

// The environment of the command: strings of the agent's environment, and `own` ones.
struct surroundings {
	struct words all;
	VEC(char *) own;
};

static void surroundings_free(struct surroundings *s)
{
	vec_each (&s->own, one)
		free(*one);
	vec_free(&s->own);
	vec_free(&s->all);
}

static void add_variable(struct surroundings *s, const char *name, const char *value)
{
	if (!value)
		return;
	vec_push(&s->own, mem_printf("%s=%s", name, value));
	vec_push(&s->all, *vec_last(&s->own));
}

static void add_option(struct words *words, const char *name, const char *value)
{
	if (!value)
		return;
	vec_push(words, name);
	vec_push(words, value);
}

// A command that has no login to protect cannot see that itself.
static void make_environment(const struct agent *a, const struct process_request *r,
			     struct surroundings *ret)
{
	extern char **environ;

	for (char **one = environ; *one; one++)
		vec_push(&ret->all, *one);
	add_variable(ret, PROCESS_WITHOUT_LOGIN, a->session ? NULL : "1");
	add_variable(ret, PROCESS_FOR, r->tells || r->silent ? NULL : "api");
	add_variable(ret, PROCESS_BY, r->by ? r->by : PROCESS_AGENT);
	add_variable(ret, PROCESS_TELLS, r->tells ? "1" : NULL);
	add_variable(ret, PROCESS_RESOLVER, a->resolver);
	add_variable(ret, PROCESS_TIMEOUT, a->resolver_timeout);
	vec_push(&ret->all, NULL);
}

// Its standard input, output and error; errors -1: the agent's.
struct spawn_files {
	int in, out, errors;
};

static int spawn(const struct agent *a, const char *const *argv, const struct process_request *r,
		 const struct spawn_files *files, pid_t *ret)
{
	CLEANUP(surroundings_free) struct surroundings environment = {0};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t back;
	int code;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, files->in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, files->out, STDOUT_FILENO);
	if (files->errors >= 0)
		posix_spawn_file_actions_adddup2(&actions, files->errors, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	sigemptyset(&back);
	sigaddset(&back, SIGPIPE); // the agent ignores it
	posix_spawnattr_setsigdefault(&attributes, &back);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	make_environment(a, r, &environment);
	code = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, (char *const *)argv,
			   (char *const *)environment.all.at);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return code;
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

static int start_command(struct agent *a, struct agent_process *p, int out, struct err *err)
{
	CLEANUP_VEC struct words words = {0};
	CLEANUP_FD int in = -1, errors = -1;
	int code;

	if ((code = make_pipe(1, &p->to, &in, err)))
		return code;
	if (p->request.tells && (code = make_pipe(0, &p->errors, &errors, err)))
		return code;
	if (p->request.silent)
		errors = open("/dev/null", O_WRONLY | O_CLOEXEC);
	vec_push(&words, "weir");
	add_option(&words, "-n", a->instance);
	add_option(&words, "-N", a->netns);
	add_option(&words, "--geo", geo_db_used());
	for (const char *const *args = p->request.args; *args; args++)
		vec_push(&words, *args);
	vec_push(&words, NULL);
	code = spawn(a, words.at, &p->request, &(struct spawn_files){in, out, errors}, &p->pid);
	return code ? err_system(err, code, "cannot start '%s'", words.at[0]) : 0;
}

// ---- a function ---------------------------------------------------------------------------------

// The copy has no part in the agent's signals, locks and connections, and ends with it.
static void leave_agent(int out, pid_t agent)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};

	for (size_t n = 0; n < ARRAY_SIZE(numbers); n++)
		signal(numbers[n], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(0);
	dup2(out, OUTPUT_FD);
	syscall(SYS_close_range, OUTPUT_FD + 1, ~0u, 0); // not every C library has the function
	lock_never_wait(false);
}

__attribute__((noreturn)) static void work(const struct process_request *r, int out, pid_t agent)
{
	CLEANUP_TEXT struct text output = {0};
	struct ending ending = {0};

	leave_agent(out, agent);
	ending.code = r->run(r->ctx, &output, &ending.err);
	if (file_write(OUTPUT_FD, &ending, sizeof(ending)) ||
	    file_write(OUTPUT_FD, output.at, output.len))
		_exit(1);
	_exit(0);
}

static int start_copy(struct agent_process *p, int out, struct err *err)
{
	pid_t agent = getpid();

	p->pid = fork();
	if (p->pid < 0)
		return err_system(err, errno, "cannot start a process");
	if (!p->pid)
		work(&p->request, out, agent);
	return 0;
}

// ---- the start ----------------------------------------------------------------------------------

static void watch(struct agent *a, struct event **ret, int fd, short what, event_callback_fn run,
		  const char *name, struct agent_process *p)
{
	if (fd < 0)
		return;
	*ret = loop_event_new(a->loop, fd, what | EV_PERSIST, run, p, name);
	if (!*ret || event_add(*ret, NULL))
		mem_exhausted();
}

static int start(struct agent *a, struct agent_process *p, struct err *err)
{
	CLEANUP_FD int out = -1;
	int code = make_pipe(0, &p->from, &out, err);

	if (code)
		return code;
	if ((code = p->request.run ? start_copy(p, out, err) : start_command(a, p, out, err)))
		return code;
	if (p->request.modest)
		setpriority(PRIO_PROCESS, (id_t)p->pid, MODEST_NICE);
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0)
		return err_system(err, errno, "cannot watch a command");
	watch(a, &p->readable, p->from, EV_READ, on_output, "process: output", p);
	watch(a, &p->talking, p->errors, EV_READ, on_message, "process: messages", p);
	watch(a, &p->writable, p->to, EV_WRITE, on_room, "process: input", p);
	watch(a, &p->ended, p->pidfd, EV_READ, on_end, "process: end", p);
	if (p->request.timeout_s)
		agent_task_move(&p->timeout, p->request.timeout_s * UINT64_C(1000));
	return 0;
}

int process_start(struct agent *a, const struct process_request *request,
		  struct agent_process **ret, struct err *err)
{
	struct agent_process *p = mem_new(struct agent_process);
	int code;

	*p = (struct agent_process){
		.request = *request, .from = -1, .to = -1, .errors = -1, .pidfd = -1};
	p->input = evbuffer_new();
	p->output = evbuffer_new();
	agent_task_init(&p->timeout, a, "time of a process", on_timeout, p);
	if (!p->input || !p->output ||
	    (request->input_len && evbuffer_add(p->input, request->input, request->input_len)))
		mem_exhausted();
	if ((code = start(a, p, err))) {
		process_stop(p);
		return code;
	}
	p->request.args = NULL; // these are the caller's
	p->request.by = NULL;
	*ret = p;
	return 0;
}

// ---- results ------------------------------------------------------------------------------------

void process_failure(const struct process_result *r, const char *what, struct err *ret)
{
	const struct json *error = json_get(r->document, "error");
	const char *text = json_get_string(error, "text"), *hint = json_get_string(error, "hint");

	if (r->err.text[0]) {
		*ret = r->err;
		return;
	}
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

bool process_take(const struct process_result *r, void *to, size_t len)
{
	return evbuffer_remove(r->output, to, len) == (int)len;
}

void process_log(const struct process_result *r, bool last_line, void (*log)(const char *fmt, ...))
{
	static const char name[] = "weir: ";

	for (const char *at = r->said, *end; *at; at = *end ? end + 1 : end) {
		at += strncmp(at, name, strlen(name)) ? 0 : strlen(name);
		end = strchrnul(at, '\n');
		if (!last_line || !end[0] || !end[1])
			log("%.*s", (int)(end - at), at);
	}
}
