// SPDX-License-Identifier: GPL-2.0-only
// The time of an operation, and its line.
#include "ctl/cmd/progress_line.h"

#include <stdio.h>
#include <string.h>

#include "ctl/base/cells.h"
#include "ctl/base/num.h"

#define CLOSE_MS 200 // between operations that share a time
#define PAUSE_MS 500 // after a message
#define HEAD     "weir: "

void progress_line_tell(struct progress_line *l, const char *what, uint64_t now_ms)
{
	bool ran = l->what[0], runs = what && what[0];

	snprintf(l->what, sizeof(l->what), "%s", runs ? what : "");
	if (ran && !runs) {
		l->ended = true;
		l->ended_ms = now_ms;
	}
	if (!ran && runs && (!l->ended || now_ms - l->ended_ms > CLOSE_MS))
		l->since_ms = now_ms;
}

void progress_line_logged(struct progress_line *l, uint64_t now_ms)
{
	l->logged = true;
	l->logged_ms = now_ms;
}

uint64_t progress_line_due_ms(const struct progress_line *l, uint64_t drawn_ms)
{
	uint64_t due_ms = l->since_ms + PROGRESS_FIRST_MS;
	uint64_t after_ms = l->logged ? l->logged_ms + PAUSE_MS : 0;

	if (!l->what[0])
		return UINT64_MAX;
	after_ms = after_ms > drawn_ms ? after_ms : drawn_ms;
	if (after_ms >= due_ms)
		due_ms += ((after_ms - due_ms) / PROGRESS_EACH_MS + 1) * PROGRESS_EACH_MS;
	return due_ms;
}

// The time is always whole; the text is cut.
void progress_line_write(const struct progress_line *l, uint64_t now_ms, size_t columns,
			 struct text *ret)
{
	uint64_t ms = now_ms - l->since_ms;
	char time[NUM_TEXT + 4];
	num_text duration;
	size_t wide, room;

	if (!l->what[0] || ms < PROGRESS_FIRST_MS)
		return;
	num_format_duration_ms(ms / 1000 * 1000, duration);
	snprintf(time, sizeof(time), " (%s)", duration);
	room = sizeof(HEAD) + strlen(time); // and a column for the cursor
	if (columns <= room)
		return;
	wide = cells_width(l->what, false);
	text_add(ret, HEAD);
	cells_add(ret, l->what, wide < columns - room ? wide : columns - room, false);
	text_add(ret, time);
}
