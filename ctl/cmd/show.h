// SPDX-License-Identifier: GPL-2.0-only
// Pieces of sentences that several commands print.
#pragma once

#include "ctl/base/text.h"
#include "ctl/cmd/out.h"
#include "ctl/control/book.h"

// "block from", "allow to".
const char *kind_text(uint8_t kind);
const char *kind_key(uint8_t kind);  // "block-from": for JSON
const char *kind_verb(uint8_t kind); // "block"
const char *kind_side(uint8_t kind); // "from"

// "until 04:12 (1h)", "for ever"; with the date when it is not today.
void show_until(struct text *t, uint64_t until_s, uint64_t now_s);
// "02:13", with the date when it is not today.
void show_time(struct text *t, uint64_t wall_s, uint64_t now_s);
// "eth0 eth1"; also under key "interfaces" of the open object. Number of interfaces.
size_t show_interfaces(struct text *t, const struct instance *i, struct out *o);
// Who holds it: "x.com, 'abuse 4711'".
void show_holder(struct text *t, const struct holder *h);
// What happens to overlay entries at the next boot, as a clause; key is for JSON.
const char *show_kept(bool fleeting, const char **ret_key);
// Something attached? -ENOENT with err set, which names the default route's interface, if not.
int need_attached(const struct instance *i, const char *verb, struct err *err);
// The same when there is no instance at all.
int not_attached(const char *instance, const char *verb, struct err *err);
