// SPDX-License-Identifier: GPL-2.0-only
// Starts this program again, with what the agent was told at its start.
#include "ctl/agent/child.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/net/geo_db.h"

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
static void make_environment(const struct agent *a, const struct child_files *files,
			     struct surroundings *ret)
{
	extern char **environ;

	for (char **one = environ; *one; one++)
		vec_push(&ret->all, *one);
	add_variable(ret, CHILD_WITHOUT_LOGIN, a->without_login ? "1" : NULL);
	add_variable(ret, CHILD_FOR, files->errors < 0 ? "api" : NULL);
	add_variable(ret, CHILD_BY, files->by ? files->by : CHILD_AGENT);
	add_variable(ret, CHILD_TELLS, files->tells ? "1" : NULL);
	add_variable(ret, CHILD_RESOLVER, a->resolver);
	add_variable(ret, CHILD_TIMEOUT, a->resolver_timeout);
	vec_push(&ret->all, NULL);
}

static int spawn(const struct agent *a, const char *const *argv, const struct child_files *files,
		 pid_t *ret)
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
	make_environment(a, files, &environment);
	code = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, (char *const *)argv,
			   (char *const *)environment.all.at);
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
