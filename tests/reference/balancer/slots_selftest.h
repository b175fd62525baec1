// SPDX-License-Identifier: GPL-2.0-only
// Rules of slots and pins, case by case.
#ifndef REF_SLOTS_SELFTEST_H
#define REF_SLOTS_SELFTEST_H

/* The exit status. */
int slots_selftest(void);

#endif
