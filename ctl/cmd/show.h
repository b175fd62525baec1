// SPDX-License-Identifier: GPL-2.0-only
// Parts of messages that several commands print.
#pragma once

#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/control/devices.h"
#include "ctl/control/entries/store.h"
#include "ctl/datapath/kinds.h"

// "until 04:12 (1h)", "permanent"; with the date if it is not today.
void show_until(struct text *t, uint64_t until_s, uint64_t now_s);
// How long it is until then, in seconds: 0 if that has passed. The end of an entry is rounded up,
// so the clock is, too.
uint64_t show_left_s(const struct clock *c, uint64_t until_s);
// "02:13", with the date if it is not today.
void show_time(struct text *t, uint64_t wall_s, uint64_t now_s);
// Adds the interfaces that run Weir now, asked of the kernel: "eth0 eth1", "no interface"; also as
// array "interfaces" of the open object, and as "open" the interfaces of the instance that do not
// run it. If there are such, or if none runs it, ERR_REFUSED with a hint; -errno if the kernel
// cannot be asked.
int show_interfaces(struct text *t, const struct instance *i, struct out *o, struct err *err);
// The same of what has been read.
int show_devices(struct text *t, const struct devices *all, struct out *o, struct err *err);
// The same without names, for the interface with this number, or all with 0; o may be NULL, else
// "open" is set.
int show_open(const struct instance *i, uint32_t number, struct out *o, struct err *err);
int show_open_in(const char *instance, struct out *o, struct err *err);
// "network namespace blue, as eth0": where a device was moved to.
void show_moved(struct text *t, const struct device *d);
// The author of a change made now: the agent, or the login (session_describe).
void show_author(const struct context *ctx, char *buf, size_t size);
// The owner of an entry: "x.com, 'abuse 4711'".
void show_owner(struct text *t, const struct owner *h);
// Warns about the part of a damaged file that is not used; text "": no damage.
void show_damage(const struct err *damaged);
// Whether entries of the instance are saved: "saved", "saved, restored at boot", "not saved"; key
// is for JSON.
const char *show_kept(const char *instance, bool fleeting, const char **ret_key);
