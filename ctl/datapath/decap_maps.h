// SPDX-License-Identifier: GPL-2.0-only
// The settings and counters of the decapsulating program, through descriptors of its maps.
#pragma once

#include "ctl/datapath/decap.h"

struct decap_maps {
	int settings, here, nets,
		counts; // -1: not open; nets: also where the program is of another version
};

#define DECAP_NO_MAPS                                                \
	{                                                            \
		.settings = -1, .here = -1, .nets = -1, .counts = -1 \
	}

// The maps of a program that is loaded. false: they are not those of our program.
bool decap_maps_of(uint32_t prog_id, struct decap_maps *ret);
void decap_maps_close(struct decap_maps *m);
#define CLEANUP_DECAP_MAPS CLEANUP(decap_maps_close)

// New addresses and prefixes come before old ones go. 0 or -errno with err set.
int decap_maps_tell(const struct decap_maps *m, const struct decap_end *end, struct err *err);
int decap_maps_settings(const struct decap_maps *m, struct decap_settings *ret, struct err *err);
// What the program was told, in ret's lists, in order; they are the caller's to free.
int decap_maps_told(const struct decap_maps *m, struct decap_state *ret, struct err *err);
// Summed over all CPUs.
int decap_maps_counts(const struct decap_maps *m, struct decap_counter ret[DECAP_ROW_COUNT],
		      struct err *err);
