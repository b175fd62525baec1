/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that compare many verdicts count which way the packets took. Each way must see a part of them, or a defect in it
 * stays unseen. C includes this, tests/ways.py reads it. */
#pragma once

/* 1: the short program decides packets; 0: it leaves all to the general one. */
#define WAYS_SHORT_TAKES 0
/* Of the packets, by either way. */
#define WAYS_LEAST_PERCENT 10

/* May a run have been so? */
#define WAYS_ARE_ENOUGH(packets, general)                                       \
	(!WAYS_SHORT_TAKES || ((general)*100 >= (packets)*WAYS_LEAST_PERCENT && \
			       ((packets) - (general)) * 100 >= (packets)*WAYS_LEAST_PERCENT))
