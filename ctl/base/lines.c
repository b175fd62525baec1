// SPDX-License-Identifier: GPL-2.0-only
// Reads lists that people write, line by line and word by word.
#include "ctl/base/lines.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

struct lines lines_of(const char *text, size_t len)
{
	struct lines l = {.next = text, .text_end = text + len};

	if (len >= 3 && !memcmp(text, BYTE_ORDER_MARK, 3))
		l.next += 3;
	return l;
}

static void skip_blanks(struct lines *l)
{
	while (l->at < l->end && lines_blank(*l->at))
		l->at++;
}

bool lines_next(struct lines *l)
{
	while (l->next < l->text_end) {
		const char *newline = memchr(l->next, '\n', (size_t)(l->text_end - l->next));

		l->number++;
		l->at = l->next;
		l->end = newline ? newline : l->text_end;
		l->next = newline ? newline + 1 : l->text_end;
		skip_blanks(l);
		if (l->at < l->end && !lines_comment(*l->at))
			return true;
	}
	return false;
}

struct word lines_word(struct lines *l)
{
	struct word w;

	skip_blanks(l);
	w.at = l->at;
	while (l->at < l->end && !lines_blank(*l->at) && !lines_comment(*l->at))
		l->at++;
	w.len = (size_t)(l->at - w.at);
	return w;
}

bool word_is_one_of(struct word w, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (word_is(w, texts[i]))
			return true;
	return false;
}
