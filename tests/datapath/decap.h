// SPDX-License-Identifier: GPL-2.0-only
// Cases of the decapsulating program.
#pragma once

#include "tests/datapath/suite.h"

// One line of the file of cases whose word begins with "decap-": WORD without that, and its value.
// Runs the case when it is `expect` and its name contains `only` (NULL: all). The text that lines
// point into must outlive the cases. false: the line is invalid.
bool decap_case_line(const char *word, char *value, const char *only, struct tally *tally);
// Frees what the cases have loaded.
void decap_cases_end(void);
