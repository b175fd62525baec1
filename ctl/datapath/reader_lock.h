// SPDX-License-Identifier: GPL-2.0-only
// The lock of the one process that reads a ring buffer of an instance.
#pragma once

#include "ctl/base/err.h"
#include "ctl/datapath/instance.h"

// name: of the file in /run/weir/INSTANCE/; done: what the other process does: "watched". -EBUSY
// with err set (ERR_REFUSED, with the pid) when another process has it. 0 or -errno with err set.
int reader_lock(const struct instance *i, const char *name, const char *done, int *ret_fd,
		struct err *err);
