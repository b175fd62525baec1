// SPDX-License-Identifier: GPL-2.0-only
// Changes of the hosts of the overlay: room for them, staged, settled, recovered.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/datapath/overlay_lines.h"

// An entry that changes; until 0: it ends.
struct lines_change {
	struct lines_key key;
	uint64_t until;
};

// Makes room for `more` entries beside the `present` ones, with expiries for those changes that
// have one, while packets are looked up. 0 or -errno with err set.
int lines_reserve(struct overlay_lines *l, size_t present, size_t more, struct err *err);
// Stages the changes for the epoch; each differs from the present entry. Makes more room where
// addresses collide.
int lines_stage(struct overlay_lines *l, const struct lines_change *changes, size_t n,
		uint64_t epoch, struct err *err);
// Gives what was staged its final form, after the commit. Cannot fail.
void lines_settle(struct overlay_lines *l, const struct lines_change *changes, size_t n);

// After a killed command: everything that is staged, committed or not, gets its final form, and
// what was being moved is moved. Counts the entries by kind. 0 or -errno with err set.
int lines_recover(struct overlay_lines *l, uint32_t ret_n[OVERLAY_KINDS], struct err *err);
