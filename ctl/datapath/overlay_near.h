// SPDX-License-Identifier: GPL-2.0-only
// Which addresses have a prefix near them, and which lengths prefixes have: struct overlay_near in
// common/overlay.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/mapping.h"

// Maps it; near_of() is it. 0 or -errno with err set.
int near_open(const struct instance *i, struct mapping *ret, struct err *err);
struct overlay_near *near_of(const struct mapping *m);

// Makes packets look up a prefix. It is written before the entry.
void near_set(struct overlay_near *near, const struct prefix *p, uint8_t kind);
// An entry more or less.
void near_add(struct overlay_near *near, const struct prefix *p, uint8_t kind);
void near_remove(struct overlay_near *near, const struct prefix *p, uint8_t kind);
// Can there be an entry of the kind inside of p?
bool near_inside(const struct overlay_near *near, const struct prefix *p, uint8_t kind);
// Takes over the rebuilt bitmap, without clearing a bit that stays.
void near_replace(struct overlay_near *near, const struct overlay_near *fresh, uint8_t family);
