// SPDX-License-Identifier: GPL-2.0-only
// Reads the samples of the datapath, which has one reader at a time.
#pragma once

#include <stdint.h>

#include "common/sample.h"
#include "ctl/datapath/instance.h"

struct samples;

typedef void samples_visit(void *ctx, const struct sampled *sample);

// Opens the ring without its old records; no packet is sampled yet. -EBUSY with err set
// (ERR_REFUSED, with the pid) when another process reads it.
int samples_open(const struct instance *i, samples_visit *visit, void *ctx, struct samples **ret,
		 struct err *err);
// From now on this share of all packets is sampled, of 2^32, for the next three seconds; to be
// called repeatedly. If the process dies, the datapath stops by itself. 0 or -errno with err set.
int samples_want(struct samples *s, uint32_t share, struct err *err);
// Visits what has arrived. The number, or -errno with err set.
int samples_take(struct samples *s, struct err *err);
// Ends the sampling.
void samples_close(struct samples *s);
