// SPDX-License-Identifier: GPL-2.0-only
// Enters flows into the map `answers`.
#include "ctl/datapath/answers.h"

#include <errno.h>

#include <bpf/bpf.h>

int answers_await(const struct instance *i, const struct answer_key *key, uint64_t ms)
{
	struct err err = {0};
	struct clock clock;
	uint64_t until;
	int code = instance_clock(i, &clock, &err);

	if (code)
		return code;
	if (__atomic_load_n(&i->knobs->bypass, __ATOMIC_RELAXED) > clock.jiffies)
		return -EAGAIN;
	until = clock_after_ms(&clock, ms);
	return bpf_map_update_elem(i->answers, key, &until, BPF_ANY) ? -errno : 0;
}

void answers_forget(const struct instance *i, const struct answer_key *key)
{
	bpf_map_delete_elem(i->answers, key);
}
