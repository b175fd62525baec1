// SPDX-License-Identifier: GPL-2.0-only
// Conditions of connection tracking: {"ct": {"key": …}}.
#pragma once

#include "ctl/import/matches.h"

void condition_ct(const struct condition_place *place, const struct json *left, const char *op,
		  const struct json *right, struct matches *ret);
// Connections that are tracked, and answers that Weir's `established` does not match.
void condition_established(struct arena *arena, bool errors, struct matches *ret);
