// SPDX-License-Identifier: GPL-2.0-only
// Prints the connections of nat and fullnat, and the blocks that they are in.
#pragma once

#include "ctl/cmd/out.h"
#include "ctl/control/nat_reading.h"

// Sets "connections" and "connections_opening" of the open object.
void nat_set_sum(struct out *o, struct nat_sum sum);
// "1,204 connections, 12 opening".
typedef char nat_sum_text[96];
const char *nat_format_sum(struct nat_sum sum, nat_sum_text buf);

// Sets the keys "nat_…" of the instance and prints a line; `table`: a row for each block too. Prints
// nothing without a block.
void nat_show(struct out *o, const struct nat_reading *r, bool table);
// Prints a line for each former source.
void nat_show_former(struct out *o, const struct nat_reading *r);
