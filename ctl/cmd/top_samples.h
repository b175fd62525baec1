// SPDX-License-Identifier: GPL-2.0-only
// Samples for the tables and views of weir top: from the agent, which reads them for all
// commands, or where none runs from the ring itself.
#pragma once

#include "ctl/cmd/top_keys.h"
#include "ctl/control/sampled_reading.h"

struct top_samples;

// 0 or -errno with err set: another process reads the samples, or the agent does not have a key.
int top_samples_open(const struct context *ctx, const struct top_keys *keys,
		     struct top_samples **ret, struct err *err);
void top_samples_close(struct top_samples *s); // NULL is allowed
// A descriptor that becomes readable when the agent has sent something; -1: top_samples_take() is
// to be called every SAMPLING_POLL_NS.
int top_samples_fd(const struct top_samples *s);
// Takes what has arrived. 0 or -errno with err set.
int top_samples_take(struct top_samples *s, struct err *err);
// The present reading; the agent sends one each second. False: none so far.
bool top_samples_read(const struct top_samples *s, struct sampled_reading *ret);
// Readings that the agent has sent; of the ring: polls.
uint64_t top_samples_number(const struct top_samples *s);
