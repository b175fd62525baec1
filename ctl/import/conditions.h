// SPDX-License-Identifier: GPL-2.0-only
// The parts of condition.c.
#pragma once

#include "ctl/import/condition.h"

// Conditions of connection tracking: {"ct": {"key": …}}.
void condition_ct(const struct condition_place *place, const struct json *left, const char *op,
		  const struct json *right, struct matches *ret);
// Conditions on interface, family and mark: {"meta": {"key": …}}.
void condition_meta(const struct condition_place *place, const char *key, const char *op,
		    const struct json *right, struct matches *ret);

struct values values_one(struct arena *arena, address_number first, address_number last);
// Is it {"payload": {"protocol": …, "field": …}}?
bool is_payload(const struct json *j, const char *protocol, const char *field);
