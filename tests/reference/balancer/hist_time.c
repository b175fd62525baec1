// SPDX-License-Identifier: GPL-2.0-only
// Time in a history: mostly little, often to an edge, seldom very much.
#include "hist.h"

#include <inttypes.h>
#include <stddef.h>

#define TICK 16

/* The first jiffies at which a slot that changed then is pins only. */
static uint64_t hold_end(const struct hist *hist, uint64_t since)
{
	uint64_t hold_ticks = (hist_idle_longest(hist) * hist->hold + TICK - 1) / TICK;

	return (since + hold_ticks + 1) * TICK;
}

void hist_changes_prune(struct hist *hist)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < hist->changed; i++)
		if (hold_end(hist, hist->changes[i]) > hist->now)
			hist->changes[kept++] = hist->changes[i];
	hist->changed = kept;
}

static void now_set(struct hist *hist, uint64_t now)
{
	if (hist->back_in_time && rng_chance(&hist->rng, 3)) {
		uint64_t back = rng_between(&hist->rng, 1, 40);

		hist_print(hist, "time %" PRIu64, now > back ? now - back : 0);
		hist_flow_event(hist);
	}
	hist->now = now;
	hist_print(hist, "time %" PRIu64, now);
	hist_changes_prune(hist);
}

static void time_step(struct hist *hist, uint64_t to)
{
	if (hist->trial && to > hist->trial_end) {
		if (hist->trial_end > hist->now)
			now_set(hist, hist->trial_end);
		hist_flow_event(hist);
		hist_trial_end(hist);
	}
	if (to > hist->now)
		now_set(hist, to);
}

static struct hist_flow *keen_due_first(struct hist *hist, uint64_t before)
{
	struct hist_flow *first = NULL;

	for (unsigned int i = 0; i < HIST_KEEN; i++)
		if (hist->flows[i].due < before && (!first || hist->flows[i].due < first->due))
			first = &hist->flows[i];
	return first;
}

/* Whose idle is much shorter than the time to come rather falls silent. */
static void keen_sleep(struct hist *hist, uint64_t to)
{
	for (unsigned int i = 0; i < HIST_KEEN; i++) {
		uint64_t idle = hist->flows[i].udp ? hist->idle_udp : hist->idle_tcp;

		if (to > hist->now + 3 * idle)
			hist->flows[i].due = UINT64_MAX;
	}
}

static void time_pass(struct hist *hist, uint64_t to)
{
	struct hist_flow *keen;

	keen_sleep(hist, to);
	while ((keen = keen_due_first(hist, to))) {
		time_step(hist, keen->due);
		hist_flow_speak(hist, keen, HIST_OTHER);
	}
	time_step(hist, to);
}

void hist_time_small(struct hist *hist)
{
	time_pass(hist, hist->now + rng_between(&hist->rng, 1, 3));
}

void hist_time_settle(struct hist *hist)
{
	while (hist->changed)
		time_pass(hist, hold_end(hist, hist->changes[hist->changed - 1]));
}

static uint64_t edge_hold(struct hist *hist)
{
	unsigned int which = rng_below(&hist->rng, hist->changed);

	if (!hist->changed)
		return hist->now + TICK;
	return hold_end(hist, hist->changes[which]) + rng_below(&hist->rng, 3) - 1;
}

static uint64_t edge_silence(struct hist *hist)
{
	const struct hist_flow *flow = &hist->flows[rng_below(&hist->rng, HIST_FLOWS)];
	uint64_t idle = flow->udp ? hist->idle_udp : hist->idle_tcp;

	return flow->spoke + idle + rng_below(&hist->rng, 3) - 1;
}

/* How long a flow is remembered that has closed, or whose backend gets no new ones. */
static uint64_t linger(const struct hist *hist)
{
	uint64_t minute = (uint64_t)hist->hz * 60;

	return minute < hist->idle_tcp ? minute : hist->idle_tcp;
}

/* Just before and at the time a pin dies, or may be given up. */
static uint64_t edge_pin(struct hist *hist)
{
	const struct hist_flow *flow = &hist->flows[rng_below(&hist->rng, HIST_FLOWS)];
	bool lingers = flow->tcp && rng_chance(&hist->rng, 60);
	uint64_t idle = lingers ? linger(hist) : flow->udp ? hist->idle_udp : hist->idle_tcp;
	uint64_t unit = UINT64_C(1) << hist->shift;
	uint64_t units = (flow->spoke >> hist->shift) + (idle + unit - 1) / unit + 1;

	return (units << hist->shift) - rng_below(&hist->rng, 2);
}

/* As far as the time of a pin comes round. */
static void time_round(struct hist *hist)
{
	int64_t units = (int64_t)rng_below(&hist->rng, 24) - 20;
	uint64_t round = (uint64_t)(65536 + units) << hist->shift;

	time_pass(hist, hist->now + round);
}

static uint64_t time_far(struct hist *hist)
{
	uint64_t idle = hist_idle_longest(hist);

	if (rng_chance(&hist->rng, 80))
		return hist->now + 1 + (rng_next(&hist->rng) >> 32) * idle / UINT32_MAX;
	return hist->now + idle * rng_between(&hist->rng, 1, hist->hold + 1) +
	       rng_below(&hist->rng, 40);
}

void hist_time(struct hist *hist)
{
	unsigned int what = rng_below(&hist->rng, 1000);
	uint64_t unit = UINT64_C(1) << hist->shift;
	uint64_t to;

	if (what < 1) {
		time_round(hist);
		return;
	}
	if (what < 20)
		to = edge_hold(hist);
	else if (what < 60)
		to = edge_silence(hist);
	else if (what < 85)
		to = edge_pin(hist);
	else if (what < 105)
		to = time_far(hist);
	else if (what < 200)
		to = (hist->now / unit + 1) * unit - rng_below(&hist->rng, 2);
	else if (what < 450)
		to = (hist->now / TICK + rng_between(&hist->rng, 1, 4)) * TICK -
		     rng_below(&hist->rng, 2);
	else
		to = hist->now + rng_between(&hist->rng, 1, 3);
	time_pass(hist, to > hist->now ? to : hist->now + 1);
}
