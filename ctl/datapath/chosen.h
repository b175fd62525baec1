// SPDX-License-Identifier: GPL-2.0-only
// The share of packets that the datapath looks at: the larger one of the samples and the captures.
#pragma once

#include "common/config.h"

// To be called after each change of a share. Two readers that call it at the same time may leave
// the smaller one, until one of them renews its lease.
static inline void chosen_renew(struct knobs *knobs)
{
	__u32 sample = __atomic_load_n(&knobs->sample, __ATOMIC_RELAXED);
	__u32 capture = __atomic_load_n(&knobs->capture, __ATOMIC_RELAXED);

	__atomic_store_n(&knobs->chosen, sample > capture ? sample : capture, __ATOMIC_RELAXED);
}
