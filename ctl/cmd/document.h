// SPDX-License-Identifier: GPL-2.0-only
// The document of a command, taken by another command.
#pragma once

#include "ctl/base/json.h"
#include "ctl/cmd/command.h"

struct document {
	const struct command *command;
	const char *options[3]; // and words
	struct json *json;      // NULL: not asked for, or none
};

// Fills in the document that `weir -j COMMAND OPTIONS` prints, without checks that take time. 0 or
// -errno with err set.
int document_ask(const struct context *ctx, struct document *d, struct err *err);
