// SPDX-License-Identifier: GPL-2.0-only
// Results on standard output, as text or as one JSON document, from the same calls.
//
// Each document begins with "schema", the version of its keys, and "time". out_set_* are data: JSON only, and
// an object has each key once. out_line is prose: text only (but see out_tell). A table is both:
// its cells are columns in text and keys in JSON.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct out;

struct out *out_new(bool json, bool pretty, bool color);
// One that prints nothing: its document is taken by another command.
struct out *out_new_document(void);
// That document, complete; the caller frees it.
char *out_take_document(struct out *o);
// Prints what was collected (JSON: the document). 0 or -EIO.
int out_finish(struct out *o);
// Adds {"error": {"text", "hint", "code"}} to what was collected: a failure is one document as
// well.
void out_error(struct out *o, const char *text, const char *hint, const char *code);
void out_free(struct out *o);
bool out_is_json(const struct out *o);
// Beside the document, lines go to standard error.
void out_tell(struct out *o);
// Whether lines are printed.
bool out_has_lines(const struct out *o);
// Whether something could not be written: a long listing can end.
bool out_failed(const struct out *o);
// Tables are folded at so many columns: cells that do not fit continue on an indented line, and a
// cell longer than a line is cut with an ellipsis. 0 (the default): lines of any length. JSON is
// never cut.
void out_fit(struct out *o, size_t columns);

// Columns of text on the screen. Bytes of UTF-8 that are not the first of a character take none,
// nor do the marks of out_bold() and its like.
size_t out_width(const char *text);

// Prints one line. Characters that control the terminal (text_shown), also line breaks, are printed
// as '?'; JSON escapes them.
__attribute__((format(printf, 2, 3))) void out_line(struct out *o, const char *fmt, ...);
// One line "HEAD TAIL", or two where that is wider than the terminal (out_fit).
void out_folded(struct out *o, const char *head, const char *tail);
// Clears the screen; for live views on a terminal.
void out_clear(struct out *o);
// Prints text lines and flushes at once; for live views.
void out_flush(struct out *o);

// Many lines of a text that others wrote, each as out_line shows it; a line may end with CR LF.
void out_text(struct out *o, const char *text, size_t len);
void out_set_string(struct out *o, const char *key, const char *value); // NULL: null
void out_set_u64(struct out *o, const char *key, uint64_t value);
void out_set_real(struct out *o, const char *key, double value); // json_write_real
void out_set_bool(struct out *o, const char *key, bool value);
void out_set_time(struct out *o, const char *key, uint64_t wall_s); // RFC 3339; UINT64_MAX: null
// The time that this document is about, before its other values; else it is the time of the first
// one.
void out_set_moment(struct out *o, uint64_t wall_ms);
// A value that another process has reported, with all that is in it; what has no form here is left
// out.
void out_set_json(struct out *o, const char *key, const struct json *value);
// Open an object or an array under key (key NULL: an item of the open array), and close it.
void out_object(struct out *o, const char *key);
void out_array(struct out *o, const char *key);
void out_item_string(struct out *o, const char *value); // into the open array
void out_item_u64(struct out *o, uint64_t value);
void out_end(struct out *o);

// Rows under key. Each cell names its JSON key and its column; a column exists once a cell named
// it. "" as text leaves the cell empty and the key out.
void out_table(struct out *o, const char *key);
// The same for a table of any length: it is printed in blocks of rows while it is made, and a
// column is as wide as the blocks so far demand. Each row names the columns of the first one.
void out_long_table(struct out *o, const char *key);
void out_row(struct out *o);
void out_cell(struct out *o, const char *key, const char *column, const char *text);
void out_cell_u64(struct out *o, const char *key, const char *column, uint64_t value);
// Different forms in text and JSON: "12m" and 720.
void out_cell_as(struct out *o, const char *key, const char *column, const char *text,
		 uint64_t value);
// Colours the last cell, on a terminal.
enum out_color { OUT_NO_COLOR, OUT_GREEN, OUT_RED };
void out_tint(struct out *o, enum out_color color);
void out_table_end(struct out *o);

// For one document per line (weir -j watch): prints the document and begins a new one.
void out_next_document(struct out *o);

// Emphasis in text on a terminal: "" otherwise. Green passes, red drops and alarms, yellow warns.
const char *out_bold(const struct out *o);
const char *out_green(const struct out *o);
const char *out_red(const struct out *o);
const char *out_yellow(const struct out *o);
const char *out_plain(const struct out *o);
