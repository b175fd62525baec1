// SPDX-License-Identifier: GPL-2.0-only
// The policy in effect, whichever file it came from: which feeds it has, and its apply when one has changed.
#pragma once

#include "ctl/agent/inputs.h"
#include "ctl/base/err.h"

struct agent;
struct reapply;

struct reapply *reapply_new(struct agent *a);
void reapply_free(struct reapply *r); // NULL is allowed

// Looks which policy is in effect; the lock is held, shared.
void reapply_look(struct reapply *r);
// Its feeds, as of the last look.
const struct inputs *reapply_inputs(const struct reapply *r);
bool reapply_has(const struct reapply *r, const char *url);
// Copies of its feeds have changed: applies it again with them, and tries until that succeeds.
void reapply_soon(struct reapply *r);
// Why it does not succeed; text "": it does.
const struct err *reapply_problem(const struct reapply *r);
