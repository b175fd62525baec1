// SPDX-License-Identifier: GPL-2.0-only
// Writes and reads the page that shows whether the loop of the agent turns.
#include "ctl/agent/heart.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/agent/task.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/net/loop.h"

#define PATIENCE 3                     // times the longest sleep
#define APART_MS (HEART_LEAST_MS / 50) // between two readings of all timers

// Milliseconds of CLOCK_MONOTONIC. Each is written with one store.
struct heart_page {
	uint64_t turned_ms;
	uint64_t late_ms; // from then on
};

struct heart {
	struct heart_page *page;
	struct event_base *loop;
	struct event *timer; // for a loop that has no other one, or does not end its turn
	uint64_t beat_ms;    // time of the last reading of all timers; 0: the next turn reads
	bool soon;           // the timer expires before the page can be late
};

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/agent.heart", WEIR_RUN_FOLDER, instance);
}

static void write_page(struct heart_page *page, uint64_t sleep_ms)
{
	uint64_t now_ms = agent_now_ms();

	sleep_ms = sleep_ms < HEART_LEAST_MS ? HEART_LEAST_MS : sleep_ms;
	__atomic_store_n(&page->late_ms, now_ms + PATIENCE * sleep_ms, __ATOMIC_RELAXED);
	__atomic_store_n(&page->turned_ms, now_ms, __ATOMIC_RELAXED);
}

// The file is written first, so that a full /run is an error here and no signal later.
int heart_new(const char *instance, struct heart **ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct heart_page page;
	void *at;

	write_page(&page, HEART_MOST_MS);
	if (fd < 0)
		return err_system(err, errno, "cannot open '%s'", path);
	if (pwrite(fd, &page, sizeof(page), 0) != sizeof(page))
		return err_system(err, errno, "cannot write '%s'", path);
	at = mmap(NULL, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return err_system(err, errno, "cannot map '%s'", path);
	*ret = mem_new(struct heart);
	(*ret)->page = at;
	return 0;
}

void heart_free(struct heart *h)
{
	if (!h)
		return;
	heart_stop(h);
	munmap(h->page, sizeof(*h->page));
	free(h);
}

static void wait_for(struct heart *h, uint64_t ms)
{
	const struct timeval wait = {.tv_sec = (time_t)(ms / 1000),
				     .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	evtimer_add(h->timer, &wait);
}

// libevent uses the wall clock, which can be set: its times are compared only with one another.
static int find_nearest(const struct event_base *loop, const struct event *event, void *nearest)
{
	struct timeval due, *least = nearest;

	if (event_pending(event, EV_TIMEOUT, &due) && evutil_timercmp(&due, least, <))
		*least = due;
	return 0;
}

// How long the loop may sleep. The timer of the heart itself is the measure.
static uint64_t longest_sleep_ms(struct heart *h)
{
	struct timeval own, nearest, before;

	wait_for(h, HEART_MOST_MS);
	event_pending(h->timer, EV_TIMEOUT, &own);
	nearest = own;
	event_base_foreach_event(h->loop, find_nearest, &nearest);
	evutil_timersub(&own, &nearest, &before);
	if (before.tv_sec >= HEART_MOST_MS / 1000)
		return 0;
	return HEART_MOST_MS - (uint64_t)before.tv_sec * 1000 - (uint64_t)before.tv_usec / 1000;
}

static void beat(struct heart *h)
{
	uint64_t sleep_ms = longest_sleep_ms(h);

	if (sleep_ms < HEART_MOST_MS)
		wait_for(h, sleep_ms + HEART_LEAST_MS);
	write_page(h->page, sleep_ms);
}

// A loop that turns often reads its timers seldom, and again when it has become idle.
void heart_beat(struct heart *h)
{
	uint64_t now_ms = agent_now_ms();

	if (!h->beat_ms || now_ms - h->beat_ms >= APART_MS) {
		beat(h);
		h->beat_ms = now_ms;
		h->soon = false;
	} else if (!h->soon) {
		wait_for(h, APART_MS);
		h->soon = true;
	}
}

// The turn has not ended, and may not end soon.
static void on_timer(evutil_socket_t fd, short what, void *heart)
{
	struct heart *h = heart;

	beat(h);
	h->beat_ms = 0;
}

int heart_start(struct heart *h, struct event_base *loop, struct err *err)
{
	h->loop = loop;
	h->timer = loop_timer(loop, on_timer, h);
	return h->timer ? 0 : err_system(err, ENOMEM, "cannot set a timer");
}

void heart_stop(struct heart *h)
{
	loop_event_free(TAKE_PTR(h->timer));
}

uint64_t heart_late_ms(const char *instance)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct heart_page page;
	uint64_t now_ms;

	if (fd < 0 || pread(fd, &page, sizeof(page), 0) != sizeof(page))
		return 0;
	now_ms = agent_now_ms();
	return now_ms > page.late_ms ? now_ms - page.turned_ms : 0;
}
