// SPDX-License-Identifier: GPL-2.0-only
// Forks, and reads the result from a pipe. The agent has no threads, so its copy may call anything.
#include "ctl/agent/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/base/mem.h"
#include "ctl/net/loop.h"

#define RESULT_FD 3

struct result {
	int code;
	uint64_t value;
	struct err err;
};
_Static_assert(sizeof(struct result) <= PIPE_BUF, "one write, which is not cut");

struct worker {
	pid_t pid;
	int out; // the end of the pipe that is read
	struct event *readable;
	worker_done *done;
	void *ctx;
};

static void worker_free(struct worker *w)
{
	loop_event_free(w->readable);
	fd_close(w->out);
	free(w);
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

void worker_stop(struct worker *w)
{
	if (!w)
		return;
	kill(w->pid, SIGKILL);
	reap(w->pid);
	worker_free(w);
}

static void on_result(evutil_socket_t fd, short what, void *ctx)
{
	struct worker *w = ctx, ended = *w;
	struct result result = {0};
	ssize_t n = read(fd, &result, sizeof(result));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(result)) {
		result = (struct result){0};
		result.code = err_stated(&result.err, ECHILD, "a process of the agent was killed");
	}
	reap(w->pid);
	worker_free(w);
	ended.done(ended.ctx, result.code, result.value, &result.err);
}

// The copy has no part in the agent's signals, locks and connections, and ends with it.
static void leave_agent(int pipe_end, pid_t agent)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};

	for (size_t n = 0; n < ARRAY_SIZE(numbers); n++)
		signal(numbers[n], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(0);
	dup2(pipe_end, RESULT_FD);
	syscall(SYS_close_range, RESULT_FD + 1, ~0u, 0); // not every C library has the function
}

__attribute__((noreturn)) static void work(int pipe_end, pid_t agent, worker_run *run, void *ctx)
{
	struct result result = {0};

	leave_agent(pipe_end, agent);
	result.code = run(ctx, &result.value, &result.err);
	_exit(write(RESULT_FD, &result, sizeof(result)) != sizeof(result));
}

static int start(struct worker *w, struct agent *a, worker_run *run, struct err *err)
{
	CLEANUP_FD int in = -1;
	pid_t agent = getpid();
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC))
		return err_system(err, errno, "cannot make a pipe");
	w->out = pipes[0];
	in = pipes[1];
	fcntl(w->out, F_SETFL, O_NONBLOCK);
	w->pid = fork();
	if (w->pid < 0)
		return err_system(err, errno, "cannot start a process");
	if (!w->pid)
		work(in, agent, run, w->ctx);
	w->readable = loop_event(a->loop, w->out, EV_READ | EV_PERSIST, on_result, w);
	if (!w->readable || event_add(w->readable, NULL))
		mem_exhausted();
	return 0;
}

int worker_start(struct agent *a, worker_run *run, worker_done *done, void *ctx,
		 struct worker **ret, struct err *err)
{
	struct worker *w = mem_new(struct worker);
	int code;

	*w = (struct worker){.out = -1, .done = done, .ctx = ctx};
	if ((code = start(w, a, run, err)))
		worker_free(w);
	else
		*ret = w;
	return code;
}
