// SPDX-License-Identifier: GPL-2.0-only
// The countries and autonomous systems of entries.
#pragma once

#include <stddef.h>

struct agent;

// To be called with their number whenever the names of the instance were listed.
void places_listed(struct agent *a, size_t n);
