// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for hooks: the queue, and the process that runs.
#include "ctl/agent/hooks.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/hook_alarms.h"
#include "ctl/agent/task.h"
#include "ctl/base/json.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/net/loop.h"
#include "ctl/net/program.h"

#define WAITING_MAX 100
#define SECONDS     10
#define LINE_MAX    32768 // a pipe has room for that

struct hooks {
	struct agent *agent;
	VEC(char *) waiting; // lines of JSON, the oldest first
	uint64_t lost;       // events, since the last report of their number
	uint64_t lost_all, ended, failed;
	pid_t pid;         // 0: none runs
	int fd;            // its pidfd
	struct event *end; // of fd
	struct agent_task timeout;
	bool late;              // it was killed
	struct trouble trouble; // result of the last one that has ended
	struct hook_alarms *alarms;
};

// ---- the queue ----------------------------------------------------------------------------------

static void set(struct json *to, const char *key, const char *value)
{
	json_set(to, key, value ? json_string(value) : json_nothing());
}

static char *line_of(const struct hook_event *e)
{
	CLEANUP_JSON struct json *object = json_object();
	struct text line = {0};
	num_time_text now;

	set(object, "time", num_format_time((uint64_t)time(NULL), now));
	set(object, "event", e->event);
	set(object, "object", e->object);
	set(object, "from", e->from);
	set(object, "to", e->to);
	set(object, "why", e->why);
	json_print(object, false, &line);
	return text_take(&line);
}

static void start_next(struct hooks *h);

static void lose(struct hooks *h)
{
	if (!h->lost++)
		log_warning("hook '%s': %d events wait, more are lost", h->agent->hook,
			    WAITING_MAX);
	h->lost_all++;
	agent_changed(h->agent);
}

void hooks_tell(struct agent *a, const struct hook_event *e)
{
	struct hooks *h = a->hooks;
	char *line;

	if (!h)
		return;
	if (h->waiting.n >= WAITING_MAX) {
		lose(h);
		return;
	}
	line = line_of(e);
	if (strlen(line) > LINE_MAX) {
		free(line);
		lose(h);
		return;
	}
	vec_push(&h->waiting, line);
	start_next(h);
}

// There is room again: the event follows the waiting ones, as the lost ones would have.
static void tell_lost(struct hooks *h)
{
	CLEANUP_FREE char *n = mem_printf("%llu", (unsigned long long)h->lost);
	const struct hook_event e = {
		.event = "lost", .object = "events", .to = n, .why = "the hook was too slow"};

	if (!h->lost)
		return;
	log_warning("hook '%s': %s events were lost", h->agent->hook, n);
	h->lost = 0;
	vec_push(&h->waiting, line_of(&e));
}

static char *take_first(struct hooks *h)
{
	char *line = h->waiting.at[0];

	memmove(h->waiting.at, h->waiting.at + 1, --h->waiting.n * sizeof(*h->waiting.at));
	tell_lost(h);
	return line;
}

// ---- the process --------------------------------------------------------------------------------

static void note_end(struct hooks *h, const char *why)
{
	h->ended++;
	h->failed += why[0] != '\0';
	if (!why[0])
		trouble_end(&h->trouble);
	else if (trouble_begin(&h->trouble, why))
		log_warning("hook '%s' %s", h->agent->hook, why);
	agent_changed(h->agent);
}

static void close_process(struct hooks *h)
{
	agent_task_cancel(&h->timeout);
	loop_event_free(TAKE_PTR(h->end));
	fd_close(h->fd);
	h->fd = -1;
	h->pid = 0;
	h->late = false;
}

static void on_end(evutil_socket_t fd, short what, void *ctx)
{
	struct hooks *h = ctx;
	char why[64];

	if (!program_ended(h->pid, why, sizeof(why)))
		return;
	program_kill(h->pid); // what it has started
	waitpid(h->pid, NULL, 0);
	if (h->late)
		snprintf(why, sizeof(why), "was killed after %d seconds", SECONDS);
	close_process(h);
	note_end(h, why);
	start_next(h);
}

