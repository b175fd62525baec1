// SPDX-License-Identifier: GPL-2.0-only
// The thread that draws, and the terminal.
#include "ctl/cmd/progress_show.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/log.h"
#include "ctl/base/progress.h"
#include "ctl/base/time.h"
#include "ctl/cmd/progress_line.h"

#define COLUMNS 80 // if the terminal does not report them
#define ERASE   "\r\033[K"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; // by the clock CLOCK_MONOTONIC
static pthread_t thread;
static struct progress_line line;
static bool runs, drawn; // the thread; the line is on the terminal

// ---- with the mutex -----------------------------------------------------------------------------

static size_t columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? COLUMNS : size.ws_col;
}

// A terminal that is stopped (^S) takes no bytes: the command does not wait for it.
static bool takes_bytes(void)
{
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&out, 1, 0) == 1 && out.revents & POLLOUT;
}

// A terminal that was closed takes none either, and needs no line.
static void write_all(const char *bytes, size_t n)
{
	while (n && takes_bytes()) {
		ssize_t written = write(STDERR_FILENO, bytes, n);

		if (written <= 0)
			return;
		bytes += written;
		n -= (size_t)written;
	}
}

static void erase(void)
{
	if (drawn)
		write_all(ERASE, sizeof(ERASE) - 1);
	drawn = false;
}

static void draw(uint64_t now_ms)
{
	CLEANUP_TEXT struct text text = {0};

	text_add(&text, ERASE);
	progress_line_write(&line, now_ms, columns(), &text);
	if (text.len == sizeof(ERASE) - 1)
		return;
	write_all(text.at, text.len);
	drawn = true;
}

static void wait_until(uint64_t ms)
{
	const struct timespec at = {.tv_sec = (time_t)(ms / 1000),
				    .tv_nsec = (long)(ms % 1000) * 1000000};

	pthread_cond_timedwait(&changed, &mutex, &at);
}

// ---- the thread ---------------------------------------------------------------------------------

static void *draw_each_second(void *unused)
{
	uint64_t drawn_ms = time_ms(CLOCK_MONOTONIC);

	pthread_mutex_lock(&mutex);
	while (line.what[0]) {
		uint64_t now_ms = time_ms(CLOCK_MONOTONIC);
		uint64_t due_ms = progress_line_due_ms(&line, drawn_ms);

		if (now_ms < due_ms) {
			wait_until(due_ms);
			continue;
		}
		draw(now_ms);
		drawn_ms = now_ms;
	}
	pthread_mutex_unlock(&mutex);
	return unused;
}

// Signals are for the thread that works. Without a second thread there is no line.
static void start(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	runs = !pthread_create(&thread, NULL, draw_each_second, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// ---- called by the thread that works ------------------------------------------------------------

static void tell(const char *what)
{
	pthread_mutex_lock(&mutex);
	progress_line_tell(&line, what, time_ms(CLOCK_MONOTONIC));
	if (!what)
		erase();
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
	if (what && !runs)
		start();
	if (what || !runs)
		return;
	pthread_join(thread, NULL);
	runs = false;
}

static void before_message(void)
{
	pthread_mutex_lock(&mutex);
	erase();
	progress_line_logged(&line, time_ms(CLOCK_MONOTONIC));
	pthread_mutex_unlock(&mutex);
}

void progress_show(void)
{
	pthread_condattr_t attributes;

	if (!isatty(STDERR_FILENO))
		return;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attributes);
	pthread_condattr_destroy(&attributes);
	log_before(before_message);
	progress_to(tell);
}
