// SPDX-License-Identifier: GPL-2.0-only
// Words of a line of iptables-save: what ends a match, and which matches the translator gets wrong.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"

// -m, -j, -g, -s, -d, -p, -i, -o, -f.
bool save_begins_next(const char *word);
// The index after the word; after both words of an option with a text of its own ("--comment").
size_t save_next(const char *const *words, size_t n, size_t i);
// Refuses forms that iptables-save never prints and that hide conditions or the target: --jump,
// -jACCEPT, --dport=22, and conditions after the target. 0, or -EINVAL with err set.
int save_check(const char *const *words, size_t n, struct err *err);
// Is every packet of the protocol in the match, with these n options?
bool save_is_void(const char *const *options, size_t n);
// Does iptables-restore-translate keep the meaning of these n options of the match?
bool save_is_exact(const char *match, const char *const *options, size_t n);
