// SPDX-License-Identifier: GPL-2.0-only
// The warnings of an apply about services, backends and interfaces.
#pragma once

#include "ctl/control/apply_result.h"

// Services of the active policy that the new one does not have.
void apply_note_ended(const struct instance *i, const struct candidate *c,
		      struct apply_result *ret);
// Connections whose VIP and port the policy no longer has.
void apply_note_freed(size_t freed, struct apply_result *ret);
// Sources that the policy no longer has and that connections use.
void apply_note_sources(const struct instance *i, struct apply_result *ret);
// Overrides that stay, which an operator may have forgotten. b NULL: no services.
void apply_note_overrides(const struct lb_state *b, struct apply_result *ret);
// Interfaces in generic mode that merge packets (GRO): merged packets are too big for any backend.
void apply_note_merged(const struct instance *i, const struct candidate *c,
		       struct apply_result *ret);
// Interfaces that the policy applies to and whose frames lose their VLAN tags before XDP: what the
// policy loses by it.
void apply_note_tags(const struct instance *i, const struct candidate *c, struct apply_result *ret);
// Interfaces on which the policy asks for routes that the datapath does not know.
void apply_note_routes(const struct instance *i, const struct candidate *c,
		       struct apply_result *ret);
// An interface that was attached and receives packets that the program does not see.
void apply_note_unseen(const char *ifname, struct apply_result *ret);
// Attached interfaces that the policy does not name: only overlay entries apply there.
void apply_note_entries_only(const struct instance *i, struct apply_result *ret);
