// SPDX-License-Identifier: GPL-2.0-only
// The choice by the keys of `weir top`: view, order, filter, rows. Pure.
#pragma once

#include "ctl/cmd/top_model.h"

struct top_ui {
	enum top_view view;
	struct top_choice choice;
	bool paused, help, ended;
	bool editing;      // keys are added to the filter
	size_t first;      // row of the view that is at the top
	size_t rows, page; // rows: in the view; page: rows that fit; as drawn last
};

// The choice at the start.
struct top_ui top_ui_new(void);
// A key: a byte, or one of enum screen_key.
void top_ui_key(struct top_ui *ui, int key);
// The view has so many rows, of which so many fit: moves `first` if it is too far down.
void top_ui_fit(struct top_ui *ui, size_t rows, size_t page);
