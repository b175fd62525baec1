// SPDX-License-Identifier: GPL-2.0-only
// The pool of a history and its rings: what is edited, fails, comes back and is tried out.
#include "hist.h"

#include <stdio.h>
#include <string.h>

static const char *const states[] = {"up", "drain", "down"};

static void backend_print(struct hist *hist, unsigned int id)
{
	const struct hist_backend *backend = &hist->backends[id];

	hist_print(hist, "backend %u %s %u %s %s", id, backend->place, backend->weight,
		   states[backend->state], backend->backup ? "backup" : "primary");
}

static unsigned int weight_draw(struct rng *rng)
{
	unsigned int what = rng_below(rng, 100);

	if (what < 70)
		return rng_between(rng, 1, 10);
	if (what < 76)
		return 0;
	return what < 80 ? 65535 : rng_between(rng, 1, 1000);
}

static void place_draw(struct hist *hist, unsigned int id, char *place, size_t size)
{
	unsigned int port = rng_chance(&hist->rng, 50) ? 0 : rng_below(&hist->rng, 65536);

	if (id == 2)
		snprintf(place, size, "here 0");
	else if (id % 3 == 0)
		snprintf(place, size, "2001:db8::%x %u", id, port);
	else
		snprintf(place, size, "10.0.%u.%u %u", id >> 8, id & 255, port);
}

/* Brings one back that was removed, or a new one. */
static void backend_add(struct hist *hist)
{
	struct rng *rng = &hist->rng;
	unsigned int id = hist->ids ? rng_between(rng, 1, hist->ids) : 0;
	struct hist_backend *backend;

	if (hist->members == HIST_MEMBERS)
		return;
	if (!id || hist->backends[id].member || rng_chance(rng, 30)) {
		if (hist->ids == HIST_BACKENDS)
			return;
		id = ++hist->ids;
		place_draw(hist, id, hist->backends[id].place, sizeof(hist->backends[id].place));
	}
	backend = &hist->backends[id];
	backend->member = true;
	backend->weight = weight_draw(rng);
	backend->backup = rng_chance(rng, 15);
	hist->members++;
	backend_print(hist, id);
}

static unsigned int member_draw(struct hist *hist)
{
	unsigned int at = rng_below(&hist->rng, hist->members);
	unsigned int id = 0;

	do {
		id++;
		at -= hist->backends[id].member;
	} while (!hist->backends[id].member || at + 1);
	return id;
}

static void state_change(struct hist *hist, unsigned int id)
{
	struct hist_backend *backend = &hist->backends[id];
	unsigned int what = rng_below(&hist->rng, 100);

	if (backend->state)
		backend->state = what < 75 ? 0 : backend->state == 1 && what < 85 ? 2 : 1;
	else
		backend->state = what < 75 ? 1 : 2;
	hist_print(hist, "state %u %s", id, states[backend->state]);
}

static void pool_edit(struct hist *hist)
{
	unsigned int what = rng_below(&hist->rng, 100);
	unsigned int id;

	if (what < 40 || hist->members < 2) {
		backend_add(hist);
		return;
	}
	id = member_draw(hist);
	if (what < 65) {
		hist->backends[id].member = false;
		hist->members--;
		hist_print(hist, "remove %u", id);
		return;
	}
	hist->backends[id].weight = weight_draw(&hist->rng);
	backend_print(hist, id);
}

static void change_note(struct hist *hist)
{
	uint64_t tick = hist->now / 16;

	if (!hist->changed || hist->changes[hist->changed - 1] != tick)
		hist->changes[hist->changed++] = tick;
}

static void before_keep(struct hist *hist)
{
	memcpy(hist->before, hist->backends, sizeof(hist->before));
}

static void ring(struct hist *hist)
{
	if (hist->changed == HIST_CHANGES)
		return;
	hist_print(hist, "ring");
	change_note(hist);
	hist->trial_clean = false;
	if (!hist->trial)
		before_keep(hist);
}

void hist_pool_begin(struct hist *hist)
{
	unsigned int members = rng_between(&hist->rng, 1, HIST_MEMBERS);

	while (members--)
		backend_add(hist);
	ring(hist);
}

/* Few at once mostly, now and then many, with little time between them. */
void hist_pool_event(struct hist *hist)
{
	struct rng *rng = &hist->rng;
	unsigned int times = rng_chance(rng, 70) ? 1 : rng_between(rng, 2, 5);

	while (times--) {
		if (!hist->members || (!hist->trial && rng_chance(rng, 30)))
			pool_edit(hist);
		else
			state_change(hist, rng_chance(rng, 85) ? member_draw(hist)
							       : rng_between(rng, 1, hist->ids));
		if (rng_chance(rng, 30))
			hist_flow_event(hist);
		if (rng_chance(rng, 85))
			ring(hist);
		if (rng_chance(rng, 30))
			hist_time_small(hist);
	}
}

static void trial_begin(struct hist *hist)
{
	unsigned int edits = rng_below(&hist->rng, 4);

	if (rng_chance(&hist->rng, 50))
		hist_time_settle(hist);
	if (hist->changed == HIST_CHANGES)
		return;
	while (edits--)
		pool_edit(hist);
	hist_print(hist, "trial begin");
	hist->trial = true;
	hist->trial_clean = !hist->changed;
	hist->trial_end = hist->now + hist_idle_longest(hist);
	change_note(hist);
}

/* Back to the pool before, but for the states. */
static void pool_back(struct hist *hist)
{
	hist->members = 0;
	for (unsigned int id = 1; id <= hist->ids; id++) {
		struct hist_backend *backend = &hist->backends[id];

		backend->member = hist->before[id].member;
		backend->weight = hist->before[id].weight;
		backend->backup = hist->before[id].backup;
		hist->members += backend->member;
	}
}

/*
 * Not back if slots of the ring before may be changing: their clocks run while the ring on trial
 * serves their flows, and those without a pin move when the clocks end.
 */
void hist_trial_end(struct hist *hist)
{
	bool back = rng_chance(&hist->rng, 70) && (hist->trial_clean || hist->any_trials);

	hist_print(hist, "trial %s", back ? "back" : "confirm");
	hist->trial = false;
	if (back)
		pool_back(hist);
	else
		before_keep(hist);
}

void hist_trial_event(struct hist *hist)
{
	if (hist->trial)
		hist_trial_end(hist);
	else
		trial_begin(hist);
}

void hist_tidy(struct hist *hist)
{
	hist_print(hist, "tidy");
	if (rng_chance(&hist->rng, 30)) {
		hist_print(hist, "slots");
		hist_print(hist, "pins");
	}
}

/* Whoever raises the hold tidies up first, else slots that are pins only change again. */
void hist_hold_event(struct hist *hist)
{
	unsigned int hold = rng_between(&hist->rng, 1, rng_chance(&hist->rng, 80) ? 3 : 16);

	if (hist->trial)
		return;
	if (hold > hist->hold && !hist->raise_untidied)
		hist_print(hist, "tidy");
	hist->hold = hold;
	hist_print(hist, "hold %u", hold);
	hist_changes_prune(hist);
}
