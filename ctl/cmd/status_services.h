// SPDX-License-Identifier: GPL-2.0-only
// The balancer's part of weir status.
#pragma once

#include "ctl/cmd/alerts.h"
#include "ctl/cmd/command.h"
#include "ctl/control/pool.h"

// Opens the pool; if the policy has no services, live is NULL. Returns 0, or -errno with err set.
int status_services_open(struct context *ctx, struct pool *ret, struct err *err);

// Prints a line for each service and override.
void status_services_show(struct context *ctx, const struct pool *f);

void status_services_alarms(struct context *ctx, const struct pool *f, alarm_adder *alarm,
			    void *status);
