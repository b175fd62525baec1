// SPDX-License-Identifier: GPL-2.0-only
// Counts instructions of the programs of nat and fullnat, which no policy of the bench has.
#pragma once

#include "tests/bench/bench.h"
#include "tests/executed/counts.h"

// Into the report of the bench.
void nat_count_rows(const struct bench *b);
