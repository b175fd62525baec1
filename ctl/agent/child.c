// SPDX-License-Identifier: GPL-2.0-only
// Starts this program again, and reads its output until it ends.
#include "ctl/agent/child.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/net/geo_db.h"

#define SAID_MAX (64u << 10) // bytes of output that are kept

struct child {
	pid_t pid;
	int out; // the end of the pipe that is read
	struct event *readable;
	struct text said;
	child_done *done;
	void *ctx;
};

static void child_free(struct child *c)
{
	if (c->readable)
		event_free(c->readable);
	fd_close(c->out);
	text_free(&c->said);
	free(c);
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ERR_SYSTEM;
}

void child_stop(struct child *c)
{
	if (!c)
		return;
	kill(c->pid, SIGKILL);
	wait_for(c->pid);
	child_free(c);
}

void child_tell(void (*log)(const char *fmt, ...), const char *said)
{
	for (const char *at = said, *end; at; at = *end ? end + 1 : NULL) {
		at += strncmp(at, "weir: ", 6) ? 0 : 6;
		end = strchrnul(at, '\n');
		log("%.*s", (int)(end - at), at);
	}
}

static void keep(struct child *c, const char *data, size_t len)
{
	size_t room = SAID_MAX - c->said.len;

	text_add_shown(&c->said, data, len < room ? len : room);
}

// The lines as they are: text_add_shown takes an end of line for a control character.
static void keep_lines(struct child *c, const char *data, size_t len)
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

static void on_end(struct child *c)
{
	child_done *done = c->done;
	void *ctx = c->ctx;
	int status = wait_for(c->pid);
	CLEANUP_FREE char *said = NULL;

	while (c->said.len && c->said.at[c->said.len - 1] == '\n')
		c->said.at[--c->said.len] = '\0';
	said = text_take(&c->said);
	child_free(c);
	done(ctx, status, said);
}

static void on_output(evutil_socket_t fd, short what, void *child)
{
	struct child *c = child;
	char data[4096];
	ssize_t len = read(fd, data, sizeof(data));

	(void)what;
	if (len > 0)
		keep_lines(c, data, (size_t)len);
	else if (!len || (errno != EAGAIN && errno != EINTR))
		on_end(c);
}

struct words {
	const char **at;
	size_t n, cap;
};

static void add_option(struct words *words, const char *name, const char *value)
{
	if (!value)
		return;
	vec_push(words, name);
	vec_push(words, value);
}

// That of the agent; a command that has no login to protect is told so, since it cannot see that itself.
static void make_environment(const struct agent *a, bool among_ours, struct words *ret)
{
	extern char **environ;

	for (char **one = environ; *one; one++)
		vec_push(ret, *one);
	if (a->without_login)
		vec_push(ret, CHILD_WITHOUT_LOGIN "=1");
	if (among_ours)
		vec_push(ret, CHILD_FOR "=api");
	vec_push(ret, NULL);
}

static int spawn(const struct agent *a, const char *const *argv, const struct child_files *files,
		 pid_t *ret)
{
	CLEANUP_VEC struct words environment = {0};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t back;
	int code;

	posix_spawn_file_actions_init(&actions);
	if (files->in < 0)
		posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&actions, files->in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, files->out, STDOUT_FILENO);
	if (files->errors >= 0)
		posix_spawn_file_actions_adddup2(&actions, files->errors, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	sigemptyset(&back);
	sigaddset(&back, SIGPIPE); // the agent ignores it
	posix_spawnattr_setsigdefault(&attributes, &back);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	make_environment(a, files->errors < 0, &environment);
	code = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, (char *const *)argv,
			   (char *const *)environment.at);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return code;
}

int child_spawn(const struct agent *a, const char *const *args, const struct child_files *files,
		pid_t *ret, struct err *err)
{
	CLEANUP_VEC struct words words = {0};
	int code;

	vec_push(&words, "weir");
	add_option(&words, "-n", a->instance);
	add_option(&words, "-N", a->netns);
	add_option(&words, "--geo", geo_db_used());
	for (; *args; args++)
		vec_push(&words, *args);
	vec_push(&words, NULL);
	if ((code = spawn(a, words.at, files, ret)))
		return err_system(err, code, "cannot start '%s'", words.at[0]);
	return 0;
}

static int start(struct child *c, struct agent *a, const char *const *args, struct err *err)
{
	CLEANUP_FD int in = -1;
	int pipes[2], code;

	if (pipe2(pipes, O_CLOEXEC))
		return err_system(err, errno, "cannot make a pipe");
	c->out = pipes[0];
	in = pipes[1];
	fcntl(c->out, F_SETFL, O_NONBLOCK);
	if ((code = child_spawn(a, args, &(struct child_files){-1, in, in}, &c->pid, err)))
		return code;
	c->readable = event_new(a->loop, c->out, EV_READ | EV_PERSIST, on_output, c);
	if (!c->readable || event_add(c->readable, NULL))
		mem_exhausted();
	return 0;
}

void child_add_resolver(const struct agent *a, const char **args)
{
	size_t n = 0;

	if (a->resolver) {
		args[n++] = "--resolver";
		args[n++] = a->resolver;
	}
	if (a->resolver_timeout) {
		args[n++] = "--resolver-timeout";
		args[n++] = a->resolver_timeout;
	}
	args[n] = NULL;
}

int child_start(struct agent *a, const char *const *args, child_done *done, void *ctx,
		struct child **ret, struct err *err)
{
	struct child *c = mem_new(struct child);
	int code;

	*c = (struct child){.out = -1, .done = done, .ctx = ctx};
	if ((code = start(c, a, args, err)))
		child_free(c);
	else
		*ret = c;
	return code;
}
