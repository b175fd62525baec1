// SPDX-License-Identifier: GPL-2.0-only
// The error of a command that needs an attached interface.
#pragma once

#include "ctl/base/err.h"

struct instance;

// -ENOENT if no interface is attached; the error names the interface of the default route.
int need_attached(const struct instance *i, const char *verb, struct err *err);
// The same when there is no instance at all.
int not_attached(const char *instance, const char *verb, struct err *err);
