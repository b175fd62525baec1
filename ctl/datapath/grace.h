// SPDX-License-Identifier: GPL-2.0-only
// Waits until no packet is in a program that has been taken away.
#pragma once

#include "ctl/base/err.h"

// A packet that has found a program runs in it to the end, even if the program array has another
// one by now. On return all packets are through that began before the call. 0 or -errno with err
// set.
int grace_wait(struct err *err);
