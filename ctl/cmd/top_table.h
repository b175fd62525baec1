// SPDX-License-Identifier: GPL-2.0-only
// Options and cells that both tables of weir top have.
#pragma once

#include "ctl/cmd/command.h"

// The options --top (BEST_ALL: not given) and --count (*left stays). 0 or -errno with err set.
int top_read_counts(const struct args *args, size_t *ret_most, uint64_t *left, struct err *err);
// A number per second in the open row: a key, and a short number in a column.
void top_show_rate(struct out *o, const char *key, const char *column, double rate);
