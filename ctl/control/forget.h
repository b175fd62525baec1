// SPDX-License-Identifier: GPL-2.0-only
// Empties the state folder of an instance that is not attached: its next attach starts fresh.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"

struct forget_what {
	bool policy;     // revisions, quick rules, and overrides of backends
	bool entries;    // of block and allow
	bool seed;       // seed of the rings of services
	bool interfaces; // that are attached at boot
};

struct forgotten {
	size_t revisions, entries, quick; // quick: rules
	bool overrides, seed, interfaces;
	bool damaged; // the entries could not be read: their number is unknown
};

// 0; or -errno with err set: ERR_REFUSED while the instance has interfaces. dry_run: only counts.
int forget(const char *instance, const char *command, const struct forget_what *what, bool dry_run,
	   struct forgotten *ret, struct err *err);
