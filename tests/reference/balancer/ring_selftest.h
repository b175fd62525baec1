// SPDX-License-Identifier: GPL-2.0-only
// The vectors of docs/ring.md.
#ifndef REF_RING_SELFTEST_H
#define REF_RING_SELFTEST_H

/* The exit status. */
int ring_selftest(void);

#endif
