// SPDX-License-Identifier: GPL-2.0-only
// MAC addresses that represent all others: one of each class that the rules of a policy treat
// alike.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/vec.h"
#include "ctl/policy/resolved.h"

#define MAC_CLASSES_MAX 64

struct mac_classes {
	VEC(uint64_t) of; // at least one
	bool cut;         // there are more classes
};
void mac_classes_free(struct mac_classes *m);
#define CLEANUP_MAC_CLASSES CLEANUP(mac_classes_free)

// *ret is empty before.
void mac_classes_find(const struct resolved *r, struct mac_classes *ret);
