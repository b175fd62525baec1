// SPDX-License-Identifier: GPL-2.0-only
// Addresses in netlink attributes.
#pragma once

#include <libmnl/libmnl.h>

#include "ctl/base/addr.h"

// The address of `family` (AF_INET, AF_INET6); family 0 if the length does not fit.
struct addr attribute_addr(int family, const struct nlattr *attr);
// RTA_VIA: a next hop of another family than the route's (RFC 5549).
struct addr attribute_via(const struct nlattr *attr);
