// SPDX-License-Identifier: GPL-2.0-only
// The end of commands that run until a signal asks them to stop.
#pragma once

#include <signal.h>
#include <stdint.h>

// SIGINT and SIGTERM set this from now on.
extern volatile sig_atomic_t stop_asked;
void stop_catch(void);
// And so do SIGHUP and SIGPIPE, for a command that has to undo something before it ends.
void stop_catch_lost(void);
// Sleeps until CLOCK_MONOTONIC is there, or until a signal asks to stop.
void stop_sleep_until(uint64_t ns);
