// SPDX-License-Identifier: GPL-2.0-only
// Removes folders with all that is in them.
#pragma once

#include "ctl/base/err.h"

// No error when it is absent. Does not follow links. 0 or -errno with err set.
int file_remove_tree(const char *path, struct err *err);
