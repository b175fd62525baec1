// SPDX-License-Identifier: GPL-2.0-only
// Runs a program of the kernel instruction by instruction, with copies of its maps, and counts what
// it executes.
//
// The count does not depend on the machine. A look-up that the kernel inlines counts as its
// instructions, a 64-bit constant as one, a call of a function of the kernel as one.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/executed/machine.h"

struct emulation {
	uint64_t executed;
	uint32_t verdict;
	const uint8_t *frame; // as the program leaves it; valid until the next run
	size_t bytes;
	const struct helper *helpers; // functions that were called; likewise
	size_t n_helpers;
	uint64_t lines, large; // cache lines of maps that it has touched; of maps above 1 MB
};

struct machine *emulate_new(uint64_t jiffies, uint32_t ifindex);
void emulate_free(struct machine *m);
// NULL, or why the run failed. Maps keep what earlier runs wrote.
const char *emulate(struct machine *m, int program, const uint8_t *frame, size_t bytes,
		    struct emulation *ret);
