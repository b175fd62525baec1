// SPDX-License-Identifier: GPL-2.0-only
// The counters of an open instance, and what they have counted since the previous reading. Entries
// and their owners are read more seldom than interfaces, rules and services.
#pragma once

#include "ctl/base/err.h"
#include "ctl/control/rates.h"

struct reading_state;

struct rates_reader {
	// Origins, lists and entries: only of entries that have counted something in the time, and
	// of these the busiest.
	struct rates_list lists[RATES_PARTS];
	struct err rules_unknown; // why the rules have no names, and no rows; kind 0: they have
	struct reading_state *state;
};

#define READING_ENTRIES 30 // entries that are rows

// Opens the instance. Nothing is read yet. 0 or -errno with err set, as of instance_open().
int reading_open(const char *instance, struct rates_reader *ret, struct err *err);
// Reads all that is due. An instance that was removed and made again is opened again; one that no
// longer exists is the error of instance_open(). Takes no lock, but for entries the shared one,
// until their references are read; if it is taken, they are read at the next call. 0 or -errno with
// err set.
int reading_take(struct rates_reader *r, struct err *err);
void reading_close(struct rates_reader *r);
#define CLEANUP_READING CLEANUP(reading_close)
