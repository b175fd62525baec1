// SPDX-License-Identifier: GPL-2.0-only
// One netlink request to the kernel (libmnl), with a callback for each message of the answer.
#pragma once

#include <libmnl/libmnl.h>
#include <stdint.h>

#include "ctl/base/err.h"

// One message of the answer. MNL_CB_OK, or MNL_CB_ERROR with errno set.
typedef int netlink_visit(const struct nlmsghdr *nlh, void *ctx);

// Sends `request` (its nlmsg_seq, and NLM_F_ACK unless it is a dump, are filled in) on a fresh
// socket of `bus` (NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_GENERIC) in the current network
// namespace. The answer is received whole before visit sees its first message, so that a dump which
// the kernel marks as interrupted (NLM_F_DUMP_INTR) can be repeated without the visitor noticing.
// 0 or -errno; -EINTR: it was interrupted every time. The caller writes the sentence.
int netlink_request(int bus, struct nlmsghdr *request, netlink_visit *visit, void *ctx);
