// SPDX-License-Identifier: GPL-2.0-only
// The alarms of weir status: a text for people, and for programs the object, the command that mends
// it, and since when it is reported.
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/sum.h"
#include "ctl/base/vec.h"
#include "ctl/cmd/out.h"

// The part of an alarm's format that is a command: MEND("weir attach %s").
#define MEND_BEGIN   "\001"
#define MEND_END     "\002"
#define MEND(format) MEND_BEGIN format MEND_END

// Adds an alarm. kind, name: its object ("interface", "eth0"); name NULL: there is one of the kind.
// Two alarms of one object are the same alarm if they have the same format, whatever changes in the
// text; with a format of only "%s", if they have the same text but for counts and times
// (hook_alarm_key). So each object has a name of its own.
typedef __attribute__((format(printf, 4, 5))) void alarm_adder(void *ctx, const char *kind,
							       const char *name, const char *fmt,
							       ...);

struct alert {
	char *text;       // with the command
	char *about;      // "interface eth0"
	char *mend;       // a command that a shell reads as it is; NULL: none
	sum_text key;     // made from the object and from what is the same
	uint64_t since_s; // wall clock
};
struct alerts {
	struct alert *at;
	size_t n, cap;
};
void alerts_free(struct alerts *a);
#define CLEANUP_ALERTS CLEANUP(alerts_free)

// same: two alarms of one object are the same alarm if this is equal; NULL: as above.
__attribute__((format(printf, 5, 0))) void alerts_add(struct alerts *a, const char *kind,
						      const char *name, const char *same,
						      const char *fmt, va_list ap);
// Finds since when each is reported in /run/weir/NAME/alarms, and writes this file if they have
// changed.
void alerts_date(struct alerts *a, const char *instance, uint64_t now_s);
// Prints a line for each, and the arrays "alarms" and "alerts", with commands for the instance.
void alerts_show(const struct alerts *a, const char *instance, struct out *o);
