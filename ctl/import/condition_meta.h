// SPDX-License-Identifier: GPL-2.0-only
// Conditions on interface, family and mark: {"meta": {"key": …}}.
#pragma once

#include "ctl/import/matches.h"

void condition_meta(const struct condition_place *place, const char *key, const char *op,
		    const struct json *right, struct matches *ret);
