// SPDX-License-Identifier: GPL-2.0-only
// The refused calls of `weir watch --out`.
#pragma once

#include "ctl/cmd/out.h"
#include "ctl/datapath/events.h"

// Prints one refused call as a line, or as a document.
void watch_out_show(struct out *o, const struct instance *i, const struct event_out *event);
