// SPDX-License-Identifier: GPL-2.0-only
// Flows whose answers the datapath leaves to the agent (common/answer.h).
#pragma once

#include "common/answer.h"
#include "ctl/datapath/instance.h"

// Until `ms` from now. 0 or -errno, without a message; -EAGAIN: during a bypass no answer is taken.
int answers_await(const struct instance *i, const struct answer_key *key, uint64_t ms);
void answers_forget(const struct instance *i, const struct answer_key *key);
