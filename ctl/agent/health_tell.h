// SPDX-License-Identifier: GPL-2.0-only
// Reports changes in the health of backends and services to the log and to hooks.
#pragma once

#include "ctl/agent/health_targets.h"
#include "ctl/base/vec.h"

struct agent;

// Names of the services none of whose checked backends passes its checks, sorted.
struct health_without {
	VEC(char *) names;
};
void health_without_free(struct health_without *w);

// After a rewrite, which decides about the rings. w: as of the last call.
void health_tell(struct agent *a, struct health_targets *targets, struct health_without *w);
// The present state of a backend counts as reported.
void health_note_told(struct health_target *t);
