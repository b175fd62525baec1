// SPDX-License-Identifier: GPL-2.0-only
// Watches the lock file of the instance with inotify.
#include "ctl/agent/commands.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/task.h"
#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/net/loop.h"

struct after_command {
	struct agent_task *task;
	uint64_t ms;
};

struct commands {
	int inotify;
	struct event *changed;
	VEC(struct after_command) tasks;
};

static bool is_lock(const struct inotify_event *e)
{
	return e->mask & IN_Q_OVERFLOW || (e->len && !strcmp(e->name, "lock"));
}

static void on_change(evutil_socket_t fd, short what, void *commands)
{
	_Alignas(struct inotify_event) char events[4096];
	struct commands *c = commands;
	bool locked = false;
	ssize_t len;

	while ((len = read(fd, events, sizeof(events))) > 0)
		for (char *at = events; at < events + len;
		     at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len)
			locked |= is_lock((struct inotify_event *)at);
	vec_each (&c->tasks, one)
		if (locked)
			agent_task_in(one->task, one->ms);
}

void commands_free(struct commands *c)
{
	if (!c)
		return;
	loop_event_free(c->changed);
	fd_close(c->inotify);
	vec_free(&c->tasks);
	free(c);
}

static void cleanup(struct commands **c)
{
	commands_free(*c);
}

int commands_watch(struct agent *a, struct commands **ret, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_RUN_FOLDER, a->instance);
	CLEANUP(cleanup) struct commands *c = mem_new(struct commands);

	c->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (c->inotify < 0)
		return err_system(err, errno, "cannot use inotify");
	if (inotify_add_watch(c->inotify, folder, IN_MODIFY) < 0)
		return err_system(err, errno, "cannot watch '%s'", folder);
	c->changed = loop_event(a->loop, c->inotify, EV_READ | EV_PERSIST, on_change, c);
	if (!c->changed || event_add(c->changed, NULL))
		return err_system(err, ENOMEM, "cannot register an event");
	*ret = TAKE_PTR(c);
	return 0;
}

void agent_after_command(struct agent *a, struct agent_task *task, uint64_t ms)
{
	vec_push(&a->commands->tasks, ((struct after_command){task, ms}));
}
