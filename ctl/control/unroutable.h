// SPDX-License-Identifier: GPL-2.0-only
// Why rules with `unroutable` cannot match: the loopback device does not forward, or an interface
// has devices whose routes the datapath does not know.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/control/macs.h"
#include "ctl/datapath/reach.h"
#include "ctl/policy/resolved.h"

// FAMILIES_4 and FAMILIES_6: the families in which the rule, or the whole policy, asks for routes.
uint32_t unroutable_of_rule(const struct resolved *r, size_t number);
uint32_t unroutable_of(const struct resolved *r);
// Bit: index of an interface of the policy on which a rule asks; all bits for a rule without `on`.
uint64_t unroutable_on(const struct resolved *r);
// Does the policy ask on the interface with this number in the instance? on: as above.
bool unroutable_asks(const struct reach *reach, uint64_t on, uint32_t number);
// Those of `needs` in which the loopback device of this network namespace does not forward. A
// family that the kernel does not have is not among them.
uint32_t unroutable_off(uint32_t needs);
// Which packets do not match, for a message: " of IPv4", " of IPv6" or "" (all); and the command
// that makes the device forward. `off` is not 0.
const char *unroutable_packets(uint32_t off);
const char *unroutable_mend(uint32_t off);
// Why no packet matches on the device, as a sentence; NULL: packets can match. The caller frees it.
char *unroutable_gap(enum macs_routes routes, const char *device);
