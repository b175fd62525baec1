// SPDX-License-Identifier: GPL-2.0-only
// Probes by a program: it exits with status 0. It runs in a process group of its own, which ends with it.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/net/loop.h"
#include "ctl/net/probe_parts.h"

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

	(void)fd;
	(void)what;
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

// What the program has started ends too, unless it has left the group.
static void end_program(struct probe *p)
{
	kill(-p->pid, SIGKILL);
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
	siginfo_t info = {0};

	(void)fd;
	(void)what;
	// It stays a zombie until the group is killed: no other group has its number.
	if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return;
	if (info.si_code != CLD_EXITED)
		probe_fail(p, "the program was killed by signal %d", info.si_status);
	else if (info.si_status)
		probe_fail(p, "the program exited with status %d", info.si_status);
	else
		probe_pass(p);
}

static int prepare(posix_spawnattr_t *attr, posix_spawn_file_actions_t *files)
{
	sigset_t none, all;
	int code;

	sigemptyset(&none);
	sigfillset(&all);
	code = posix_spawnattr_setpgroup(attr, 0);
	code = code ? code : posix_spawnattr_setsigmask(attr, &none);
	code = code ? code : posix_spawnattr_setsigdefault(attr, &all);
	code = code ? code
		    : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP |
							     POSIX_SPAWN_SETSIGMASK |
							     POSIX_SPAWN_SETSIGDEF);
	for (int fd = 0; fd < 3; fd++)
		code = code ? code
			    : posix_spawn_file_actions_addopen(files, fd, "/dev/null", O_RDWR, 0);
	return code;
}

// posix_spawn() takes arrays of its own type, and changes nothing in them.
static char **strings_of(const char *const *from)
{
	size_t n = 0;
	char **to;

	while (from[n])
		n++;
	to = mem_zalloc(n + 1, sizeof(*to));
	memcpy(to, from, n * sizeof(*to));
	return to;
}

static int spawn_with(struct probe *p, posix_spawnattr_t *attr, posix_spawn_file_actions_t *files)
{
	CLEANUP_FREE char **arguments = strings_of(p->spec.arguments);
	CLEANUP_FREE char **environment = strings_of(p->spec.environment);
	int code = prepare(attr, files);

	return code ? code
		    : posix_spawn(&p->pid, arguments[0], files, attr, arguments, environment);
}

static int spawn(struct probe *p)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int code = posix_spawnattr_init(&attr);

	if (code)
		return code;
	code = posix_spawn_file_actions_init(&files);
	if (code) {
		posix_spawnattr_destroy(&attr);
		return code;
	}
	code = spawn_with(p, &attr, &files);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return code;
}

static int run(struct probe *p)
{
	int code = spawn(p);

	if (code) {
		p->pid = 0;
		return probe_fail_errno(p, code);
	}
	p->all->programs++;
	p->fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
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
