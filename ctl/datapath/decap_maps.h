// SPDX-License-Identifier: GPL-2.0-only
// The settings and counters of the decapsulating program, through descriptors of its maps.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/abi.h"
#include "common/decap.h"
#include "ctl/base/addr.h"
#include "ctl/base/err.h"

// The tunnels that end here, and their allowed contents.
struct decap_end {
	uint16_t port;             // of GUE, host order
	bool forward;              // inner packets may be for others than this host
	const struct prefix *here; // addresses of this host, and prefixes that are local as a whole
	const struct prefix *from; // outer sources that tunnels are accepted from
	size_t n_here, n_from;
};

struct decap_state {
	bool there;
	bool readable; // the program belongs to this version: the rest is set
	enum iface_mode mode;
	bool shared;
	uint32_t prog_id;
	uint16_t port;
	bool forward;
	struct prefix *here, *from; // sorted
	size_t n_here, n_from;
	struct decap_counter counters[DECAP_REASON_COUNT]; // sums over all CPUs
};
void decap_state_cleanup(struct decap_state *state);
#define CLEANUP_DECAP_STATE CLEANUP(decap_state_cleanup)

struct decap_maps {
	// -1: not open; nets: or the program is of another version.
	int settings, here, nets, counts;
};

#define DECAP_NO_MAPS                                                \
	{                                                            \
		.settings = -1, .here = -1, .nets = -1, .counts = -1 \
	}

// The maps of a loaded program. false: it is not our program.
bool decap_maps_of(uint32_t prog_id, struct decap_maps *ret);
void decap_maps_close(struct decap_maps *m);
#define CLEANUP_DECAP_MAPS CLEANUP(decap_maps_close)

// Adds new addresses and prefixes before it removes old ones. 0 or -errno with err set.
int decap_maps_tell(const struct decap_maps *m, const struct decap_end *end, struct err *err);
int decap_maps_settings(const struct decap_maps *m, struct decap_settings *ret, struct err *err);
// Reads the settings of the program into the sorted lists of ret, which the caller frees.
int decap_maps_told(const struct decap_maps *m, struct decap_state *ret, struct err *err);
// Summed over all CPUs.
int decap_maps_counts(const struct decap_maps *m, struct decap_counter ret[DECAP_REASON_COUNT],
		      struct err *err);
