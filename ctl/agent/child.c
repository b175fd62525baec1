// SPDX-License-Identifier: GPL-2.0-only
// Starts this program again, with what the agent was told at its start.
#include "ctl/agent/child.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/base/vec.h"
#include "ctl/net/geo_db.h"

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
static void make_environment(const struct agent *a, const struct child_files *files,
			     struct words *ret)
{
	extern char **environ;

	for (char **one = environ; *one; one++)
		vec_push(ret, *one);
	if (a->without_login)
		vec_push(ret, CHILD_WITHOUT_LOGIN "=1");
	if (files->errors < 0)
		vec_push(ret, CHILD_FOR "=api");
	if (files->tells)
		vec_push(ret, CHILD_TELLS "=1");
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
	posix_spawn_file_actions_adddup2(&actions, files->in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, files->out, STDOUT_FILENO);
	if (files->errors >= 0)
		posix_spawn_file_actions_adddup2(&actions, files->errors, STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	sigemptyset(&back);
	sigaddset(&back, SIGPIPE); // the agent ignores it
	posix_spawnattr_setsigdefault(&attributes, &back);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	make_environment(a, files, &environment);
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
