// SPDX-License-Identifier: GPL-2.0-only
// Reads the counters of the datapath.
#pragma once

#include "common/counters.h"
#include "ctl/datapath/instance.h"

// Sums over all CPUs by interface number and reason. Number 0 counts packets of interfaces that are
// not, or no longer, in the table.
struct counters {
	struct counter at[WEIR_IFACES][WEIR_REASON_COUNT];
	uint64_t tally[WEIR_TALLY_COUNT];
};

// Reads all counters. The counters of an interface are kept until another one gets its number. 0 or
// -errno with err set.
int counters_read(const struct instance *i, struct counters *ret, struct err *err);
// Only of interfaces whose bit is set; the others stay as they are.
int counters_read_of(const struct instance *i, uint64_t numbers, struct counters *ret,
		     struct err *err);

// Another interface gets this number: its counters begin at zero. 0 or -errno with err set.
int counters_clear(const struct instance *i, uint32_t number, struct err *err);

struct counter counters_reason(const struct counters *c, enum weir_reason reason); // all interfaces
struct counter counters_iface(const struct counters *c, uint32_t number, bool drops_only);

const char *reason_name(enum weir_reason reason); // "block-from"
const char *reason_text(enum weir_reason reason); // what it means
bool reason_drops(enum weir_reason reason);
const char *reason_outcome(enum weir_reason reason); // "drop" or "pass"
// The verdict and the group of a reason below WEIR_REASON_COUNT.
enum weir_verdict reason_verdict(enum weir_reason reason);
enum weir_group reason_group(enum weir_reason reason);
// The group of the reason, as explain prints it ("default", "malformed") and as in an expect line;
// VIA_ANY: no word there.
const char *group_word(enum weir_group group);
enum expect_via group_via(enum weir_group group);
const char *tally_name(enum weir_tally tally); // "limit-pushed-out"
const char *tally_text(enum weir_tally tally);
