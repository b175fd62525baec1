// SPDX-License-Identifier: GPL-2.0-only
// `weir block --url`: reads a list from a feed, which the agent then follows.
#pragma once

#include "ctl/cmd/line.h"

#define OPTION_URL                                                                              \
	{.name = "url", .arg = "URL", .help = "read a list from URL; needs --sync"},            \
		{.name = "every",                                                               \
		 .arg = "TIME",                                                                 \
		 .help = "how often weir run reads it again (1h)"},                             \
	{                                                                                       \
		.name = "ca", .arg = "FILE", .help = "trust the certificates in FILE for --url" \
	}

// Fetches the list of --url and adds its items. Without --url nothing happens. 0 or -errno with err
// set.
int block_url_read(const struct context *ctx, struct batch_line *line, struct err *err);
// Called after the entries are committed: the list follows the feed from now on. Warns if that
// cannot be noted.
void block_url_keep(const struct context *ctx, const struct batch_line *line);
void block_url_free(struct block_url *u);
