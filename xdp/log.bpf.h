/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "log": writes the records of rules with `log`, over the oldest ones. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/log.h"
#include "xdp/count.bpf.h"
#include "xdp/event.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WEIR_LOGS);
	__type(key, __u32);
	__type(value, struct log_record);
} logs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct log_head);
} loghead SEC(".maps");

/* Makes this CPU the only writer of the record. It may be delayed for so long that a writer of a
 * later round is there, or was: its record is lost then. */
static __always_inline bool log_claim(struct log_record *r, __u64 mark)
{
	__u64 begun = *(volatile __u64 *)&r->begun;

	if (begun >= mark || *(volatile __u64 *)&r->ended != begun)
		return false;
	if (__sync_val_compare_and_swap(&r->begun, begun, mark) != begun)
		return false;
	/* An exchange is a full barrier on each architecture; a successful comparison orders what
	 * is before it and what is after it, but not its own store. */
	__sync_lock_test_and_set(&r->ended, 0);
	return true;
}

/* Global, so that the rare path is verified once and stays out of the common one. rule: as in the
 * record. */
__noinline int log_write(struct xdp_md *ctx, __u32 reason, __u32 rule, __u32 snap)
{
	__u32 zero = 0, at;
	struct log_head *head = bpf_map_lookup_elem(&loghead, &zero);
	struct log_record *r;
	__u64 n;

	if (!head)
		return 0;
	n = __sync_fetch_and_add(&head->next, 1);
	at = n % WEIR_LOGS;
	r = bpf_map_lookup_elem(&logs, &at);
	if (!r || !log_claim(r, n + 1)) {
		tally(TALLY_LOG_LOST);
		return 0;
	}
	if (n >= WEIR_LOGS && n - WEIR_LOGS >= *(volatile __u64 *)&head->read)
		tally(TALLY_LOG_LOST);
	event_fill(ctx, &r->event, reason, rule, snap, NULL);
	__sync_lock_test_and_set(&r->ended, n + 1);
	return 0;
}
