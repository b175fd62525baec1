// SPDX-License-Identifier: GPL-2.0-only
// Tells the service manager what the agent does: sd_notify(3), datagrams of NAME=VALUE lines.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Sends the lines to $NOTIFY_SOCKET. False: it is not set, or no process reads it, which changes
// nothing.
__attribute__((format(printf, 1, 2))) bool notify_send(const char *fmt, ...);
// RELOADING=1 with the time that Type=notify-reload asks for.
void notify_reloading(void);
// How often the manager wants to hear of this process, in microseconds ($WATCHDOG_USEC,
// $WATCHDOG_PID); 0: not at all.
uint64_t notify_watchdog_us(void);
// Does standard error lead to the journal ($JOURNAL_STREAM)?
bool notify_logs_to_journal(void);
// Has a service manager started this process, and waits for its READY=1?
bool notify_is_managed(void);
// The unit of this process, "weir@main.service", as its control group says; NULL: it is not a
// service that notifies. The caller frees it.
char *notify_unit(void);
