// SPDX-License-Identifier: GPL-2.0-only
// Located errors: the queue, the printed order, and the excerpt below each, a window of 100 columns
// around the caret with one column for a code point.
#include "ctl/base/diag.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"

#define WINDOW       100  // columns
#define LEAD         40   // columns before the caret where the line does not fit
#define TAB          8    // columns
#define BEFORE_BYTES 1024 // how much of a line is read around the caret: a line can have megabytes
#define AFTER_BYTES  512
#define GREEN        "\033[1;32m"
#define PLAIN        "\033[0m"

// The `len` bytes at `offset` in the line text[start..end), which is number `line`.
struct diag_excerpt {
	const char *text;
	size_t start, end;
	size_t offset, len;
	unsigned line;
};

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

// Adds both lines with their newlines; hint may be NULL.
static void diag_draw(struct text *out, const struct diag_excerpt *e, const char *hint, bool color)
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

#define KEPT_MAX 200 // of each level
#define LEVELS   2
#define BOLD     "\033[1m"
#define RED      "\033[1;31m"
#define MAGENTA  "\033[1;35m"

// A file, with the offsets of its lines after the first request for a line number. Without them, a
// list with a million invalid lines would be counted from the start for each.
struct diag_source {
	struct diag_file file; // first, so that a pointer to it is one to the source
	VEC(uint32_t) lines;
};

struct diag_item {
	enum diag_level level;
	struct diag_at at;
	char *message, *hint;
};

struct diag {
	VEC(struct diag_source *) sources;
	VEC(struct diag_item) items;
	VEC(char *) places;
	size_t counted[LEVELS], kept[LEVELS];
};

struct diag *diag_new(void)
{
	return mem_new(struct diag);
}

static void free_source(struct diag_source *s)
{
	free((char *)s->file.name);
	free((char *)s->file.text);
	vec_free(&s->lines);
	free(s);
}

void diag_free(struct diag *d)
{
	if (!d)
		return;
	vec_each (&d->sources, source)
		free_source(*source);
	vec_each (&d->items, item) {
		free(item->message);
		free(item->hint);
	}
	vec_each (&d->places, place)
		free(*place);
	vec_free(&d->sources);
	vec_free(&d->items);
	vec_free(&d->places);
	free(d);
}

void diag_cleanup(struct diag **d)
{
	diag_free(*d);
}

const struct diag_file *diag_add_file(struct diag *d, const char *name, const char *text,
				      size_t len)
{
	struct diag_source *s = mem_new(struct diag_source);
	char *copy = mem_realloc(NULL, len + 1, 1);

	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	s->file.name = mem_strdup(name);
	s->file.text = copy;
	s->file.len = len;
	s->file.index = (unsigned)d->sources.n;
	vec_push(&d->sources, s);
	return &s->file;
}

const struct diag_file *diag_add_line(struct diag *d, const char *name, const char *text)
{
	diag_add_file(d, name, text, strlen(text));
	(*vec_last(&d->sources))->file.line = true;
	return &(*vec_last(&d->sources))->file;
}

static bool same_place(const struct diag_at *a, const struct diag_at *b)
{
	return a->file == b->file && (!a->file || (a->offset == b->offset && a->len == b->len));
}

static bool is_queued(const struct diag *d, enum diag_level level, const struct diag_at *at,
		      const char *message)
{
	vec_each (&d->items, item)
		if (item->level == level && same_place(&item->at, at) &&
		    !strcmp(item->message, message))
			return true;
	return false;
}

void diag_add(struct diag *d, enum diag_level level, struct diag_at at, const char *hint,
	      const char *fmt, ...)
{
	CLEANUP(text_free) struct text message = {0};
	va_list ap;

	va_start(ap, fmt);
	text_vaddf(&message, fmt, ap);
	va_end(ap);
	if (is_queued(d, level, &at, message.at))
		return;
	d->counted[level]++;
	if (d->kept[level] == KEPT_MAX)
		return;
	d->kept[level]++;
	vec_push(&d->items, ((struct diag_item){
				    .level = level,
				    .at = at,
				    .message = text_take(&message),
				    .hint = hint ? mem_strdup(hint) : NULL,
			    }));
}

