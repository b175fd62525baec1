// SPDX-License-Identifier: GPL-2.0-only
// `weir help`, made from the command and option tables.
#pragma once

#include "ctl/cmd/command.h"

void help_overview(const struct args_option *globals);
void help_command(const struct command *c, const struct args_option *globals);
