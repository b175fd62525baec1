// SPDX-License-Identifier: GPL-2.0-only
// A second host: a process in a network namespace of its own, at the other end of a veth pair.
#pragma once

#include <signal.h>

#include "tests/unit/net/netns.h"

struct peer {
	pid_t pid;
	int orders; // a line to be run there; closed: the peer goes
	int done;   // a byte for each line: '0' or '1'
};

// Runs lines until there are no more.
static inline void peer_serve(FILE *orders, int done)
{
	char line[1024];

	while (fgets(line, sizeof(line), orders)) {
		char answer;

		line[strcspn(line, "\n")] = '\0';
		answer = run("%s", line) ? '1' : '0';
		if (write(done, &answer, 1) != 1)
			break;
	}
}

static inline bool peer_run(const struct peer *p, const char *line)
{
	CLEANUP_FREE char *order = mem_printf("%s\n", line);
	char answer = '0';

	return write(p->orders, order, strlen(order)) == (ssize_t)strlen(order) &&
	       read(p->done, &answer, 1) == 1 && answer == '1';
}

// The device `mine` here, `theirs` there, both up; without addresses.
static inline bool peer_start(struct peer *p, const char *mine, const char *theirs)
{
	CLEANUP_FREE char *up = mem_printf("ip link set lo up && ip link set %s up", theirs);
	int orders[2], done[2];

	if (pipe2(orders, O_CLOEXEC) || pipe2(done, O_CLOEXEC))
		return false;
	p->pid = fork();
	if (!p->pid) {
		close(orders[1]);
		if (!unshare(CLONE_NEWNET))
			peer_serve(fdopen(orders[0], "r"), done[1]);
		_exit(0);
	}
	close(orders[0]);
	close(done[1]);
	p->orders = orders[1];
	p->done = done[0];
	return p->pid > 0 && peer_run(p, "true") &&
	       run("ip link add %s type veth peer name %s && ip link set %s up && "
		   "ip link set %s netns %d",
		   mine, theirs, mine, theirs, (int)p->pid) &&
	       peer_run(p, up);
}

static inline void peer_stop(struct peer *p)
{
	if (p->pid <= 0)
		return;
	close(p->orders);
	close(p->done);
	waitpid(p->pid, NULL, 0);
}
