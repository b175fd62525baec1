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
#define MARK_BOLD  "\001"
#define MARK_RED   "\002"
#define MARK_PLAIN "\003"
#define CLEAR      "\033[H\033[J"

struct column {
	const char *name;
	size_t width;
	bool number; // aligned to the right
};

struct cell {
	size_t row, column;
	char *text;
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
	size_t rows;
	bool row_open;
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
	o->rows = 0;
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
	static const char marks[] = MARK_BOLD MARK_RED MARK_PLAIN;
	static const char *const sequences[] = {"\033[1m", "\033[1;31m", "\033[0m"};
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
	o->row_open = false;
}

void out_row(struct out *o)
{
	if (o->row_open)
		out_end(o);
	out_object(o, NULL);
	o->row_open = true;
	o->rows++;
}

size_t out_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
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
		vec_push(&o->columns, ((struct column){name, out_width(name), number}));
	if (out_width(text_get(&shown)) > o->columns.at[c].width)
		o->columns.at[c].width = out_width(text_get(&shown));
	vec_push(&o->cells, ((struct cell){o->rows - 1, c, text_take(&shown)}));
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

static void print_cell(const struct out *o, size_t c, const char *text, bool last)
{
	const struct column *column = &o->columns.at[c];
	int pad = (int)(column->width - out_width(text));

	if (column->number)
		printf("%*s%s", pad, "", text);
	else
		printf("%s%*s", text, last ? 0 : pad, "");
	fputs(last ? "\n" : "  ", stdout);
}

static void print_row(const struct out *o, const struct cell **next)
{
	size_t row = (*next)->row;
	const struct cell *end = o->cells.at + o->cells.n;

	for (size_t c = 0; c < o->columns.n; c++) {
		bool here = *next < end && (*next)->row == row && (*next)->column == c;

		print_cell(o, c, here ? (*next)->text : "", c + 1 == o->columns.n);
		*next += here;
	}
}

void out_table_end(struct out *o)
{
	const struct cell *next = o->cells.at;

	if (o->row_open)
		out_end(o);
	o->row_open = false;
	out_end(o);
	if (!o->json && o->rows) {
		for (size_t c = 0; c < o->columns.n; c++)
			print_cell(o, c, o->columns.at[c].name, c + 1 == o->columns.n);
		while (next && next < o->cells.at + o->cells.n)
			print_row(o, &next);
	}
	clear_table(o);
}

const char *out_bold(const struct out *o)
{
	return o->color ? MARK_BOLD : "";
}

const char *out_red(const struct out *o)
{
	return o->color ? MARK_RED : "";
}

const char *out_plain(const struct out *o)
{
	return o->color ? MARK_PLAIN : "";
}
