// SPDX-License-Identifier: GPL-2.0-only
// The balancer's part of weir status.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/pool.h"

// A pool without services (live NULL) if the policy has no service. 0 or -errno with err set.
int status_services_open(struct context *ctx, struct pool *ret, struct err *err);

// A line for each service, and the overrides.
void status_services_show(struct context *ctx, const struct pool *f);

// Called for each thing that is wrong.
typedef __attribute__((format(printf, 2, 3))) void status_alarm(void *status, const char *fmt, ...);
void status_services_alarms(struct context *ctx, const struct pool *f, status_alarm *alarm,
			    void *status);
