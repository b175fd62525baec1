// SPDX-License-Identifier: GPL-2.0-only
// Requests to a family of generic netlink, which is found by its name.
#pragma once

#include <stdint.h>

#include "ctl/net/netlink.h"

// Finds the number of a family. 0; -EOPNOTSUPP: this kernel does not have it; other -errno. No
// message.
int genl_family(const char *name, uint16_t *ret);

// Begins a request in buf, which is aligned to NLMSG_ALIGNTO and zero; the caller adds the
// attributes.
struct nlmsghdr *genl_put(char *buf, uint16_t family, uint8_t command, uint8_t version);

// Sends a request; the attributes of each message of the answer are handed to `read`, with ctx. 0
// or -errno.
int genl_ask(struct nlmsghdr *request, mnl_attr_cb_t read, void *ctx);
