// SPDX-License-Identifier: GPL-2.0-only
// When each host name had its last good answer, for `weir status`: an answer that has not changed
// is written nowhere else.
//
// /run/weir/NAME/answered has a row for each name (state.h): the name, seconds since 1970, and the
// TTL. It does not outlive a boot. Names without an answer for a day are removed from it.
#pragma once

#include "ctl/control/refresh.h"

// Enters the names that have an answer. 0 or -errno with err set.
int answered_note(const char *instance, const struct refresh *r, struct err *err);
// Sets since_s and ttl_s of the names whose last answer is later than that. A file that cannot be
// read is ignored.
void answered_read(const char *instance, struct refresh *r);
