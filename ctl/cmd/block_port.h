// SPDX-License-Identifier: GPL-2.0-only
// Reads a port on the command line of block and unblock: what it blocks is a quick rule.
#pragma once

#include "ctl/base/text.h"
#include "ctl/cmd/args.h"

// The words are "[WHAT] [proto NAME] port PORTS", "ADDRESS:PORT", "PORT/PROTOCOL" or the name of a
// service: the rule goes to ret, "drop proto tcp from 192.0.2.7 to any port 22". to: WHAT is the
// destination. false: no port is meant, and ret is unchanged.
bool block_port(const struct args *args, bool to, struct text *ret);
// Refuses words that name a port in a form that block_port does not read, with the form that
// exists. 0: there is no such word.
int block_port_refuse(const struct args *args, const char *verb, struct err *err);
