/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that compare many verdicts count which way the packets took. Each way must see a part of
 * them, or a defect in it stays unseen. C includes this, tests/ways.py reads it. */
#pragma once

/* Of the packets, and of the frames of the datapath cases, by either way. */
#define WAYS_LEAST_PERCENT 10
/* Of the histories of a service, by the short way: of three in four all but SCTP. */
#define WAYS_LEAST_PERCENT_HISTORIES 45
