// SPDX-License-Identifier: GPL-2.0-only
// `weir help`, made from the tables of commands and options.
#pragma once

#include "ctl/cmd/command.h"

void help_overview(const struct args_option *globals);
void help_command(const struct command *c, const struct args_option *globals);
// The same as JSON. c NULL: the overview.
void help_document(struct out *o, const struct command *c, const struct args_option *globals);
