// SPDX-License-Identifier: GPL-2.0-only
// Reads the records of `log`, which any number of readers may do at the same time.
#pragma once

#include <stdint.h>

#include "common/log.h"
#include "ctl/datapath/instance.h"

enum log_state {
	LOG_WHOLE,
	LOG_PENDING, // is being written, or its writer gave it up
	LOG_GONE,    // overwritten
};

// Copies record n out of an array of WEIR_LOGS that may be written at the same time. *ret is only
// valid if it is whole.
enum log_state log_record_read(const struct log_record *at, uint64_t n, struct event *ret);

struct logs;

// missed: records before this one that were overwritten, or given up by their writer.
typedef void logs_visit(void *ctx, const struct event *event, uint64_t missed);

// A record that a reader has read is not lost when it is overwritten; one that only looks does not
// count as a reader.
enum logs_use { LOGS_READ, LOGS_LOOK };

// Begins with the oldest record that is kept. 0 or -errno with err set.
int logs_open(const struct instance *i, enum logs_use use, struct logs **ret, struct err *err);
// Visits the records since the last call. A record that is not whole ends the visit; after 100 ms
// it counts as missed. The number of records.
int logs_take(struct logs *l, logs_visit *visit, void *ctx);
void logs_close(struct logs *l);
