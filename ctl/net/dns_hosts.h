// SPDX-License-Identifier: GPL-2.0-only
// The hosts file, read once and sorted by name.
#pragma once

#include <stddef.h>

#include "ctl/base/addr.h"
#include "ctl/base/vec.h"

struct hosts_entry {
	const char *name; // lower case, without a final dot
	struct addr addr;
};

struct hosts {
	char *text; // what the names point into
	VEC(struct hosts_entry) entries;
};

// NULL: /etc/hosts. A file that cannot be read is empty; lines without an address are skipped.
void hosts_read(const char *path, struct hosts *ret);
void hosts_cleanup(struct hosts *h);
// The first of *ret_n consecutive entries of the name, in either case; NULL: none.
const struct hosts_entry *hosts_find(const struct hosts *h, const char *name, size_t *ret_n);
