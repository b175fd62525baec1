/* SPDX-License-Identifier: GPL-2.0-only */
/* The records of `log`, which overwrite the oldest ones. */
#pragma once

#include <linux/types.h>

#include "common/event.h"

/* Element n % WEIR_LOGS of the array "logs" has record n. A writer claims it in `begun`, clears
 * `ended`, writes the event and sets `ended`, each with a full barrier in between. A reader reads
 * in the opposite order: an event is whole if both words are n + 1. Both only grow in the records
 * of an element, and an element never has two writers. */
struct log_record {
	__u64 begun;
	struct event event;
	__u64 ended; /* 0: is being written */
};
_Static_assert(sizeof(struct log_record) == 16 + sizeof(struct event), "layout");

/* The element of the array "loghead". */
struct log_head {
	__u64 next; /* the number of the next record */
	__u64 pad[7];
	__u64 read; /* a reader has seen the records before this one; written by the readers */
	__u64 pad2[7];
};
_Static_assert(sizeof(struct log_head) == 128, "layout");