void diag_keep(struct diag *d, const char *file)
{
	size_t kept = 0;

	for (size_t n = 0; n < d->items.n; n++) {
		struct diag_item *item = &d->items.at[n];

		if (item->level == DIAG_ERROR ||
		    (item->at.file && !strcmp(item->at.file->name, file))) {
			d->items.at[kept++] = *item;
			continue;
		}
		free(item->message);
		free(item->hint);
	}
	d->items.n = kept;
	d->counted[DIAG_WARNING] = kept - d->kept[DIAG_ERROR];
	d->kept[DIAG_WARNING] = d->counted[DIAG_WARNING];
}

size_t diag_errors(const struct diag *d)
{
	return d->counted[DIAG_ERROR];
}

static void index_lines(struct diag_source *s)
{
	const char *text = s->file.text, *end = text + s->file.len, *at = text;

	vec_push(&s->lines, 0);
	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		at++;
		vec_push(&s->lines, (uint32_t)(at - text));
	}
}

// Line (from 1) and column (from 1, in bytes) of a location, and the start of its line.
struct position {
	unsigned line, column;
	size_t start;
};

static size_t offset_of(const struct diag_at *at)
{
	return at->offset < at->file->len ? at->offset : at->file->len;
}

static struct position locate(const struct diag_at *at)
{
	struct diag_source *s = (struct diag_source *)at->file;
	size_t offset = offset_of(at), low = 0, high;

	if (!s->lines.n)
		index_lines(s);
	high = s->lines.n;
	while (high - low > 1) { // lines.at[low] <= offset < lines.at[high]
		size_t middle = low + (high - low) / 2;

		if (s->lines.at[middle] <= offset)
			low = middle;
		else
			high = middle;
	}
	return (struct position){
		.line = (unsigned)low + 1,
		.column = (unsigned)(offset - s->lines.at[low]) + 1,
		.start = s->lines.at[low],
	};
}

unsigned diag_line(struct diag_at at)
{
	return at.file ? locate(&at).line : 0;
}

const char *diag_place(struct diag *d, struct diag_at at, bool column)
{
	struct position p;

	if (!at.file)
		return "";
	p = locate(&at);
	if (at.file->line && !column)
		return at.file->name;
	if (column)
		vec_push(&d->places, mem_printf("%s:%u:%u", at.file->name, p.line, p.column));
	else
		vec_push(&d->places, mem_printf("%s:%u", at.file->name, p.line));
	return *vec_last(&d->places);
}

static int compare_numbers(size_t a, size_t b)
{
	return a < b ? -1 : a > b;
}

// Order: file, offset, order of arrival; errors without a location last.
static int compare_items(const void *a, const void *b)
{
	const struct diag_item *one = *(const struct diag_item *const *)a;
	const struct diag_item *two = *(const struct diag_item *const *)b;
	int order;

	if (!one->at.file != !two->at.file)
		return one->at.file ? -1 : 1;
	if (one->at.file && one->at.file != two->at.file)
		return compare_numbers(one->at.file->index, two->at.file->index);
	order = one->at.file ? compare_numbers(one->at.offset, two->at.offset) : 0;
	return order ? order : compare_numbers((uintptr_t)one, (uintptr_t)two);
}

// Pointers to the items in the order of printing; the caller frees them.
static const struct diag_item **sorted(const struct diag *d)
{
	const struct diag_item **order = mem_zalloc(d->items.n, sizeof(struct diag_item *));

	for (size_t i = 0; i < d->items.n; i++)
		order[i] = &d->items.at[i];
	qsort(order, d->items.n, sizeof(*order), compare_items);
	return order;
}

static void put_heading(struct text *out, const struct diag_item *item, const struct position *p,
			bool color)
{
	const char *level = item->level == DIAG_ERROR ? "error:" : "warning:";
	const char *paint = item->level == DIAG_ERROR ? RED : MAGENTA;
	const char *name = item->at.file ? item->at.file->name : "weir";

	text_add(out, color ? BOLD : "");
	text_add_shown(out, name, strlen(name));
	if (item->at.file)
		text_addf(out, ":%u:%u", p->line, p->column);
	text_addf(out, ":%s %s%s%s ", color ? PLAIN : "", color ? paint : "", level,
		  color ? PLAIN : "");
	text_add_shown(out, item->message, strlen(item->message));
	if (!item->at.file && item->hint && *item->hint) {
		text_add(out, " (");
		text_add_shown(out, item->hint, strlen(item->hint));
		text_addc(out, ')');
	}
	text_addc(out, '\n');
}

