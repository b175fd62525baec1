// SPDX-License-Identifier: GPL-2.0-only
// Lays the views of `weir top` out in any number of cells.
#pragma once

#include "ctl/cmd/screen.h"
#include "ctl/cmd/top_ui.h"

#define TOP_COLUMNS_LEAST 20
#define TOP_ROWS_LEAST    5

// Shown beside the counts.
struct top_about_now {
	const char *instance;
	const char *time;                      // of the last reading: "15:04:05"
	const char *trouble;                   // "": none
	const struct sampled_reading *samples; // for the views of samples; NULL: not yet
};

// Draws the view that ui names, and fits its rows.
void top_draw(const struct screen_area *area, const struct top_model *m, struct top_ui *ui,
	      const struct top_about_now *about);