// The next one waits until the process is dead.
static int on_timeout(void *ctx, struct err *err)
{
	struct hooks *h = ctx;

	h->late = true;
	program_kill(h->pid);
	return 0;
}

static int write_line(const char *line, int *ret)
{
	size_t len = strlen(line);
	CLEANUP_FD int in = -1;
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	in = pipes[0];
	if (write(pipes[1], line, len) != (ssize_t)len) {
		close(pipes[1]);
		return -EIO;
	}
	close(pipes[1]);
	*ret = TAKE_FD(in);
	return 0;
}

// Both outputs of the program go where the agent's messages go.
static int run(struct hooks *h, const char *line)
{
	extern char **environ;
	const char *arguments[] = {h->agent->hook, NULL};
	CLEANUP_FD int in = -1;
	int code = write_line(line, &in);

	if (code)
		return code;
	code = program_start(arguments, (const char *const *)environ,
			     &(struct program_files){in, STDERR_FILENO, STDERR_FILENO}, &h->pid,
			     &h->fd);
	if (code) {
		h->pid = 0;
		return code;
	}
	h->end = loop_event(h->agent->loop, h->fd, EV_READ | EV_PERSIST, on_end, h);
	if (!h->end || event_add(h->end, NULL))
		mem_exhausted();
	agent_task_move(&h->timeout, SECONDS * 1000);
	return 0;
}

static void start_next(struct hooks *h)
{
	while (!h->pid && h->waiting.n) {
		CLEANUP_FREE char *line = take_first(h);
		CLEANUP_FREE char *why = NULL;
		int code = run(h, line);

		if (!code)
			return;
		why = mem_printf("cannot be started: %s", err_why(code));
		note_end(h, why);
	}
}

// ---- the part -----------------------------------------------------------------------------------

int hooks_check(const char *program, struct err *err)
{
	if (program[0] != '/') {
		err_input(err, "--hook '%s' is not an absolute path", program);
		return -EINVAL;
	}
	if (!access(program, X_OK))
		return 0;
	err_input(err, "--hook '%s' cannot be run: %s", program,
		  errno == EACCES ? "it is not executable" : err_why(errno));
	return -EINVAL;
}

static void tell_alarm(struct agent *a, const char *alarm, bool on)
{
	hooks_tell(a, &(struct hook_event){.event = "alarm",
					   .object = alarm,
					   .from = on ? "off" : "on",
					   .to = on ? "on" : "off"});
}

static int start(struct agent *a, struct err *err)
{
	struct hooks *h;

	if (!a->hook)
		return 0;
	h = mem_new(struct hooks);
	*h = (struct hooks){.agent = a, .fd = -1};
	a->hooks = h;
	agent_task_init(&h->timeout, a, "time of the hook", on_timeout, h);
	h->alarms = hook_alarms_new(a, tell_alarm);
	return 0;
}

static void stop(struct agent *a)
{
	struct hooks *h = TAKE_PTR(a->hooks);

	if (!h)
		return;
	hook_alarms_free(h->alarms);
	if (h->pid) {
		program_kill(h->pid);
		waitpid(h->pid, NULL, WNOHANG);
		close_process(h);
	}
	vec_each (&h->waiting, line)
		free(*line);
	vec_free(&h->waiting);
	agent_task_free(&h->timeout);
	trouble_end(&h->trouble);
	free(h);
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct hooks *h = a->hooks;

	json_set(fields, "program", a->hook ? json_string(a->hook) : json_nothing());
	if (!h)
		return;
	json_set(fields, "ended", json_u64(h->ended));
	json_set(fields, "failed", json_u64(h->failed));
	json_set(fields, "waiting", json_u64(h->waiting.n));
	json_set(fields, "lost", json_u64(h->lost_all));
	if (h->trouble.why) {
		CLEANUP_FREE char *text = mem_printf("hook '%s' %s", a->hook, h->trouble.why);

		json_append(problems, json_string(text));
	}
}

const struct agent_part agent_hooks = {
	.name = "hooks",
	.start = start,
	.stop = stop,
	.report = report,
};
