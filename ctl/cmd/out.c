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
#include "ctl/base/time.h"
#include "ctl/base/vec.h"

#define SCHEMA 1 // is raised if a key is removed or changes its meaning, but not for new keys

// Marks that out_bold and similar functions put into a line. They become the terminal's sequences
// when the line is printed; no other character of a line may control the terminal, so that foreign
// text cannot.
#define MARK_BOLD   "\001"
#define MARK_RED    "\002"
#define MARK_PLAIN  "\003"
#define MARK_GREEN  "\004"
#define MARK_YELLOW "\005"
#define CLEAR       "\033[H\033[J"

#define GAP         2 // blanks between two columns
#define INDENT      4 // indentation of a line that continues the previous one
#define ELLIPSIS    "\u2026"
#define BLOCK_ROWS  500   // rows of a long table, printed together with the same column widths
#define BLOCK_BYTES 65536 // bytes of a document with a long table that are printed together

struct column {
	const char *name;
	size_t width;
	size_t line; // that it is folded to, from 0
	bool number; // aligned to the right
};

struct cell {
	size_t row, column;
	size_t at, width; // length of its text in out.words, and in columns of the screen
	enum out_color color;
};

struct out {
	bool json, color, failed;
	bool told;     // lines go to standard error, beside the document
	bool taken;    // by another command: nothing is printed
	bool streamed; // documents were printed already: an empty last one is useless
	bool filled;   // the present one has more than its schema and time
	bool timed;    // it has its time
	struct json_writer writer;
	size_t table;      // depth of the open table in the document; 0: none
	bool long_table;   // it is printed in blocks
	bool header_shown; // of the open table
	VEC(struct column) columns;
	size_t next_column; // that the next cell probably has
	VEC(struct cell) cells;
	struct text words; // of the cells
	size_t rows;       // in cells
	size_t fit;        // columns of a line; 0: any number
};

static void begin(struct out *o)
{
	o->filled = o->timed = false;
	if (!o->json)
		return;
	json_write_object(&o->writer, NULL);
	json_write_u64(&o->writer, "schema", SCHEMA);
}

static void stamp(struct out *o, uint64_t wall_ms)
{
	num_time_text text;

	if (!o->json || o->timed)
		return;
	o->timed = true;
	if (num_format_time_ms(wall_ms, text))
		json_write_string(&o->writer, "time", text);
}

void out_set_moment(struct out *o, uint64_t wall_ms)
{
	o->filled = true;
	stamp(o, wall_ms);
}

struct out *out_new(bool json, bool pretty, bool color)
{
	struct out *o = mem_new(struct out);

	*o = (struct out){.json = json, .color = color, .writer.pretty = pretty};
	begin(o);
	return o;
}

bool out_is_json(const struct out *o)
{
	return o->json;
}

void out_tell(struct out *o)
{
	o->told = true;
}

bool out_has_lines(const struct out *o)
{
	return !o->json || o->told;
}

void out_fit(struct out *o, size_t columns)
{
	o->fit = columns;
}

bool out_failed(const struct out *o)
{
	return o->failed;
}

static void close_to(struct out *o, size_t depth)
{
	while (o->writer.depth > depth)
		json_write_end(&o->writer);
}

static void close_document(struct out *o)
{
	close_to(o, 1);
	stamp(o, time_ms(CLOCK_REALTIME));
	close_to(o, 0);
}

void out_error(struct out *o, const char *text, const char *hint, const char *code)
{
	close_to(o, 1);
	out_object(o, "error");
	out_set_string(o, "text", text);
	out_set_string(o, "hint", hint[0] ? hint : NULL);
	out_set_string(o, "code", code[0] ? code : NULL);
	out_end(o);
}

struct out *out_new_document(void)
{
	struct out *o = out_new(true, false, false);

	o->taken = true;
	return o;
}

char *out_take_document(struct out *o)
{
	close_document(o);
	return text_take(&o->writer.text);
}

static void write_all(struct out *o, const struct text *t)
{
	if (t->len && fwrite(t->at, 1, t->len, stdout) != t->len)
		o->failed = true;
}

// The part of the document that is already written.
static void print_part(struct out *o)
{
	if (o->taken)
		return;
	write_all(o, &o->writer.text);
	o->writer.text.len = 0;
}

