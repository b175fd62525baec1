// SPDX-License-Identifier: GPL-2.0-only
// Text that grows.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen.h"

void text_put(struct gen_text *text, const char *format, ...)
{
	char piece[4096];
	char *longer = NULL;
	va_list args, again;
	int len;

	va_start(args, format);
	va_copy(again, args);
	len = vsnprintf(piece, sizeof(piece), format, args);
	if (len >= (int)sizeof(piece) && vasprintf(&longer, format, again) < 0)
		abort();
	va_end(again);
	va_end(args);
	for (int i = 0; i < len; i++)
		*vec_add(text->pool, &text->bytes) = longer ? longer[i] : piece[i];
	free(longer);
}

const char *text_done(struct gen_text *text)
{
	*vec_add(text->pool, &text->bytes) = '\0';
	text->bytes.len--;
	return text->bytes.v;
}
