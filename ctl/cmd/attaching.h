// SPDX-License-Identifier: GPL-2.0-only
// Attaching from the command line: `weir attach IFACE…` and `-i IFACE`.
#pragma once

#include "ctl/base/vec.h"
#include "ctl/cmd/command.h"
#include "ctl/control/bringup.h"

struct attaching {
	VEC(uint32_t) fresh; // numbers of interfaces that were not attached before
	bool created;        // the instance was made for this command
};

// "auto", "native", "generic"; NULL is auto.
int attaching_mode(const char *text, enum attach_mode *ret, struct err *err);
// Attaches one interface, prints its line and notices. The bringup is open. force: attach even if
// that cuts off the operator's login.
int attaching_one(struct context *ctx, struct bringup *b, const char *ifname, enum attach_mode mode,
		  bool force, struct attaching *a, struct err *err);
// Attaches all interfaces of -i, or none if one fails. Takes --mode and --force from args.
int attaching_do(struct context *ctx, const struct args *args, struct attaching *ret,
		 struct err *err);
// Detaches what attaching_do attached, and removes the instance if it was made for it. Failures are
// logged.
void attaching_undo(struct context *ctx, const struct attaching *a);
// The same with the bringup that is still open.
void attaching_take_back(struct bringup *b, const struct attaching *a);
void attaching_free(struct attaching *a);
