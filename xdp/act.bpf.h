/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage "act": tests the conditions of matching rules, counts them, and executes their modifiers
 * and action. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "xdp/connections.bpf.h"
#include "xdp/established.bpf.h"
#include "xdp/limit.bpf.h"
#include "xdp/log.bpf.h"
#include "xdp/mac.bpf.h"
#include "xdp/pairs.bpf.h"
#include "xdp/reply.bpf.h"
#include "xdp/sample.bpf.h"
#include "xdp/sets.bpf.h"
#include "xdp/test.bpf.h"
#include "xdp/unroutable.bpf.h"

/* Kept over every apply: indexes follow the identities of rules. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_RULE_COUNTERS);
	__type(key, __u32);
	__type(value, struct counter);
} rulecounters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, WEIR_REDIRECTS);
	__type(key, __u32);
	__type(value, __u32);
} devices SEC(".maps");

/* jiffies64 of each logging rule's last record; outlives the policy as `meters` do. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WEIR_RATES);
	__type(key, __u32);
	__type(value, __u64);
} logpace SEC(".maps");

/* State of the random numbers of each CPU: xorshift64 (Marsaglia 2003) instead of a helper call. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} randomness SEC(".maps");

static __always_inline __u32 random32(void)
{
	__u32 zero = 0;
	__u64 *state = bpf_map_lookup_elem(&randomness, &zero);
	__u64 x;

	if (!state)
		return 0;
	x = *state ? *state : ((__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1);
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x >> 32;
}

/* Returns the counter. */
static __always_inline const struct counter *rule_count(const struct policy_rule *rule, __u32 bytes)
{
	__u32 index = rule->counter;
	struct counter *counter = bpf_map_lookup_elem(&rulecounters, &index);

	counter_add(counter, bytes);
	return counter;
}

static __always_inline bool length_holds(struct xdp_md *ctx, const struct packet *pkt,
					 const struct policy_rule *rule)
{
	__u64 length = rule->flags & RULE_FRAME ? bpf_xdp_get_buff_len(ctx) : pkt->length;

	return length >= rule->length_first && length <= rule->length_last;
}

static __always_inline bool length_ttl_dscp(struct xdp_md *ctx, const struct packet *pkt,
					    const struct policy_rule *rule)
{
	if (rule->flags & RULE_LENGTH && !length_holds(ctx, pkt, rule))
		return false;
	if (rule->flags & RULE_TTL &&
	    (!pkt->family || pkt->ttl < rule->ttl_first || pkt->ttl > rule->ttl_last))
		return false;
	return !(rule->flags & RULE_DSCP) || (pkt->family && rule->dscp >> (pkt->dscp & 63) & 1);
}

static __always_inline bool in_sets(struct packet *pkt, const struct policy_rule *rule)
{
	if (rule->flags & RULE_FROM_SET && !set_contains(pkt, rule->from_set, true))
		return false;
	return !(rule->flags & RULE_TO_SET) || set_contains(pkt, rule->to_set, false);
}

/* Is a packet that connection tracking could know unknown to it? The marker keeps the word out of
 * policies that do not have it. */
static __always_inline bool untracked_holds(struct xdp_md *ctx, struct packet *pkt,
					    const struct policy_rule *rule)
{
	if (!marker_is(MARK_UNTRACKED, 1) || !(rule->flags & RULE_UNTRACKED))
		return true;
	return pkt->has_l4 && !established(ctx, pkt);
}

/* Would this host answer the source by another device, or not at all? */
static __always_inline bool route_of_source_holds(struct xdp_md *ctx, struct packet *pkt,
						  const struct policy_rule *rule)
{
	if (!marker_is(MARK_UNROUTABLE, 1) || !(rule->flags & RULE_UNROUTABLE))
		return true;
	return unroutable(ctx, pkt);
}

/* Does the source have so many connections to this host? */
static __always_inline bool has_connections(struct packet *pkt, const struct policy_rule *rule,
					    __u32 index)
{
	if (!marker_is(MARK_CONNECTIONS, 1) || !(rule->flags & RULE_CONNECTIONS))
		return true;
	return connections_hold(pkt, index);
}

