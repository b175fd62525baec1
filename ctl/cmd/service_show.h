// SPDX-License-Identifier: GPL-2.0-only
// Services and backends as text and as JSON.
#pragma once

#include "ctl/base/text.h"
#include "ctl/cmd/out.h"
#include "ctl/control/pool.h"

const char *service_mode_name(uint8_t mode); // enum service_mode

// As it is for new flows: weight 0 drains, from the policy or as an override.
enum backend_state service_state(const struct lb_member *m);

// "up", "drain, override until 04:12", "drain, override, over since 04:12" (no command has ended it yet),
// "down, override", "drain, not in the policy".
void service_add_state(struct text *t, const struct lb_member *m, uint64_t wall_s);

void service_set_fingerprint(struct out *o, uint64_t fingerprint);

// Where its frames go, as a cell, and what routers have said of the way. loses: frames do not arrive, since the
// device cannot send them.
void service_cell_hop(struct out *o, const struct backend *row, bool loses,
		      const struct clock *now);

// A row for each backend that runs, under "backends"; nothing where the policy has no services.
int service_show_stats(struct out *o, const char *instance, struct err *err);

// What happened beside the packets that were sent; those that never did are left out of the text.
void service_show_counters(struct out *o, const struct service_counter *c);
