// SPDX-License-Identifier: GPL-2.0-only
// Limits, meters, and set statements with a limit.
#pragma once

#include "ctl/import/matches.h"

void condition_rate(const struct condition_place *place, const char *key, const struct json *j,
		    struct matches *ret);
