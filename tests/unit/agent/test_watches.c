// SPDX-License-Identifier: GPL-2.0-only
// Folders in which somebody writes all the time, and files that change there.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/watches.h"
#include "ctl/base/mem.h"

#define FLOOD_MS 1500

static uint64_t flood_ends_ms;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

// Replaces the C library's function: events arrive faster than they can be read.
ssize_t read(int fd, void *buf, size_t size)
{
	const struct inotify_event stranger = {.wd = -1, .mask = IN_CREATE};

	if (now_ms() >= flood_ends_ms || size < 4096)
		return syscall(SYS_read, fd, buf, size);
	memcpy(buf, &stranger, sizeof(stranger));
	return sizeof(stranger);
}

static unsigned removed;

int inotify_rm_watch(int fd, int watch)
{
	removed++;
	return (int)syscall(SYS_inotify_rm_watch, fd, watch);
}

static void on_change(void *ctx)
{
	++*(unsigned *)ctx;
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	event_base_loopbreak(base);
}

static void run(struct event_base *base, unsigned ms)
{
	struct timeval in = {.tv_usec = ms * 1000};
	struct event *end = evtimer_new(base, on_timer, base);

	evtimer_add(end, &in);
	event_base_dispatch(base);
	event_free(end);
}

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void test_flood(void **state)
{
	char folder[] = "/tmp/weir-watches-XXXXXX";
	struct event_base *base = event_base_new();
	struct agent a = {.loop = base};
	CLEANUP_FREE char *path = NULL;
	struct watches_paths paths = {0};
	struct watches *w = NULL;
	unsigned changes = 0;
	uint64_t begin;

	assert_non_null(mkdtemp(folder));
	path = mem_printf("%s/edge.weir", folder);
	vec_push(&paths.all, mem_strdup(path));
	assert_int_equal(watches_new(&a, on_change, &changes, &w, NULL), 0);
	watches_set(w, &paths);
	write_to(path, "one");
	begin = now_ms();
	flood_ends_ms = begin + FLOOD_MS;
	run(base, 200);
	assert_true(now_ms() < begin + FLOOD_MS);
	flood_ends_ms = 0;
	run(base, 200);
	assert_int_equal(changes, 1);
	watches_free(w);
	watches_paths_free(&paths);
	event_base_free(base);
	unlink(path);
	rmdir(folder);
}

// The policy is read again with each change, and most changes leave the files that it is made from.
static void test_folders_that_stay_keep_their_watches(void **state)
{
	char folder[] = "/tmp/weir-watches-XXXXXX";
	struct event_base *base = event_base_new();
	struct agent a = {.loop = base};
	CLEANUP_FREE char *path = NULL;
	struct watches_paths paths = {0}, none = {0};
	struct watches *w = NULL;
	unsigned changes = 0;

	assert_non_null(mkdtemp(folder));
	path = mem_printf("%s/edge.weir", folder);
	vec_push(&paths.all, mem_strdup(path));
	assert_int_equal(watches_new(&a, on_change, &changes, &w, NULL), 0);
	watches_set(w, &paths);
	watches_set(w, &paths);
	assert_int_equal(removed, 0);
	write_to(path, "one");
	run(base, 2 * WATCHES_JOIN_MS);
	assert_int_equal(changes, 1);
	assert_int_equal(removed, 0);
	watches_set(w, &none);
	assert_int_equal(removed, 3); // watches of /, /tmp and the folder
	write_to(path, "two");
	run(base, 2 * WATCHES_JOIN_MS);
	assert_int_equal(changes, 1);
	watches_free(w);
	watches_paths_free(&paths);
	event_base_free(base);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_folders_that_stay_keep_their_watches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
