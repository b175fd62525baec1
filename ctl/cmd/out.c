// SPDX-License-Identifier: GPL-2.0-only
// Collects JSON, prints text, aligns tables.
#include "ctl/cmd/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/json.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"

#define DEPTH_MAX 8
#define SCHEMA    1 // rises when a key goes or means something else; more keys are no reason

// What out_bold and its like put into a line. They become the terminal's sequences when the line is printed;
// nothing else in a line may steer the terminal, so that foreign text cannot.
#define MARK_BOLD   "\001"
#define MARK_RED    "\002"
#define MARK_PLAIN  "\003"
#define MARK_GREEN  "\004"
#define MARK_YELLOW "\005"
#define CLEAR       "\033[H\033[J"

#define GAP      2 // blanks between two columns
#define INDENT   4 // of a line that continues the one above
#define ELLIPSIS "\u2026"

struct column {
	const char *name;
	size_t width;
	size_t line; // that it is folded to, from 0
	bool number; // aligned to the right
};

struct cell {
	size_t record, column;
	char *text;
	enum out_color color;
};

struct out {
	bool json, pretty, color, failed;
	bool streamed; // documents were printed already: an empty last one says nothing
	bool filled;   // the present one says more than its schema
	struct json *root;
	struct json *stack[DEPTH_MAX]; // open objects and arrays; [0] is root
	size_t depth;
	VEC(struct column) columns;
	VEC(struct cell) cells;
	size_t records;
	bool record_open;
	size_t fit; // columns of a line; 0: any number
};

static void begin(struct out *o)
{
	o->root = json_object();
	o->stack[0] = o->root;
	o->depth = 0;
	o->filled = false;
	json_set(o->root, "schema", json_u64(SCHEMA));
}

struct out *out_new(bool json, bool pretty, bool color)
{
	struct out *o = mem_new(struct out);

	*o = (struct out){.json = json, .pretty = pretty, .color = color};
	begin(o);
	return o;
}

bool out_is_json(const struct out *o)
{
	return o->json;
}

void out_fit(struct out *o, size_t columns)
{
	o->fit = columns;
}

void out_error(struct out *o, const char *text, const char *hint, const char *code)
{
	o->depth = 0;
	out_object(o, "error");
	out_set_string(o, "text", text);
	out_set_string(o, "hint", hint[0] ? hint : NULL);
	out_set_string(o, "code", code[0] ? code : NULL);
	out_end(o);
}

static void print_document(struct out *o)
{
	if (o->json && json_print(o->root, stdout, o->pretty))
		o->failed = true;
	if (fflush(stdout))
		o->failed = true;
	json_free(o->root);
	begin(o);
}

void out_next_document(struct out *o)
{
	print_document(o);
	o->streamed = true;
}

int out_finish(struct out *o)
{
	if (o->streamed && !o->filled)
		fflush(stdout);
	else
		print_document(o);
	return o->failed || ferror(stdout) ? -EIO : 0;
}

static void clear_table(struct out *o)
{
	vec_each (&o->cells, cell)
		free(cell->text);
	vec_free(&o->cells);
	vec_free(&o->columns);
	o->records = 0;
}

void out_free(struct out *o)
{
	if (!o)
		return;
	clear_table(o);
	json_free(o->root);
	free(o);
}

static void put_line(struct out *o, const char *line)
{
	static const char marks[] = MARK_BOLD MARK_RED MARK_PLAIN MARK_GREEN MARK_YELLOW;
	static const char *const sequences[] = {"\033[1m", "\033[1;31m", "\033[0m", "\033[32m",
						"\033[33m"};
	CLEANUP(text_free) struct text shown = {0};

	while (*line) {
		size_t len = o->color ? strcspn(line, marks) : strlen(line);

		text_add_shown(&shown, line, len);
		line += len;
		if (*line)
			text_add(&shown, sequences[*line++ - marks[0]]);
	}
	text_addc(&shown, '\n');
	if (fwrite(shown.at, 1, shown.len, stdout) != shown.len)
		o->failed = true;
}

void out_line(struct out *o, const char *fmt, ...)
{
	CLEANUP(text_free) struct text line = {0};
	va_list ap;

	if (o->json)
		return;
	va_start(ap, fmt);
	text_vaddf(&line, fmt, ap);
	va_end(ap);
	put_line(o, text_get(&line));
}

