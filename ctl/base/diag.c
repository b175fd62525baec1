// SPDX-License-Identifier: GPL-2.0-only
// The queue of located errors: stored as they are found, sorted by place when they are printed.
#include "ctl/base/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/diag_draw.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"

#define KEPT_MAX 200 // of each level
#define LEVELS   2
#define BOLD     "\033[1m"
#define RED      "\033[1;31m"
#define MAGENTA  "\033[1;35m"
#define PLAIN    "\033[0m"

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
