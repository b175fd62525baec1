// SPDX-License-Identifier: GPL-2.0-only
// A policy with services in nat and fullnat in a rig, and the table of connections that control
// prepares for it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "common/nat.h"
#include "common/service.h"
#include "ctl/datapath/nat_maps.h"
#include "tests/datapath/balance_rig.h"
#include "tests/datapath/rig.h"

// The tables are mapped: packets find what the test writes.
struct nat_rig {
	struct rig *rig;
	struct balance_rig *policy;
	struct nat_maps *maps;
	const struct nat_tables *tables;
	struct nat_table *nat;
	struct nat_use *use; // by number of an end
	struct mapping uses;
};

// former: its services have left nat and fullnat for dr. All backends are on the link of the rig,
// and no packet gets a reset. Exits with status 2 if the policy is refused.
struct nat_rig *nat_rig_new(const char *policy, bool former);
void nat_rig_free(struct nat_rig *r);

// The first backend of a service, by its number in the policy, as the datapath sees it.
struct backend *nat_rig_backend(const struct nat_rig *r, uint32_t service);
// The first of the blocks that take new connections.
uint32_t nat_rig_block(const struct nat_rig *r, uint8_t family, bool fullnat);

// One frame through all programs: the verdict. *ret_len: capacity before, length after. Several
// threads may call it.
uint32_t nat_rig_send(const struct nat_rig *r, const uint8_t *frame, size_t len, uint8_t *out,
		      size_t *ret_len);
// Packets of each reason so far.
void nat_rig_counts(const struct nat_rig *r, uint64_t ret[WEIR_REASON_COUNT]);
// The word and the key of a place: block × NAT_PLACES + place.
uint64_t *nat_rig_word(const struct nat_rig *r, uint8_t family, uint64_t place);
struct nat_key nat_rig_key(const struct nat_rig *r, uint8_t family, uint64_t place);
void nat_rig_set_key(const struct nat_rig *r, uint8_t family, uint64_t place,
		     const struct nat_key *key);
