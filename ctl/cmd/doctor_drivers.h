// SPDX-License-Identifier: GPL-2.0-only
// The table of `weir doctor --drivers`.
#pragma once

#include "ctl/cmd/out.h"

// What net/driver.h has of each driver: a row in text, an object in JSON. docs/kernels.md has the
// same cells.
void doctor_drivers(struct out *o);