void out_folded(struct out *o, const char *head, const char *tail)
{
	if (!o->fit || out_width(head) + 1 + out_width(tail) <= o->fit) {
		out_line(o, "%s %s", head, tail);
		return;
	}
	out_line(o, "%s", head);
	out_line(o, "%*s%s", INDENT, "", tail);
}

void out_clear(struct out *o)
{
	if (!o->json)
		fputs(CLEAR, stdout);
}

void out_flush(struct out *o)
{
	if (fflush(stdout))
		o->failed = true;
}

static void put(struct out *o, const char *key, struct json *value)
{
	o->filled = true;
	if (key)
		json_set(o->stack[o->depth], key, value);
	else
		json_append(o->stack[o->depth], value);
}

void out_set_string(struct out *o, const char *key, const char *value)
{
	put(o, key, value ? json_string(value) : json_nothing());
}

void out_set_u64(struct out *o, const char *key, uint64_t value)
{
	put(o, key, json_u64(value));
}

void out_set_bool(struct out *o, const char *key, bool value)
{
	put(o, key, json_bool(value));
}

void out_set_time(struct out *o, const char *key, uint64_t wall_s)
{
	time_t seconds = (time_t)wall_s;
	struct tm tm;
	char text[64];

	if (wall_s == UINT64_MAX || !localtime_r(&seconds, &tm)) {
		put(o, key, json_nothing());
		return;
	}
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S%z", &tm);
	// strftime writes +0100, RFC 3339 wants +01:00.
	memmove(text + 23, text + 22, 3);
	text[22] = ':';
	put(o, key, json_string(text));
}

static void open_child(struct out *o, const char *key, struct json *child)
{
	put(o, key, child);
	if (o->depth + 1 < DEPTH_MAX)
		o->stack[++o->depth] = child;
}

void out_object(struct out *o, const char *key)
{
	open_child(o, key, json_object());
}

void out_array(struct out *o, const char *key)
{
	open_child(o, key, json_array());
}

void out_item_string(struct out *o, const char *value)
{
	put(o, NULL, json_string(value));
}

void out_item_u64(struct out *o, uint64_t value)
{
	put(o, NULL, json_u64(value));
}

void out_end(struct out *o)
{
	if (o->depth)
		o->depth--;
}

void out_table(struct out *o, const char *key)
{
	clear_table(o);
	out_array(o, key);
	o->record_open = false;
}

void out_row(struct out *o)
{
	if (o->record_open)
		out_end(o);
	out_object(o, NULL);
	o->record_open = true;
	o->records++;
}

static bool is_mark(char c)
{
	return c >= MARK_BOLD[0] && c <= MARK_YELLOW[0];
}

size_t out_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80 && !is_mark(*text);
	return n;
}

static void add_cell(struct out *o, const char *name, const char *text, bool number)
{
	CLEANUP(text_free) struct text shown = {0};
	size_t c = 0;

	if (o->json || !name)
		return;
	text_add_shown(&shown, text, strlen(text));
	while (c < o->columns.n && strcmp(o->columns.at[c].name, name))
		c++;
	if (c == o->columns.n)
		vec_push(&o->columns,
			 ((struct column){
				 .name = name, .width = out_width(name), .number = number}));
	if (out_width(text_get(&shown)) > o->columns.at[c].width)
		o->columns.at[c].width = out_width(text_get(&shown));
	vec_push(&o->cells,
		 ((struct cell){.record = o->records - 1, .column = c, .text = text_take(&shown)}));
}

void out_cell(struct out *o, const char *key, const char *column, const char *text)
{
	if (key && text[0])
		out_set_string(o, key, text);
	add_cell(o, column, text, false);
}

void out_cell_u64(struct out *o, const char *key, const char *column, uint64_t value)
{
	num_text text;

	out_set_u64(o, key, value);
	add_cell(o, column, num_format_grouped(value, text), true);
}

void out_cell_as(struct out *o, const char *key, const char *column, const char *text,
		 uint64_t value)
{
	if (key)
		out_set_u64(o, key, value);
	add_cell(o, column, text, true);
}

