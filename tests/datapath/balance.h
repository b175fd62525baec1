// SPDX-License-Identifier: GPL-2.0-only
// Cases of the balancer.
#pragma once

#include "tests/datapath/rig.h"

// One line of the file of cases whose word begins with "balance-": WORD without that, and its
// value. Runs the case when it is `expect` and its name contains `only` (NULL: all). The text that
// lines point into must outlive the cases. false: the line is invalid.
bool balance_case_line(struct rig *rig, const char *word, char *value, const char *only,
		       struct tally *tally);
// Removes from the rig what the cases have loaded.
void balance_cases_end(struct rig *rig);
