// SPDX-License-Identifier: GPL-2.0-only
// Messages on standard error, by level; only ctl/agent, ctl/cmd and main call it.
#pragma once

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

// Sets the highest level that is printed. Default: LOG_NOTICE. Errors, notices and the rest begin
// with "weir: ", warnings with "weir: warning: "; with color the prefix of errors and warnings has
// one. Control characters are shown as '?', a message of several lines stays so.
void log_setup(enum log_level level, bool color);
// Standard error is connected to the journal: each line begins with its priority (sd-daemon(3))
// instead of the prefix.
void log_to_journal(void);
// Each message begins with "WHO: ", after the prefix. `who` stays the caller's.
void log_for(const char *who);
// Called before each message is written, such as to erase what is on the terminal. NULL: nothing.
void log_before(void (*call)(void));
bool log_enabled(enum log_level level);
__attribute__((format(printf, 1, 2))) void log_error(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void log_warning(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void log_notice(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void log_info(const char *fmt, ...);  // shown with -v
__attribute__((format(printf, 1, 2))) void log_debug(const char *fmt, ...); // shown with -vv