/* The conditions of a real packet; the limit last, because it charges. */
static __always_inline bool conditions_hold(struct xdp_md *ctx, struct packet *pkt,
					    const struct policy_rule *rule, __u32 index)
{
	if (!in_sets(pkt, rule))
		return false;
	if (rule->flags & RULE_ESTABLISHED && !established(ctx, pkt))
		return false;
	if (!untracked_holds(ctx, pkt, rule) || !route_of_source_holds(ctx, pkt, rule))
		return false;
	if (rule->flags & RULE_PROBABILITY && random32() >= rule->probability)
		return false;
	if (!has_connections(pkt, rule, index))
		return false;
	return !(rule->flags & RULE_LIMIT) || limit_holds(ctx, index, pkt->l3_offset, pkt->family);
}

/* Later fragments have no ports by which they could be tracked. */
static __always_inline bool tracking_supposed(const struct policy_test *test,
					      const struct packet *pkt,
					      const struct policy_rule *rule)
{
	if (rule->flags & RULE_ESTABLISHED)
		return test->established && pkt->has_l4;
	return !(rule->flags & RULE_UNTRACKED) || (!test->established && pkt->has_l4);
}

static __always_inline bool route_supposed(const struct policy_test *test,
					   const struct policy_rule *rule)
{
	return !marker_is(MARK_UNROUTABLE, 1) || !(rule->flags & RULE_UNROUTABLE) ||
	       test->unroutable;
}

/* For a test packet the test decides: sets are empty, no limit is exceeded, no chance is taken. */
static __always_inline bool conditions_supposed(const struct policy_test *test,
						const struct packet *pkt,
						const struct policy_rule *rule)
{
	if (rule->flags & (RULE_FROM_SET | RULE_TO_SET))
		return false;
	if (marker_is(MARK_ESTABLISHED, 1) && !tracking_supposed(test, pkt, rule))
		return false;
	if (!route_supposed(test, rule))
		return false;
	if (rule->flags & RULE_PROBABILITY && !test->over)
		return false;
	return !(rule->flags & (RULE_LIMIT | RULE_CONNECTIONS)) ||
	       !test->over == !!(rule->flags & RULE_UNDER);
}

/* For a test packet that represents many: sets and connections as they are, the route to its
 * source as the test has it, but conditions that change from packet to packet do not exclude it. */
static __always_inline bool conditions_calm(const struct policy_test *test, struct xdp_md *ctx,
					    struct packet *pkt, const struct policy_rule *rule)
{
	if (!in_sets(pkt, rule) || rule->flags & RULE_PROBABILITY)
		return false;
	if (rule->flags & RULE_ESTABLISHED && !established(ctx, pkt))
		return false;
	if (!untracked_holds(ctx, pkt, rule) || !route_supposed(test, rule))
		return false;
	return !(rule->flags & (RULE_LIMIT | RULE_CONNECTIONS)) || rule->flags & RULE_UNDER;
}

/* The source of the frame, without a branch for policies without the word. */
static __always_inline bool mac_of_rule_holds(struct xdp_md *ctx, const struct policy_rule *rule)
{
	if (!marker_is(MARK_MACS, 1) || !(rule->flags & RULE_MAC))
		return true;
	return mac_holds(ctx, rule->mac_first, rule->mac_n);
}

static __always_inline bool pairs_of_rule_hold(struct packet *pkt, const struct policy_rule *rule)
{
	if (!marker_is(MARK_PAIRS, 1) || !(rule->flags & RULE_PAIRS))
		return true;
	if (rule->flags & RULE_FROM_PAIRS &&
	    !pairs_hold(pkt, rule->pairs_first[0], rule->pairs_n[0], 1))
		return false;
	return !(rule->flags & RULE_TO_PAIRS) ||
	       pairs_hold(pkt, rule->pairs_first[1], rule->pairs_n[1], 0);
}

static __always_inline bool rule_holds(struct xdp_md *ctx, struct packet *pkt,
				       const struct policy_rule *rule, __u32 index)
{
	const struct policy_test *test;

	if (!length_ttl_dscp(ctx, pkt, rule) || !mac_of_rule_holds(ctx, rule) ||
	    !pairs_of_rule_hold(pkt, rule))
		return false;
	if (!is_test())
		return conditions_hold(ctx, pkt, rule, index);
	test = test_get();
	if (!test)
		return false;
	if (!test->live)
		return conditions_supposed(test, pkt, rule);
	return test->calm ? conditions_calm(test, ctx, pkt, rule)
			  : conditions_hold(ctx, pkt, rule, index);
}

