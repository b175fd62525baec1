// SPDX-License-Identifier: GPL-2.0-only
// Flows whose answers the datapath leaves to the agent (common/answer.h).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/answer.h"
#include "common/service.h"
#include "ctl/datapath/instance.h"

// Until `ms` from now. 0 or -errno, without a message; -EAGAIN: during a bypass no answer is taken.
int answers_await(const struct instance *i, const struct answer_key *key, uint64_t ms);
void answers_forget(const struct instance *i, const struct answer_key *key);

// The most that is put before a packet: Ethernet with a tag, IPv6, UDP.
#define WRAP_MOST 66

// Takes a hop from the packet, whole IPv4 or IPv6 without options, and puts the headers of the mode
// (enum service_mode) before it: they end where it begins. WRAP_MOST bytes are free there. hash: of
// the flow. Returns where the frame begins;
// NULL: the mode has no such frame.
uint8_t *wrap_packet(const struct backend *to, uint32_t mode, uint64_t hash, uint8_t *packet,
		     size_t length);
