// SPDX-License-Identifier: GPL-2.0-only
// The active policy, whichever file it was read from: its feeds and countries, and its apply when
// they have changed.
#pragma once

#include "ctl/agent/inputs.h"
#include "ctl/base/err.h"
#include "ctl/base/json.h"

struct agent;
struct reapply;

// 0 or -errno with err set; *ret is to be freed then, too.
int reapply_new(struct agent *a, struct reapply **ret, struct err *err);
void reapply_free(struct reapply *r); // NULL is allowed

// Looks which policy is active; the lock is held, shared.
void reapply_look(struct reapply *r);
// Its feeds, and whether it has places, as of the last look.
const struct inputs *reapply_inputs(const struct reapply *r);
bool reapply_has(const struct reapply *r, const char *url);
// The copy of one of its feeds has changed: applies it again with it, and tries until that
// succeeds.
void reapply_soon(struct reapply *r, const char *url);
// Follows the databases of places from now on, if the active policy or the policy file has any.
void reapply_watch(struct reapply *r);
// Adds why it does not succeed.
void reapply_report(const struct reapply *r, struct json *problems);
