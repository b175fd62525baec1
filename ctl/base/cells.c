// SPDX-License-Identifier: GPL-2.0-only
// Cuts between characters by their width.
#include "ctl/base/cells.h"

#include <wchar.h>

#define ELLIPSIS_UTF8  "\u2026"
#define ELLIPSIS_ASCII "..."

struct character {
	const char *at; // what is shown, `len` bytes in `width` cells
	size_t len, width;
	size_t taken; // bytes of the text
};

// The character that s begins with; s is not empty.
static struct character character_of(const char *s, size_t len, bool utf8)
{
	size_t n = text_utf8(s, len);
	struct character c = {.at = "?", .len = 1, .width = 1, .taken = n ? n : 1};
	int width = 1;

	if (!text_shown(s, len) || (n > 1 && !utf8))
		return c;
	if (n > 1)
		width = wcwidth((wchar_t)text_code_point(s, len));
	if (width < 1)
		return c;
	return (struct character){.at = s, .len = n, .width = (size_t)width, .taken = n};
}

size_t cells_width(const char *s, bool utf8)
{
	size_t len = strlen(s), width = 0;

	for (size_t at = 0; at < len;) {
		struct character c = character_of(s + at, len - at, utf8);

		width += c.width;
		at += c.taken;
	}
	return width;
}

// Adds at most `width` cells of the text. Returns how many.
static size_t add_part(struct text *to, const char *s, size_t width, bool utf8)
{
	size_t len = strlen(s), used = 0;

	for (size_t at = 0; at < len;) {
		struct character c = character_of(s + at, len - at, utf8);

		if (used + c.width > width)
			break;
		text_addn(to, c.at, c.len);
		used += c.width;
		at += c.taken;
	}
	return used;
}

static size_t add_cut(struct text *to, const char *s, size_t width, bool utf8)
{
	const char *ellipsis = utf8 ? ELLIPSIS_UTF8 : ELLIPSIS_ASCII;
	size_t dots = utf8 ? 1 : sizeof(ELLIPSIS_ASCII) - 1, used;

	if (width <= dots)
		return add_part(to, s, width, utf8);
	used = add_part(to, s, width - dots, utf8);
	text_add(to, ellipsis);
	return used + dots;
}

static void add_blanks(struct text *to, size_t n)
{
	while (n--)
		text_addc(to, ' ');
}

void cells_add(struct text *to, const char *s, size_t width, bool utf8)
{
	size_t used = cells_width(s, utf8) > width ? add_cut(to, s, width, utf8)
						   : add_part(to, s, width, utf8);

	add_blanks(to, width - used);
}

void cells_add_right(struct text *to, const char *s, size_t width, bool utf8)
{
	size_t wanted = cells_width(s, utf8);

	if (wanted < width) {
		add_blanks(to, width - wanted);
		width = wanted;
	}
	cells_add(to, s, width, utf8);
}

void cells_add_spark(struct text *to, const double *values, size_t n, bool utf8)
{
	static const char *const blocks[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
					     "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char *const marks[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
	const char *const *levels = utf8 ? blocks : marks;
	size_t most = ARRAY_SIZE(blocks) - 1;
	double top = 0;

	for (size_t i = 0; i < n; i++)
		top = values[i] > top ? values[i] : top;
	for (size_t i = 0; i < n; i++) {
		size_t level = values[i] > 0 ? (size_t)(values[i] / top * (double)most) : 0;

		text_add(to, levels[values[i] > 0 && !level ? 1 : level]);
	}
}
