// SPDX-License-Identifier: GPL-2.0-only
// The whole terminal as a screen of cells, by ncursesw, which is loaded when the first one opens.
//
// The caller blocks SIGWINCH, SIGTSTP, SIGCONT and the signals that end the process: no function
// here is interrupted, but one that waits for the terminal is ended.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"

enum screen_style { SCREEN_PLAIN, SCREEN_BOLD, SCREEN_BAR, SCREEN_GREEN, SCREEN_RED };

// Cells that can be drawn into; what draws does not know where they are.
struct screen_area {
	size_t rows, columns;
	bool utf8; // else only ASCII is shown
	// The text fits into the row (base/cells.h).
	void (*put)(void *ctx, size_t row, size_t column, enum screen_style style,
		    const char *text);
	void *ctx;
};

// Keys that are not a byte of text.
enum screen_key {
	SCREEN_NO_KEY = -1,
	SCREEN_TAB = '\t',
	SCREEN_ENTER = '\n',
	SCREEN_ESCAPE = 27,
	SCREEN_UP = 256,
	SCREEN_DOWN,
	SCREEN_LEFT,
	SCREEN_RIGHT,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_END,
	SCREEN_TAB_BACK,
	SCREEN_BACKSPACE,
	SCREEN_OTHER,
};

struct screen;

// Takes the terminal of standard input and output. 0 or -errno with err set: ncursesw is not
// installed, or the terminal cannot move its cursor.
int screen_open(bool color, struct screen **ret, struct err *err);
// The terminal is as before. NULL is allowed.
void screen_close(struct screen *s);
#define CLEANUP_SCREEN CLEANUP(screen_cleanup)
void screen_cleanup(struct screen **s);

// An empty screen to draw into, of the present size of the terminal.
struct screen_area screen_begin(struct screen *s);
// Shows what was drawn, unless the terminal takes no output at present.
void screen_show(struct screen *s);
// A key that was pressed, or SCREEN_NO_KEY.
int screen_key(struct screen *s);
// Gives the terminal back and stops the process (^Z), until SIGCONT.
void screen_stop(struct screen *s);
// The process continues, or the terminal was changed by others: the next screen is drawn wholly.
void screen_renew(struct screen *s);
