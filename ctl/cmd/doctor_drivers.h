// SPDX-License-Identifier: GPL-2.0-only
// The table of `weir doctor --drivers`.
#pragma once

#include "ctl/cmd/out.h"

// Prints the table of net/driver.h: a row or a JSON object for each driver. docs/kernels.md has the
// same cells.
void doctor_drivers(struct out *o);
