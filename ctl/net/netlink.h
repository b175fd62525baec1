// SPDX-License-Identifier: GPL-2.0-only
// One netlink request to the kernel (libmnl), with a callback for each message of the answer.
#pragma once

#include <stdint.h>

#include <libmnl/libmnl.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"

// One message of the answer. MNL_CB_OK, or MNL_CB_ERROR with errno set.
typedef int netlink_visit(const struct nlmsghdr *nlh, void *ctx);

// Sends `request` (its nlmsg_seq, and NLM_F_ACK unless it is a dump, are filled in) on a fresh
// socket of `bus` (NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_GENERIC) in the current network
// namespace. The answer is received whole before visit sees its first message, so that a dump which
// the kernel marks as interrupted (NLM_F_DUMP_INTR) can be repeated without the visitor noticing.
// 0 or -errno; -EINTR: it was interrupted every time. The caller writes the sentence.
int netlink_request(int bus, struct nlmsghdr *request, netlink_visit *visit, void *ctx);

// The address of `family` (AF_INET, AF_INET6); family 0 if the length does not fit.
struct addr attribute_addr(int family, const struct nlattr *attr);
// RTA_VIA: a next hop of another family than the route's (RFC 5549).
struct addr attribute_via(const struct nlattr *attr);

// Finds the number of a family. 0; -EOPNOTSUPP: this kernel does not have it; other -errno. No
// message.
int genl_family(const char *name, uint16_t *ret);

// Begins a request in buf, which is aligned to NLMSG_ALIGNTO and zero; the caller adds the
// attributes.
struct nlmsghdr *genl_put(char *buf, uint16_t family, uint8_t command, uint8_t version);

// Sends a request; the attributes of each message of the answer are handed to `read`, with ctx. 0
// or -errno.
int genl_ask(struct nlmsghdr *request, mnl_attr_cb_t read, void *ctx);
