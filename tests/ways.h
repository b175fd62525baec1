/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that compare many verdicts count which way the packets took. Each way must see a part of them, or a defect in it
 * stays unseen. C includes this, tests/ways.py reads it. */
#pragma once

/* Of the packets, by either way. */
#define WAYS_LEAST_PERCENT 10
/* Of the datapath cases, by either way: frames. Nearly all of them are about what is not common. */
#define WAYS_LEAST_CASES 400
