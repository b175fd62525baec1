// SPDX-License-Identifier: GPL-2.0-only
// Runs a file of cases: one frame each, and everything that it may change.
#pragma once

#include "tests/datapath/rig.h"

// The format is described at the top of run.c. only: cases whose name contains it (NULL: all). Ends
// the process with status 2 when the file cannot be read or is invalid.
void cases_run(struct rig *rig, const char *path, const char *only, struct tally *tally);
