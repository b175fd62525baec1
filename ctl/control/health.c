// SPDX-License-Identifier: GPL-2.0-only
// The states of a backend's health, their times, and the share of a service that stays.
#include "ctl/control/health.h"

#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/table/lb_state.h"

// ---- one backend --------------------------------------------------------------------------------

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
	h->kept = false;
	h->ramp_ms = r->ramp_ms ? now_ms : 0;
}

// Of the last n.
static uint32_t failed_checks(const struct health *h, uint32_t n)
{
	uint64_t last = n < 64 ? (1ull << n) - 1 : ~0ull;

	return (uint32_t)__builtin_popcountll(h->history & last);
}

bool health_result(struct health *h, const struct health_rules *r, bool good, uint64_t now_ms)
{
	h->known = true;
	h->history = h->history << 1 | !good;
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
	if (dead || !was || r->rise) // a living link is no reason to believe in the backend
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

enum backend_state health_counts_as(const struct health *h)
{
	return h->kept ? BACKEND_UP : (enum backend_state)h->state;
}

// ---- the guard ----------------------------------------------------------------------------------

static bool is_up(const struct health_share *s, bool backup)
{
	return !s->exempt && s->health->state == BACKEND_UP && s->backup == backup;
}

static uint64_t weight_up(const struct health_share *shares, size_t n, bool backup)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += is_up(&shares[i], backup) ? shares[i].weight : 0;
	return sum;
}

static bool may_be_kept(const struct health_share *s)
{
	return !s->exempt && !s->backup && s->weight && s->health->state != BACKEND_UP;
}

// The one that failed last; of several, the first. NULL: none is left.
static const struct health_share *last_failed(const struct health_share *shares, size_t n)
{
	const struct health_share *last = NULL;

	for (size_t i = 0; i < n; i++)
		if (may_be_kept(&shares[i]) && !shares[i].health->kept &&
		    (!last || shares[i].health->failed_ms > last->health->failed_ms))
			last = &shares[i];
	return last;
}

size_t health_guard(const struct health_share *shares, size_t n, uint32_t keep)
{
	uint64_t all = 0, staying = weight_up(shares, n, false);
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		shares[i].health->kept = false;
		all += shares[i].exempt || shares[i].backup ? 0 : shares[i].weight;
	}
	// Backups take over (ring_elect); a single kept one would take every slot from them.
	if (!staying && weight_up(shares, n, true))
		return 0;
	while (staying * 10000 < all * keep) {
		const struct health_share *next = last_failed(shares, n);

		if (!next)
			break;
		next->health->kept = true;
		staying += next->weight;
		kept++;
	}
	return kept;
}
