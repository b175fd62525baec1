// SPDX-License-Identifier: GPL-2.0-only
// Writes lines to standard error, each with one write, so that lines of two processes do not mix.
#include "ctl/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"

static enum log_level shown_up_to = LOG_NOTICE;
static bool colored, journal;
static const char *client = "";
static void (*before)(void);

void log_setup(enum log_level level, bool color)
{
	shown_up_to = level;
	colored = color;
}

void log_to_journal(void)
{
	journal = true;
}

void log_for(const char *who)
{
	client = who;
}

void log_before(void (*call)(void))
{
	before = call;
}

bool log_enabled(enum log_level level)
{
	return level <= shown_up_to;
}

// The journal adds name and pid. Its priorities are the same as in syslog(3).
static const char *journal_prefix(enum log_level level)
{
	static const char *const prefixes[] = {
		[LOG_ERROR] = "<3>", [LOG_WARNING] = "<4>", [LOG_NOTICE] = "<5>",
		[LOG_INFO] = "<6>",  [LOG_DEBUG] = "<7>",
	};

	return prefixes[level];
}

static const char *prefix(enum log_level level)
{
	if (journal)
		return journal_prefix(level);
	switch (level) {
	case LOG_ERROR:
		return colored ? "\033[1;31mweir:\033[0m " : "weir: ";
	case LOG_WARNING:
		return colored ? "weir: \033[1;35mwarning:\033[0m " : "weir: warning: ";
	case LOG_NOTICE:
		return colored ? "weir: \033[1mnotice:\033[0m " : "weir: notice: ";
	default:
		return "weir: ";
	}
}

// A message may quote a file or a name server, so it must not steer the terminal or pretend to be
// two.
static void add_line(struct text *out, enum log_level level, const char *message)
{
	text_addf(out, "%s%s%s", prefix(level), client, client[0] ? ": " : "");
	text_add_shown(out, message, strlen(message));
	text_addc(out, '\n');
}

// Messages of libbpf and the verifier have several lines.
static void add_lines(struct text *out, enum log_level level, const char *message)
{
	size_t len;

	text_add(out, prefix(level));
	while (true) {
		len = strcspn(message, "\n");
		text_add_shown(out, message, len);
		text_addc(out, '\n');
		message += len + (message[len] == '\n');
		if (!*message)
			break;
		if (journal)
			text_add(out, prefix(level));
	}
}

__attribute__((format(printf, 2, 0))) static void log_line(enum log_level level, const char *fmt,
							   va_list ap)
{
	CLEANUP(text_free) struct text message = {0}, line = {0};

	if (!log_enabled(level))
		return;
	text_vaddf(&message, fmt, ap);
	if (level <= LOG_NOTICE)
		add_line(&line, level, text_get(&message));
	else
		add_lines(&line, level, text_get(&message));
	if (before)
		before();
	fwrite(line.at, 1, line.len, stderr);
	fflush(stderr);
}

#define DEFINE_LOG(name, level)           \
	void name(const char *fmt, ...)   \
	{                                 \
		va_list ap;               \
                                          \
		va_start(ap, fmt);        \
		log_line(level, fmt, ap); \
		va_end(ap);               \
	}

DEFINE_LOG(log_error, LOG_ERROR)
DEFINE_LOG(log_warning, LOG_WARNING)
DEFINE_LOG(log_notice, LOG_NOTICE)
DEFINE_LOG(log_info, LOG_INFO)
DEFINE_LOG(log_debug, LOG_DEBUG)
