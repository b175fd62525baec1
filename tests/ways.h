/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that compare many verdicts count which way the packets took. Each way must see a share of
 * the packets, or its defects stay unseen. C includes this, tests/ways.py reads it. */
#pragma once

/* Share of the packets, and of the frames of the datapath cases, that each way must see. */
#define WAYS_LEAST_PERCENT 10
/* Share of the histories of a service that the short way must see: all but SCTP of three in
 * four. */
#define WAYS_LEAST_PERCENT_HISTORIES 45
