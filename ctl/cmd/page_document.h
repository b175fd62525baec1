// SPDX-License-Identifier: GPL-2.0-only
// The state of an instance, as the page shows it beside rates.
#pragma once

#include "ctl/cmd/command.h"

// Fills in the document with the documents of other commands. A part that cannot be read is an
// error in its place. 0 or -errno with err set: there is no instance.
int page_document(struct context *ctx, struct err *err);
