// SPDX-License-Identifier: GPL-2.0-only
// Attaches the decapsulating program of backends, reads it and detaches it.
//
// It belongs to no instance: its maps belong to the program that the interface holds, and are freed
// with it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/decap.h"
#include "ctl/base/addr.h"
#include "ctl/datapath/decap_maps.h"
#include "ctl/datapath/hook.h"

struct decap_result {
	enum iface_mode mode;
	bool shared;              // under libxdp's dispatcher
	bool attached;            // false: it was attached already, and only `end` may have changed
	char notice[HOOK_NOTICE]; // why not native, why not shared; "": no notice
};

// Attaches the program, or gives the attached one the new `end`: no packet is lost in between. AUTO
// takes native mode, else generic. An interface that carries another program is refused, unless
// libxdp can share it. unfit: as of hook_attach. 0, or -errno with err set and the interface as
// before.
int decap_attach(const struct hook_target *target, const struct decap_end *end,
		 enum attach_mode mode, const struct err *unfit, struct decap_result *ret,
		 struct err *err);

// Detaches our program, and no other. *ret_was_there: it was attached.
int decap_detach(uint32_t ifindex, bool *ret_was_there, struct err *err);

// 0 (also if the program is not attached) or -errno with err set. The caller frees the lists:
// decap_state_cleanup.
int decap_query(uint32_t ifindex, struct decap_state *ret, struct err *err);

// Addresses and prefixes of this host that were added and removed since the last update of the
// program; own is sorted.
struct decap_change {
	struct prefix *added, *gone;
	size_t n_added, n_gone;
};
struct decap_change decap_changed(const struct decap_state *state, const struct prefix *own,
				  size_t n);
void decap_change_cleanup(struct decap_change *change);
#define CLEANUP_DECAP_CHANGE CLEANUP(decap_change_cleanup)

const char *decap_reason_name(enum decap_reason reason);
const char *decap_reason_text(enum decap_reason reason);
const char *decap_reason_effect(enum decap_reason reason); // "strip", "pass", "drop"

// The program, not attached; for tests.
struct decap;
int decap_load(const struct decap_end *end, struct decap **ret, struct err *err);
int decap_program(const struct decap *d); // owned by d
int decap_counts(const struct decap *d, struct decap_counter ret[DECAP_REASON_COUNT],
		 struct err *err);
void decap_free(struct decap *d);
void decap_cleanup(struct decap **d);
#define CLEANUP_DECAP CLEANUP(decap_cleanup)
