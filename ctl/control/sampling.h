// SPDX-License-Identifier: GPL-2.0-only
// Reads the samples of an instance at about SAMPLED_RATE per second.
#pragma once

#include "ctl/control/sampled_reading.h"
#include "ctl/datapath/instance.h"

#define SAMPLING_POLL_NS 100000000ull

struct sampling;

// -EBUSY with err set (ERR_REFUSED): another process reads them. i stays the caller's.
int sampling_open(const struct instance *i, struct sampling **ret, struct err *err);
void sampling_close(struct sampling *s); // NULL is allowed
// Takes what has arrived, and sets the share for the packets that arrive now; to be called every
// SAMPLING_POLL_NS. 0 or -errno with err set.
int sampling_poll(struct sampling *s, struct err *err);
// Sources get their places from `place`.
void sampling_place(struct sampling *s, sampled_place *place, void *ctx);
// The rows by these keys, of the last SAMPLED_WINDOW_NS at most.
void sampling_read(const struct sampling *s, const bool by[SAMPLED_BY_COUNT],
		   struct sampled_reading *ret);