static void print_document(struct out *o)
{
	close_document(o);
	print_part(o);
	if (fflush(stdout))
		o->failed = true;
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

static void clear_rows(struct out *o)
{
	o->cells.n = 0;
	o->words.len = 0;
	o->rows = 0;
}

static void clear_table(struct out *o)
{
	clear_rows(o);
	o->columns.n = 0;
	o->next_column = 0;
	o->table = 0;
	o->long_table = false;
	o->header_shown = false;
}

void out_free(struct out *o)
{
	if (!o)
		return;
	vec_free(&o->cells);
	vec_free(&o->columns);
	text_free(&o->words);
	json_writer_free(&o->writer);
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
	if (o->json)
		fputs(text_get(&shown), stderr);
	else
		write_all(o, &shown);
}

void out_text(struct out *o, const char *text, size_t len)
{
	CLEANUP(text_free) struct text shown = {0};

	while (len && out_has_lines(o)) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		text_add_shown(&shown, text, end && n && end[-1] == '\r' ? n - 1 : n);
		text_addc(&shown, '\n');
		n += end != NULL;
		text += n;
		len -= n;
	}
	write_all(o, &shown);
}

void out_line(struct out *o, const char *fmt, ...)
{
	CLEANUP(text_free) struct text line = {0};
	va_list ap;

	if (!out_has_lines(o))
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

// Whether values are printed: text has none.
static bool has_values(struct out *o)
{
	o->filled = true;
	stamp(o, time_ms(CLOCK_REALTIME));
	return o->json;
}

void out_set_string(struct out *o, const char *key, const char *value)
{
	if (!has_values(o))
		return;
	if (value)
		json_write_string(&o->writer, key, value);
	else
		json_write_nothing(&o->writer, key);
}

void out_set_u64(struct out *o, const char *key, uint64_t value)
{
	if (has_values(o))
		json_write_u64(&o->writer, key, value);
}

void out_set_real(struct out *o, const char *key, double value)
{
	if (has_values(o))
		json_write_real(&o->writer, key, value);
}

void out_set_bool(struct out *o, const char *key, bool value)
{
	if (has_values(o))
		json_write_bool(&o->writer, key, value);
}

void out_set_time(struct out *o, const char *key, uint64_t wall_s)
{
	num_time_text text;

	if (o->json)
		out_set_string(o, key, num_format_time(wall_s, text));
}

void out_object(struct out *o, const char *key)
{
	if (has_values(o))
		json_write_object(&o->writer, key);
}

void out_array(struct out *o, const char *key)
{
	if (has_values(o))
		json_write_array(&o->writer, key);
}

void out_item_string(struct out *o, const char *value)
{
	out_set_string(o, NULL, value);
}

void out_item_u64(struct out *o, uint64_t value)
{
	out_set_u64(o, NULL, value);
}

void out_end(struct out *o)
{
	if (o->writer.depth > 1)
		json_write_end(&o->writer);
}

static void set_json(void *out, const char *key, const struct json *value)
{
	out_set_json(out, key, value);
}

// Depth of objects and arrays; deeper ones than a document can have are left out.
static void set_json_tree(struct out *o, const char *key, const struct json *value, bool object)
{
	if (!o->json || o->writer.depth == JSON_WRITE_DEPTH)
		return;
	if (object)
		out_object(o, key);
	else
		out_array(o, key);
	if (object)
		json_each(value, set_json, o);
	for (size_t n = 0; !object && n < json_length(value); n++)
		out_set_json(o, NULL, json_at(value, n));
	out_end(o);
}

void out_set_json(struct out *o, const char *key, const struct json *value)
{
	enum json_kind kind = json_kind(value);

	switch (kind) {
	case JSON_IS_OBJECT:
	case JSON_IS_ARRAY:
		set_json_tree(o, key, value, kind == JSON_IS_OBJECT);
		break;
	case JSON_IS_STRING:
		out_set_string(o, key, json_text(value));
		break;
	case JSON_IS_NUMBER:
		out_set_u64(o, key, json_number(value));
		break;
	case JSON_IS_BOOL:
		out_set_bool(o, key, json_is_yes(value));
		break;
	case JSON_IS_NOTHING:
		out_set_string(o, key, NULL);
		break;
	case JSON_IS_OTHER:
		break;
	}
}

void out_table(struct out *o, const char *key)
{
	clear_table(o);
	out_array(o, key);
	o->table = o->writer.depth;
}

void out_long_table(struct out *o, const char *key)
{
	out_table(o, key);
	o->long_table = true;
}

static void print_rows(struct out *o);

// Ends the previous row, and prints the complete rows of a long table.
static void end_row(struct out *o)
{
	close_to(o, o->table);
	if (!o->long_table)
		return;
	if (o->rows == BLOCK_ROWS)
		print_rows(o);
	if (o->writer.text.len > BLOCK_BYTES)
		print_part(o);
}

void out_row(struct out *o)
{
	end_row(o);
	out_object(o, NULL);
	o->next_column = 0;
	o->rows++;
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

// The column of this name; a new one after the others if no column has it.
static size_t find_column(struct out *o, const char *name, bool number)
{
	size_t c = o->next_column;

	if (c >= o->columns.n || strcmp(o->columns.at[c].name, name))
		for (c = 0; c < o->columns.n; c++)
			if (!strcmp(o->columns.at[c].name, name))
				break;
	if (c == o->columns.n)
		vec_push(&o->columns,
			 ((struct column){
				 .name = name, .width = out_width(name), .number = number}));
	o->next_column = c + 1;
	return c;
}

static void add_cell(struct out *o, const char *name, const char *text, bool number)
{
	struct cell cell = {.row = o->rows - 1, .at = o->words.len};

	if (o->json || !name)
		return;
	text_add_shown(&o->words, text, strlen(text));
	text_addc(&o->words, '\0');
	cell.column = find_column(o, name, number);
	cell.width = out_width(o->words.at + cell.at);
	if (cell.width > o->columns.at[cell.column].width)
		o->columns.at[cell.column].width = cell.width;
	vec_push(&o->cells, cell);
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

// Decides the line of each column, and narrows columns that are wider than a line.
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

// The first `width` columns of a text, the last one an ellipsis.
static void add_cut(struct text *line, const char *text, size_t width)
{
	const char *end = text;

	for (size_t n = 0; *end && n + 1 < width; n++)
		do
			end++;
		while (((unsigned char)*end & 0xc0) == 0x80);
	text_addn(line, text, (size_t)(end - text));
	text_add(line, ELLIPSIS);
}

static void add_blanks(struct text *line, size_t n)
{
	static const char blanks[] = "                                ";

	for (size_t part; n; n -= part) {
		part = n < sizeof(blanks) - 1 ? n : sizeof(blanks) - 1;
		text_addn(line, blanks, part);
	}
}

static void add_padded(struct text *line, const struct column *column, const char *text,
		       size_t width, enum out_color color)
{
	static const char *const sequences[] = {"", "\033[32m", "\033[31m", "\033[33m"};
	size_t pad = width < column->width ? column->width - width : 0;

	if (column->number)
		add_blanks(line, pad);
	text_add(line, sequences[color]);
	if (width > column->width)
		add_cut(line, text, column->width);
	else
		text_add(line, text);
	text_add(line, color ? "\033[0m" : "");
	if (!column->number)
		add_blanks(line, pad);
}

static void print_folded(struct out *o, struct text *line, bool continued)
{
	while (line->len && line->at[line->len - 1] == ' ')
		line->len--;
	if (line->len || !continued) {
		text_addc(line, '\n');
		write_all(o, line);
	}
	line->len = 0;
}

static void add_column(const struct out *o, struct text *line, size_t c, const struct cell *cell)
{
	add_padded(line, &o->columns.at[c], cell ? o->words.at + cell->at : "",
		   cell ? cell->width : 0, cell && o->color ? cell->color : OUT_NO_COLOR);
}

static void add_name(const struct out *o, struct text *line, size_t c)
{
	const struct column *column = &o->columns.at[c];

	add_padded(line, column, column->name, out_width(column->name), OUT_NO_COLOR);
}

// A line for each line of the fold that has text; cells[c] NULL: empty. cells NULL: the header.
static void print_row(struct out *o, struct text *line, const struct cell *const *cells)
{
	size_t at = 0;

	for (size_t c = 0; c < o->columns.n; c++) {
		const struct column *column = &o->columns.at[c];

		if (column->line != at) {
			print_folded(o, line, at);
			at = column->line;
			add_blanks(line, INDENT);
		} else if (c) {
			add_blanks(line, GAP);
		}
		if (cells)
			add_column(o, line, c, cells[c]);
		else
			add_name(o, line, c);
	}
	print_folded(o, line, at);
}

// Prints the rows that are there, after the header if it is not printed yet.
static void print_rows(struct out *o)
{
	CLEANUP_FREE const struct cell **cells = mem_zalloc(o->columns.n, sizeof(*cells));
	CLEANUP_TEXT struct text line = {0};
	size_t next = 0;

	fold(o);
	if (!o->header_shown)
		print_row(o, &line, NULL);
	o->header_shown = true;
	while (next < o->cells.n) {
		size_t row = o->cells.at[next].row;

		memset(cells, 0, o->columns.n * sizeof(*cells));
		for (; next < o->cells.n && o->cells.at[next].row == row; next++)
			cells[o->cells.at[next].column] = &o->cells.at[next];
		print_row(o, &line, cells);
	}
	clear_rows(o);
}

void out_tint(struct out *o, enum out_color color)
{
	if (o->cells.n)
		vec_last(&o->cells)->color = color;
}

void out_table_end(struct out *o)
{
	close_to(o, o->table);
	out_end(o);
	if (o->columns.n && (o->cells.n || !o->header_shown))
		print_rows(o);
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
