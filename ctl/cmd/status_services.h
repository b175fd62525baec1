// SPDX-License-Identifier: GPL-2.0-only
// The balancer's part of weir status.
#pragma once

#include "ctl/cmd/alerts.h"
#include "ctl/cmd/command.h"
#include "ctl/control/nat_reading.h"
#include "ctl/control/pool.h"

// Opens the pool; if the policy has no services, live is NULL. The caller frees ret_nat. Returns 0,
// or -errno with err set.
int status_services_open(struct context *ctx, const struct instance *i, struct pool *ret,
			 struct nat_reading *ret_nat, struct err *err);

// Prints a line for each service and override, and for the connections of nat and fullnat.
void status_services_show(struct context *ctx, const struct pool *f, const struct nat_reading *nat);

void status_services_alarms(struct context *ctx, const struct pool *f,
			    const struct nat_reading *nat, alarm_adder *alarm, void *status);
