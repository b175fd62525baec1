// SPDX-License-Identifier: GPL-2.0-only
// Finds rules that can never match because an earlier rule takes all their packets.
#pragma once

#include "ctl/base/diag.h"
#include "ctl/policy/resolved.h"

// Warns about each and sets its `never`. Sound, not complete: the earlier rule is one rule without
// conditions that ends the evaluation, covers the later one field by field, and still does when
// names and lists change.
void shadow_warn(struct resolved *r, struct diag *diag);