// Decides which line each column goes to, and narrows columns that are wider than a line.
static void fold(struct out *o)
{
	size_t line = 0, used = 0;

	for (size_t c = 0; c < o->columns.n; c++) {
		struct column *column = &o->columns.at[c];

		if (o->fit && used && used + GAP + column->width > o->fit) {
			line++;
			used = INDENT;
		} else if (used) {
			used += GAP;
		}
		column->line = line;
		if (o->fit && used + column->width > o->fit)
			column->width = o->fit > used ? o->fit - used : 1;
		used += column->width;
	}
}

// The first `width` columns of a text, the last of them an ellipsis if it is longer.
static void add_cut(struct text *line, const char *text, size_t width)
{
	const char *end = text;

	if (out_width(text) <= width) {
		text_add(line, text);
		return;
	}
	for (size_t n = 0; *end && n + 1 < width; n++)
		do
			end++;
		while (((unsigned char)*end & 0xc0) == 0x80);
	text_addn(line, text, (size_t)(end - text));
	text_add(line, ELLIPSIS);
}

static void add_padded(struct text *line, const struct column *column, const char *text,
		       enum out_color color)
{
	static const char *const sequences[] = {"", "\033[32m", "\033[31m", "\033[33m"};
	size_t width = out_width(text);
	int pad = width < column->width ? (int)(column->width - width) : 0;

	if (column->number)
		text_addf(line, "%*s", pad, "");
	text_add(line, sequences[color]);
	add_cut(line, text, column->width);
	text_add(line, color ? "\033[0m" : "");
	if (!column->number)
		text_addf(line, "%*s", pad, "");
}

static void print_folded(struct out *o, struct text *line, bool continued)
{
	while (line->len && line->at[line->len - 1] == ' ')
		line->len--;
	if (line->len || !continued) {
		text_addc(line, '\n');
		if (fwrite(line->at, 1, line->len, stdout) != line->len)
			o->failed = true;
	}
	line->len = 0;
}

static void add_column(const struct out *o, struct text *line, size_t c, const struct cell *cell,
		       bool header)
{
	const struct column *column = &o->columns.at[c];
	const char *text = header ? column->name : cell ? cell->text : "";

	add_padded(line, column, text, cell && o->color ? cell->color : OUT_NO_COLOR);
}

// A line for each line of the fold that has text; cells[c] NULL: empty. cells NULL: the header.
static void print_record(struct out *o, const struct cell *const *cells)
{
	CLEANUP_TEXT struct text line = {0};
	size_t at = 0;

	for (size_t c = 0; c < o->columns.n; c++) {
		const struct column *column = &o->columns.at[c];

		if (column->line != at) {
			print_folded(o, &line, at);
			at = column->line;
			text_addf(&line, "%*s", INDENT, "");
		} else if (c) {
			text_addf(&line, "%*s", GAP, "");
		}
		add_column(o, &line, c, cells ? cells[c] : NULL, !cells);
	}
	print_folded(o, &line, at);
}

static void print_table(struct out *o)
{
	CLEANUP_FREE const struct cell **cells = mem_zalloc(o->columns.n, sizeof(*cells));
	size_t next = 0;

	fold(o);
	print_record(o, NULL);
	while (next < o->cells.n) {
		size_t record = o->cells.at[next].record;

		memset(cells, 0, o->columns.n * sizeof(*cells));
		for (; next < o->cells.n && o->cells.at[next].record == record; next++)
			cells[o->cells.at[next].column] = &o->cells.at[next];
		print_record(o, cells);
	}
}

void out_tint(struct out *o, enum out_color color)
{
	if (o->cells.n)
		vec_last(&o->cells)->color = color;
}

void out_table_end(struct out *o)
{
	if (o->record_open)
		out_end(o);
	o->record_open = false;
	out_end(o);
	if (!o->json && o->columns.n)
		print_table(o);
	clear_table(o);
}

const char *out_bold(const struct out *o)
{
	return o->color ? MARK_BOLD : "";
}

const char *out_green(const struct out *o)
{
	return o->color ? MARK_GREEN : "";
}

const char *out_yellow(const struct out *o)
{
	return o->color ? MARK_YELLOW : "";
}

const char *out_red(const struct out *o)
{
	return o->color ? MARK_RED : "";
}

const char *out_plain(const struct out *o)
{
	return o->color ? MARK_PLAIN : "";
}
