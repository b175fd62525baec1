// SPDX-License-Identifier: GPL-2.0-only
// The operations that run, as a stack of texts.
#include "ctl/base/progress.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#define DEPTH 8   // deeper operations are counted, and not named
#define BYTES 256 // in a text; a longer one is cut

static void (*listener)(const char *text);
static char texts[DEPTH][BYTES];
static unsigned depth;

void progress_to(void (*say)(const char *text))
{
	listener = say;
}

static void tell(void)
{
	if (!listener)
		return;
	listener(depth ? texts[depth < DEPTH ? depth - 1 : DEPTH - 1] : NULL);
}

__attribute__((format(printf, 1, 0))) static void name(const char *fmt, va_list ap)
{
	if (depth && depth <= DEPTH)
		vsnprintf(texts[depth - 1], BYTES, fmt, ap);
	tell();
}

unsigned progress_begin(const char *fmt, ...)
{
	unsigned before = depth++;
	va_list ap;

	va_start(ap, fmt);
	name(fmt, ap);
	va_end(ap);
	return before;
}

void progress_change(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	name(fmt, ap);
	va_end(ap);
}

void progress_end(const unsigned *operation)
{
	depth = *operation;
	tell();
}
