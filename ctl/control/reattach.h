// SPDX-License-Identifier: GPL-2.0-only
// Devices that come back: those that should run Weir's program and do not, since they are new.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/datapath/attach.h"
#include "ctl/datapath/instance.h"
#include "ctl/net/link.h"

struct reattach_device {
	char name[16];
	bool returned;       // else it is new, and the policy names it
	uint8_t mode;        // enum attach_mode
	uint32_t generation; // as for bringup_attach
};
struct reattach_list {
	struct reattach_device *at;
	size_t n, cap;
};

// Among all links of this network namespace: those with the name of an attached device that no
// longer exists, and those that is_new() knows as new and that the active policy names. A device
// that was detached, or whose program was removed, is not among them: a person may have wanted
// that. The caller frees ret->at. 0 or -errno with err set.
int reattach_find(const struct instance *i, const struct link *links, size_t n,
		  bool (*is_new)(void *ctx, uint32_t ifindex), void *ctx, struct reattach_list *ret,
		  struct err *err);

// Attaches one, only to a running instance. 0 or -errno with err set.
int reattach(const char *instance, const char *command, const struct reattach_device *device,
	     struct attach_result *ret, struct err *err);