/* One record each log_interval over all CPUs. */
static __always_inline void rule_log(struct xdp_md *ctx, const struct policy_rule *rule,
				     __u32 reason)
{
	__u32 index = rule->log;
	__u64 now = bpf_jiffies64(), *last = bpf_map_lookup_elem(&logpace, &index);
	__u64 old;

	if (!last)
		return;
	old = *(volatile __u64 *)last;
	if (now - old < rule->log_interval || __sync_val_compare_and_swap(last, old, now) != old)
		return;
	log_write(ctx, reason, rule->counter, rule->log_snap);
}

static __always_inline __u32 action_reason(__u8 action)
{
	return action == ACTION_DROP       ? REASON_DROP_RULE
	       : action == ACTION_REJECT   ? REASON_DROP_REJECT
	       : action == ACTION_REDIRECT ? REASON_PASS_REDIRECT
					   : REASON_PASS_RULE;
}

static __always_inline void rule_modifiers(struct xdp_md *ctx, struct packet *pkt,
					   const struct policy_rule *rule)
{
	if (rule->flags & RULE_LOG)
		rule_log(ctx, rule, action_reason(rule->action));
	if (rule->flags & RULE_ADD)
		set_add(pkt, rule->add_set, !(rule->flags & RULE_ADD_DEST), rule->add_ticks);
}

/* 1: the rule decides; 0: its conditions do not hold, or it only counts. Global, as try_word: the
 * verifier checks each once, so nothing bounds the number of candidates (kernel 6.1 miscompiles
 * bpf_loop). */
__noinline int try_rule(struct xdp_md *ctx, struct packet *pkt, __u32 index)
{
	const struct policy_rule *rule = bpf_map_lookup_elem(&rules, &index);

	if (!rule || !pkt || !rule_holds(ctx, pkt, rule, index))
		return 0;
	if (is_test()) {
		test_counted(rule->action == ACTION_COUNT, index);
		return rule->action != ACTION_COUNT;
	}
	rule_modifiers(ctx, pkt, rule);
	if (rule->action != ACTION_COUNT)
		return 1;
	rule_count(rule, pkt->length);
	return 0;
}

/* The first rule of the word that decides, or GO_ON; base is the number of its bit 0. */
__noinline int try_word(struct xdp_md *ctx, struct packet *pkt, __u64 word, __u32 base)
{
	if (!pkt)
		return GO_ON;
	for (int i = 0; i < 64 && word; i++) {
		__u32 index = base + __builtin_popcountll(word ^ (word - 1)) - 1;

		if (try_rule(ctx, pkt, index))
			return index;
		word &= word - 1;
	}
	return GO_ON;
}

static __always_inline int redirect(const struct policy_rule *rule)
{
	return bpf_redirect_map(&devices, rule->redirect, 0) == XDP_REDIRECT ? REASON_PASS_REDIRECT
									     : REASON_DROP_REDIRECT;
}

/* The answer overwrites the packet, so that it is sampled here. counter: of the rule; NULL: of a
 * test. */
static __always_inline int reject(struct xdp_md *ctx, struct packet *pkt,
				  const struct policy_rule *rule, const struct counter *counter)
{
	__u32 share;

	if (!policy.rejects)
		return REASON_DROP_REJECT;
	if (counter && unlikely(share = chosen_share()))
		take_chosen(ctx, counter, share, REASON_DROP_REJECT, rule->counter, pkt->length);
	return reply(ctx, pkt);
}

/* The action of the deciding rule: a reason, which implies the verdict. */
static __always_inline int act(struct xdp_md *ctx, struct packet *pkt, __u32 index)
{
	const struct policy_rule *rule = bpf_map_lookup_elem(&rules, &index);
	const struct counter *counter = NULL;

	if (!rule)
		return REASON_DROP_INTERNAL;
	if (is_test())
		test_rule(index);
	else
		counter = rule_count(rule, pkt->length);
	pkt->decided_by = rule->counter + 1;
	switch (rule->action) {
	case ACTION_PASS:
		return REASON_PASS_RULE;
	case ACTION_DROP:
		return REASON_DROP_RULE;
	case ACTION_REJECT:
		return reject(ctx, pkt, rule, counter);
	case ACTION_REDIRECT:
		return policy.redirects ? redirect(rule) : REASON_DROP_REDIRECT;
	default:
		return REASON_DROP_INTERNAL;
	}
}
