// SPDX-License-Identifier: GPL-2.0-only
// Sentences of operations that take long, on their way from rooms that do not print to one that
// does.
#include "ctl/base/progress.h"

#include "ctl/base/text.h"

static void (*listener)(const char *text);

void progress_to(void (*say)(const char *text))
{
	listener = say;
}

void progress_say(const char *fmt, ...)
{
	CLEANUP_TEXT struct text text = {0};
	va_list ap;

	if (!listener)
		return;
	va_start(ap, fmt);
	text_vaddf(&text, fmt, ap);
	va_end(ap);
	listener(text_get(&text));
}
