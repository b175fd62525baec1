// SPDX-License-Identifier: GPL-2.0-only
// The states of a backend's health, and their times.
#include "ctl/control/health.h"

#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/table/lb_state.h"

static void enter(struct health *h, enum backend_state state, uint64_t now_ms)
{
	if (h->state == BACKEND_UP)
		h->failed_ms = now_ms;
	h->state = (uint8_t)state;
	h->since_ms = now_ms;
	h->good = 0;
	h->ramp_ms = 0;
}

static void recover(struct health *h, const struct health_rules *r, uint64_t now_ms)
{
	enter(h, BACKEND_UP, now_ms);
	h->ramp_ms = r->ramp_ms ? now_ms : 0;
}

// Of the last n.
static uint32_t failed_checks(const struct health *h, uint32_t n)
{
	uint64_t last = n < 64 ? (1ull << n) - 1 : ~0ull;

	return (uint32_t)__builtin_popcountll(h->history & last);
}

// The state of a new backend.
static bool first_result(struct health *h, bool good, uint64_t now_ms)
{
	uint64_t failed_ms = h->failed_ms;

	if (good ? h->cut : h->state != BACKEND_UP)
		return false;
	if (h->state != BACKEND_UP || !good)
		enter(h, good ? BACKEND_UP : BACKEND_FAILING, now_ms);
	h->failed_ms = failed_ms; // it was never up
	h->fresh = !good;
	if (good)
		h->history = 0; // while it was started
	return true;
}

bool health_result(struct health *h, const struct health_rules *r, bool good, uint64_t now_ms)
{
	h->known = true;
	h->history = h->history << 1 | !good;
	if (h->fresh)
		return first_result(h, good, now_ms);
	if (h->state == BACKEND_UP) {
		if (good || failed_checks(h, r->of) < r->fall)
			return false;
		enter(h, BACKEND_FAILING, now_ms);
		return true;
	}
	h->good = good ? h->good + 1 : 0;
	if (h->good < r->rise || h->cut)
		return false;
	recover(h, r, now_ms);
	return true;
}

bool health_link(struct health *h, const struct health_rules *r, bool dead, uint64_t now_ms)
{
	bool was = h->cut;

	h->cut = dead;
	if (dead && h->state != BACKEND_DOWN) {
		enter(h, BACKEND_DOWN, now_ms);
		return true;
	}
	if (dead || !was || r->rise) // a working link does not mean a working backend
		return false;
	recover(h, r, now_ms);
	return true;
}

static uint64_t step_ms(const struct health_rules *r)
{
	return (r->ramp_ms + LB_RAMP - 1) / LB_RAMP;
}

uint8_t health_missing(const struct health *h, const struct health_rules *r, uint64_t now_ms)
{
	uint64_t steps;

	if (!h->ramp_ms || !r->ramp_ms)
		return 0;
	steps = (now_ms - h->ramp_ms) / step_ms(r) + 1; // it begins with one sixteenth
	return steps < LB_RAMP ? (uint8_t)(LB_RAMP - steps) : 0;
}

bool health_tick(struct health *h, const struct health_rules *r, uint64_t now_ms)
{
	if (h->state == BACKEND_FAILING && now_ms - h->since_ms >= r->lost_ms) {
		enter(h, BACKEND_DOWN, now_ms);
		return true;
	}
	if (!h->ramp_ms)
		return false;
	if (!health_missing(h, r, now_ms))
		h->ramp_ms = 0;
	return true;
}

uint64_t health_due(const struct health *h, const struct health_rules *r, uint64_t now_ms)
{
	if (h->state == BACKEND_FAILING)
		return h->since_ms + r->lost_ms;
	if (!h->ramp_ms || !r->ramp_ms)
		return 0;
	return h->ramp_ms + ((now_ms - h->ramp_ms) / step_ms(r) + 1) * step_ms(r);
}

uint64_t health_pause(const struct health *h, const struct health_rules *r)
{
	uint64_t early;

	if (h->state != BACKEND_UP || !(h->history & 1) || r->fall < 2)
		return r->every_ms;
	early = r->timeout_ms / (r->fall - 1);
	return early < r->every_ms ? r->every_ms - early : 0;
}
