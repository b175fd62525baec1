// SPDX-License-Identifier: GPL-2.0-only
// Commands that remove: the references, and the entries that still cover their targets.
#pragma once

#include "ctl/control/entries/change.h"

// Removes the references of the command, and sets `left`. 0 or -errno with err set.
int change_remove(struct entry_change *c, struct store *b, struct err *err);
void change_free_left(struct entry_change *c);
