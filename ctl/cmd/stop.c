// SPDX-License-Identifier: GPL-2.0-only
// Notes that a signal has asked the command to stop.
#include "ctl/cmd/stop.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
	stop_asked = 1;
}

static void catch_signal(int number)
{
	const struct sigaction action = {.sa_handler = on_signal};

	sigaction(number, &action, NULL);
}

void stop_catch(void)
{
	catch_signal(SIGINT);
	catch_signal(SIGTERM);
}

void stop_catch_lost(void)
{
	stop_catch();
	catch_signal(SIGHUP);
	catch_signal(SIGPIPE);
}

void stop_sleep_until(uint64_t ns)
{
	const struct timespec at = {.tv_sec = (time_t)(ns / 1000000000),
				    .tv_nsec = (long)(ns % 1000000000)};

	while (!stop_asked && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}