// Where the line that begins at start ends, without CR and LF.
static size_t end_of_line(const struct diag_file *file, size_t start)
{
	const char *newline = memchr(file->text + start, '\n', file->len - start);
	size_t end = newline ? (size_t)(newline - file->text) : file->len;

	return end > start && file->text[end - 1] == '\r' ? end - 1 : end;
}

static void put_excerpt(struct text *out, const struct diag_item *item, const struct position *p,
			bool color)
{
	const struct diag_file *file = item->at.file;
	struct diag_excerpt e = {
		.text = file->text,
		.start = p->start,
		.end = end_of_line(file, p->start),
		.offset = offset_of(&item->at),
		.len = item->at.len,
		.line = p->line,
	};

	if (e.offset > e.end)
		e.offset = e.end;
	if (e.len > e.end - e.offset)
		e.len = e.end - e.offset;
	diag_draw(out, &e, item->hint, color);
}

static void put_item(struct text *out, const struct diag_item *item, bool color)
{
	struct position p = {0};

	if (item->at.file)
		p = locate(&item->at);
	put_heading(out, item, &p, color);
	if (item->at.file)
		put_excerpt(out, item, &p, color);
}

static void put_rest(struct text *out, const struct diag *d, enum diag_level level,
		     const char *word)
{
	size_t rest = d->counted[level] - d->kept[level];

	if (rest)
		text_addf(out, "weir: %zu more %s%s not shown\n", rest, word,
			  rest == 1 ? " is" : "s are");
}

void diag_print(const struct diag *d, FILE *f, bool color)
{
	CLEANUP_FREE const struct diag_item **order = sorted(d);
	CLEANUP(text_free) struct text out = {0};

	for (size_t i = 0; i < d->items.n; i++)
		put_item(&out, order[i], color);
	put_rest(&out, d, DIAG_ERROR, "error");
	put_rest(&out, d, DIAG_WARNING, "warning");
	if (out.len)
		fwrite(out.at, 1, out.len, f);
}

void diag_each(const struct diag *d, diag_visit *visit, void *ctx)
{
	CLEANUP_FREE const struct diag_item **order = sorted(d);

	for (size_t i = 0; i < d->items.n; i++) {
		const struct diag_item *item = order[i];
		struct position p = {0};

		if (item->at.file)
			p = locate(&item->at);
		visit(ctx, item->level, item->at.file ? item->at.file->name : NULL, p.line,
		      p.column, item->message, item->hint);
	}
}

// ---- did you mean -------------------------------------------------------------------------------

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

// Edits that turn a[0..i] into b[0..j], from the three rows of the table that are kept: this one is
// row i, counted from 1.
static size_t cell(size_t *const rows[3], const char *a, size_t i, const char *b, size_t j)
{
	size_t n = rows[1][j - 1] + !same(a[i - 1], b[j - 1]);

	n = least(n, least(rows[1][j], rows[0][j - 1]) + 1);
	if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
		n = least(n, rows[2][j - 2] + 1);
	return n;
}

// Optimal string alignment: insertion, deletion, substitution and the transposition of neighbours
// count one; upper and lower case are the same. G. Navarro, "A guided tour to approximate string
// matching", ACM Computing Surveys 33(1), 2001.
static size_t distance(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);
	CLEANUP_FREE size_t *memory = mem_zalloc(3 * (b_len + 1), sizeof(size_t));
	size_t *rows[3] = {memory, memory + b_len + 1, memory + 2 * (b_len + 1)};

	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *oldest = rows[2];

		rows[2] = rows[1];
		rows[1] = rows[0];
		rows[0] = oldest;
		rows[0][0] = i;
		for (size_t j = 1; j <= b_len; j++)
			rows[0][j] = cell(rows, a, i, b, j);
	}
	return rows[0][b_len];
}

const char *diag_nearest(const char *word, const char *const *candidates, size_t n)
{
	size_t len = strlen(word), limit = len >= 6 ? len / 3 : 1;
	const char *nearest = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t other = strlen(candidates[i]);
		size_t apart = len > other ? len - other : other - len, d;

		if (apart > limit)
			continue;
		d = distance(word, candidates[i]);
		// A word of one letter that is another one has nothing in common with it.
		if (d > limit || d >= (len > other ? len : other))
			continue;
		nearest = candidates[i];
		limit = d - (d > 0); // only a closer one is better
		if (d == 0)
			break;
	}
	return nearest;
}
