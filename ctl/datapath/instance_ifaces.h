// SPDX-License-Identifier: GPL-2.0-only
// The interfaces of an instance, by number and by name, with the present names of their devices.
#pragma once

#include "ctl/datapath/instance.h"

// An element of the interface table, 1 … WEIR_IFACES - 1, with the name and ifindex that the device
// has now. 0 or -errno with err set.
int instance_iface(const struct instance *i, uint32_t number, struct iface *ret, struct err *err);
// The number of the interface with this name in any state but IFACE_FREE; if there are several, of
// the one whose device is here. 0: no such interface. 0 or -errno with err set.
int instance_find_iface(const struct instance *i, const char *name, uint32_t *ret, struct err *err);
