// SPDX-License-Identifier: GPL-2.0-only
// Detaches the root program, wherever its devices are now.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/datapath/instance.h"

// Detaches our program, and no other, from the device of this interface, whatever its name and
// network namespace are now. It is not an error if the device or the program no longer exists:
// *ret_was_there is then false.
int attach_remove(const struct instance *i, uint32_t number, bool *ret_was_there, struct err *err);

// Detaches every root program of the instance that is pinned below FOLDER (any layout version): by
// its links, and by its progs map in all network namespaces that can be entered. *ret_n counts.
int attach_remove_all(const char *folder, size_t *ret_n, struct err *err);
