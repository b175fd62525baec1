// SPDX-License-Identifier: GPL-2.0-only
// Parts of messages that several commands print.
#pragma once

#include "ctl/base/text.h"
#include "ctl/cmd/out.h"
#include "ctl/control/store.h"
#include "ctl/datapath/device.h"

// "block from", "allow to".
const char *kind_text(uint8_t kind);
const char *kind_key(uint8_t kind);  // "block-from": for JSON
const char *kind_verb(uint8_t kind); // "block"
const char *kind_side(uint8_t kind); // "from"

// "until 04:12 (1h)", "for ever"; with the date when it is not today.
void show_until(struct text *t, uint64_t until_s, uint64_t now_s);
// "02:13", with the date when it is not today.
void show_time(struct text *t, uint64_t wall_s, uint64_t now_s);
// Where Weir is now, as the kernel says: "eth0 eth1", "no interface"; also under key "interfaces" of the open
// object, and under "open" those of the instance that it is not on. With these, or with none where it is,
// ERR_REFUSED, which names them and the way; -errno where it cannot be told.
int show_interfaces(struct text *t, const struct instance *i, struct out *o, struct err *err);
// The same without the names, of the interface with this number or (0) of all; "open" is set, o may be NULL.
int show_open(const struct instance *i, uint32_t number, struct out *o, struct err *err);
int show_open_in(const char *instance, struct out *o, struct err *err);
// "network namespace blue, as eth0": where a device is that has been moved.
void show_moved(struct text *t, const struct device *d);
// Who holds it: "x.com, 'abuse 4711'".
void show_owner(struct text *t, const struct owner *h);
// What happens to overlay entries at the next boot, as a clause; key is for JSON.
const char *show_kept(bool fleeting, const char **ret_key);
// Something attached? -ENOENT with err set, which names the default route's interface, if not.
int need_attached(const struct instance *i, const char *verb, struct err *err);
// The same when there is no instance at all.
int not_attached(const char *instance, const char *verb, struct err *err);
