// SPDX-License-Identifier: GPL-2.0-only
// Probes by a program: it exits with status 0. It runs in a process group of its own, which ends
// with it.
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/net/loop.h"
#include "ctl/net/probe_parts.h"
#include "ctl/net/program.h"

static void run_next(struct probes *all);

static void leave_queue(struct probe *p)
{
	if (!p->link)
		return;
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	else
		p->all->last_waiting = p->link;
	p->link = NULL;
}

static void join_queue(struct probe *p)
{
	struct probes *all = p->all;

	p->next = NULL;
	p->link = all->last_waiting;
	*p->link = p;
	all->last_waiting = &p->next;
	event_del(p->timer); // its time begins when it runs
}

// ---- the end ------------------------------------------------------------------------------------

// A program that was killed and is not dead yet: it may hang in the kernel.
struct probe_dying {
	struct probe_dying *next, **link;
	struct probes *all;
	struct event *event;
	pid_t pid;
	int fd;
};

static void dying_free(struct probe_dying *d)
{
	*d->link = d->next;
	if (d->next)
		d->next->link = d->link;
	loop_event_free(d->event);
	close(d->fd);
	free(d);
}

void probe_exec_forget(struct probes *all)
{
	while (all->dying)
		dying_free(all->dying);
}

static void on_dead(evutil_socket_t fd, short what, void *ctx)
{
	struct probe_dying *d = ctx;
	struct probes *all = d->all;

	waitpid(d->pid, NULL, WNOHANG);
	dying_free(d);
	all->programs--;
	run_next(all);
}

static void wait_for_death(struct probe *p)
{
	struct probe_dying *d = mem_new(struct probe_dying);

	*d = (struct probe_dying){.next = p->all->dying,
				  .link = &p->all->dying,
				  .all = p->all,
				  .pid = p->pid,
				  .fd = p->fd};
	if (d->next)
		d->next->link = &d->next;
	p->all->dying = d;
	p->fd = -1;
	d->event = loop_event(p->all->base, d->fd, EV_READ, on_dead, d);
	if (!d->event || event_add(d->event, NULL))
		mem_exhausted();
}

// Also kills processes that the program has started, unless they have left the group.
static void end_program(struct probe *p)
{
	program_kill(p->pid);
	if (p->event)
		event_del(p->event);
	if (waitpid(p->pid, NULL, WNOHANG) == 0 && p->fd >= 0) {
		wait_for_death(p);
	} else {
		p->all->programs--;
		probe_close(p);
		run_next(p->all);
	}
	p->pid = 0;
}

static void stop(struct probe *p)
{
	leave_queue(p);
	if (p->pid)
		end_program(p);
}

static void on_end(evutil_socket_t fd, short what, void *ctx)
{
	struct probe *p = ctx;
	char why[64];

	if (!program_ended(p->pid, why, sizeof(why)))
		return;
	if (why[0])
		probe_fail(p, "the program %s", why);
	else
		probe_pass(p);
}

static int run(struct probe *p)
{
	int code = program_start(p->spec.arguments, p->spec.environment,
				 &(struct program_files){-1, -1, -1}, &p->pid, &p->fd);

	if (code) {
		p->pid = 0;
		return probe_fail_errno(p, -code);
	}
	p->all->programs++;
	if (p->fd < 0)
		return probe_fail_errno(p, errno);
	return probe_wait(p, EV_READ, on_end);
}

static void run_next(struct probes *all)
{
	while (all->first_waiting && all->programs < PROBE_PROGRAMS) {
		struct probe *p = all->first_waiting;

		leave_queue(p);
		probe_restart_clock(p);
		run(p);
	}
}

static int start(struct probe *p)
{
	if (p->all->programs < PROBE_PROGRAMS)
		return run(p);
	join_queue(p);
	return 0;
}

const struct probe_form probe_exec = {.start = start, .stop = stop};
