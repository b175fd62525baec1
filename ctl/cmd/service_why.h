// SPDX-License-Identifier: GPL-2.0-only
// Which rule or entry of this host drops the answers to the checks of a backend.
#pragma once

#include "ctl/base/text.h"
#include "ctl/control/explain.h"
#include "ctl/policy/resolved.h"
#include "ctl/table/lb_state.h"

struct service_why {
	const char *instance;
	struct explain explain; // opened for the first question
	bool asked, works;
};
void service_why_close(struct service_why *w);
#define CLEANUP_SERVICE_WHY CLEANUP(service_why_close)

// Adds the rule, the entry or the default; nothing if the answer passes, or if it is not known.
void service_why_add(struct text *t, struct service_why *w, const struct resolved_service *s,
		     const struct lb_member *m);
