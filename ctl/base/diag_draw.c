// SPDX-License-Identifier: GPL-2.0-only
// Draws an excerpt: a window of 100 columns around the caret, one column for a code point.
#include "ctl/base/diag_draw.h"

#include <string.h>

#define WINDOW       100  // columns
#define LEAD         40   // columns before the caret where the line does not fit
#define TAB          8    // columns
#define BEFORE_BYTES 1024 // how much of a line is read around the caret: a line can have megabytes
#define AFTER_BYTES  512
#define GREEN        "\033[1;32m"
#define PLAIN        "\033[0m"

struct glyph {
	const char *at;
	size_t len;   // bytes in the text
	size_t width; // columns
	bool shown;   // unchanged, else as '?'; a tab as blanks
};

static struct glyph glyph_at(const char *at, size_t len, size_t column)
{
	size_t n = text_shown(at, len);

	if (*at == '\t')
		return (struct glyph){at, 1, TAB - column % TAB, false};
	if (n)
		return (struct glyph){at, n, 1, true};
	n = text_utf8(at, len); // a control character of two bytes is one '?'
	return (struct glyph){at, n ? n : 1, 1, false};
}

// The part of a line that is read; in columns: the first and the last one of the caret, and their
// number.
struct drawn_line {
	const char *at, *end;
	size_t caret, caret_end, columns;
};

// The part of the line near the caret. Where it cuts, more columns are left than the window has,
// even if all code points have four bytes; one that is cut itself is outside the window.
static struct drawn_line near_caret(const struct diag_excerpt *e)
{
	struct drawn_line r = {.at = e->text + e->start, .end = e->text + e->end};
	const char *caret = e->text + e->offset;

	if (caret - r.at > BEFORE_BYTES)
		r.at = caret - BEFORE_BYTES;
	if (r.end - caret > AFTER_BYTES)
		r.end = caret + AFTER_BYTES;
	return r;
}

static void measure(struct drawn_line *r, const struct diag_excerpt *e)
{
	const char *caret = e->text + e->offset, *caret_end = caret + e->len, *at = r->at;
	struct glyph g;

	for (; at < r->end; at += g.len) {
		g = glyph_at(at, (size_t)(r->end - at), r->columns);
		if (at + g.len <= caret)
			r->caret = r->columns + g.width;
		r->columns += g.width;
		if (at < caret_end)
			r->caret_end = r->columns;
	}
	if (r->caret_end <= r->caret)
		r->caret_end = r->caret + 1;
}

struct window {
	size_t from, to;             // columns that are drawn
	bool cut_before, cut_behind; // the first, the last is drawn as "…"
};

static struct window place_window(const struct drawn_line *r)
{
	struct window w = {.to = r->columns};

	if (r->columns > WINDOW) {
		if (r->caret > WINDOW - LEAD)
			w.from = r->caret - LEAD;
		if (w.from + WINDOW > r->columns)
			w.from = r->columns - WINDOW;
		w.to = w.from + WINDOW;
	}
	w.cut_before = w.from > 0;
	w.cut_behind = w.to < r->columns;
	return w;
}

static void draw_column(struct text *out, const struct window *w, size_t column,
			const struct glyph *g)
{
	if ((w->cut_before && column == w->from) || (w->cut_behind && column + 1 == w->to))
		text_add(out, "…");
	else if (g->shown)
		text_addn(out, g->at, g->len);
	else
		text_addc(out, *g->at == '\t' ? ' ' : '?');
}

static void draw_line(struct text *out, const struct drawn_line *r, const struct window *w)
{
	const char *at = r->at;
	size_t column = 0;
	struct glyph g;

	for (; at < r->end && column < w->to; at += g.len) {
		g = glyph_at(at, (size_t)(r->end - at), column);
		for (size_t i = 0; i < g.width; i++, column++)
			if (column >= w->from && column < w->to)
				draw_column(out, w, column, &g);
	}
}

static void draw_caret(struct text *out, const struct drawn_line *r, const struct window *w)
{
	size_t end = r->caret_end;

	if (end > w->to)
		end = r->caret < w->to ? w->to : r->caret + 1;
	for (size_t i = w->from; i < r->caret; i++)
		text_addc(out, ' ');
	text_addc(out, '^');
	for (size_t i = r->caret + 1; i < end; i++)
		text_addc(out, '~');
}

static void trim(struct text *out)
{
	while (out->len && out->at[out->len - 1] == ' ')
		out->at[--out->len] = '\0';
}

void diag_draw(struct text *out, const struct diag_excerpt *e, const char *hint, bool color)
{
	struct drawn_line r = near_caret(e);
	struct window w;
	size_t start = out->len, gutter;

	measure(&r, e);
	w = place_window(&r);
	text_addf(out, "%5u", e->line);
	gutter = out->len - start;
	text_add(out, " | ");
	draw_line(out, &r, &w);
	trim(out);
	text_addf(out, "\n%*s | ", (int)gutter, "");
	text_add(out, color ? GREEN : "");
	draw_caret(out, &r, &w);
	text_add(out, color ? PLAIN : "");
	if (hint && *hint) {
		text_addc(out, ' ');
		text_add_shown(out, hint, strlen(hint));
	}
	text_addc(out, '\n');
}
