// SPDX-License-Identifier: GPL-2.0-only
// Deadlines of slots, overrides and holds.
#include "ctl/control/lb_due.h"

#include "ctl/base/mem.h"

#define WALK_PART     16 // of the longest idle
#define WALK_LEAST_MS 1000
#define WALK_MOST_MS  60000
#define LOOK_PART     2 // share of the longest idle: twice before an evicted pin can be missed
#define LOOK_LEAST_MS 200

void lb_due_free(struct lb_due *d)
{
	sentences_free(&d->ended);
}

static void at_most(uint64_t *least, uint64_t ms)
{
	if (ms < *least)
		*least = ms;
}

static uint64_t ms_of(const struct clock *now, uint64_t jiffies)
{
	return (jiffies * 1000 + now->hz - 1) / now->hz;
}

static uint64_t bounded(uint64_t ms, uint64_t least, uint64_t most)
{
	return ms < least ? least : ms > most ? most : ms;
}

static uint64_t longest_idle(const struct lb_service *s)
{
	return s->idle_tcp > s->idle_udp ? s->idle_tcp : s->idle_udp;
}

// How long the slot is still changing. A time in the future, which the end of a trial gives, counts
// with it.
static uint64_t changing_ms(uint64_t slot, uint32_t hold_ticks, const struct clock *now)
{
	uint64_t age = (slot_time(now->jiffies) - slot) & SLOT_SINCE;
	uint64_t left = (hold_ticks + 1 - age) & SLOT_SINCE;

	return ms_of(now, left << SERVICE_SLOT_SHIFT);
}

static void add_slots(const struct lb_state *b, const struct lb_service *s, const struct clock *now,
		      struct lb_due *ret, bool *ret_open)
{
	uint32_t hold_ticks = slot_ticks(longest_idle(s), s->hold);

	for (uint32_t i = 0; i < s->size; i++) {
		uint64_t slot = b->slots[s->first_slot + i];
		enum slot_phase phase = slot_phase(slot, now->jiffies, hold_ticks);

		*ret_open |= phase != SLOT_STABLE;
		if (phase == SLOT_CHANGING)
			at_most(&ret->tidy_ms, changing_ms(slot, hold_ticks, now));
		else if (phase == SLOT_PINS_ONLY && slot_former(slot) != slot_owner(slot))
			ret->tidy_ms = 0; // only by its age: it must be written
		else if (phase == SLOT_PINS_ONLY)
			at_most(&ret->walk_ms, bounded(ms_of(now, longest_idle(s) / WALK_PART),
						       WALK_LEAST_MS, WALK_MOST_MS));
	}
}

// A hold doubles with each tidy that finds evicted pins, and is 1 again after an idle without
// (ring_hold).
static int add_hold(struct lb_maps *l, const struct lb_service *s, bool open,
		    const struct clock *now, struct lb_due *ret, struct err *err)
{
	uint64_t quiet = now->jiffies - s->pushed_at, idle = longest_idle(s);
	struct service_counter counter;
	int code = lb_maps_counter(l, s->id, &counter, err);

	if (code)
		return code;
	if (open)
		at_most(&ret->look_ms,
			bounded(ms_of(now, idle / LOOK_PART), LOOK_LEAST_MS, UINT64_MAX));
	if (counter.event[SERVICE_PUSHED_FOUND] > s->pushed)
		idle /= LOOK_PART;
	else if (s->hold == 1)
		return 0;
	at_most(&ret->tidy_ms, quiet >= idle ? 0 : ms_of(now, idle - quiet));
	return 0;
}

static void add_overrides(const struct lb_state *b, const struct lb_service *s,
			  const struct clock *now, struct lb_due *ret)
{
	for (uint32_t n = 0; n < s->n_members; n++) {
		const struct lb_member *m = &b->members[s->first_member + n];
		struct addr addr;
		addr_text text;

		if (m->override == BACKEND_UP || !m->until_s)
			continue;
		at_most(&ret->tidy_ms,
			m->until_s * 1000 > now->wall_ms ? m->until_s * 1000 - now->wall_ms : 0);
		if (m->until_s * 1000 > now->wall_ms)
			continue;
		lb_member_address(m, &addr);
		sentences_add(&ret->ended,
			      mem_printf("the %s of %s in %s",
					 m->override == BACKEND_DRAIN ? "drain" : "override",
					 addr.family ? addr_format(&addr, text) : "here", s->name));
	}
}

int lb_due(struct lb_maps *l, const struct clock *now, struct lb_due *ret, struct err *err)
{
	const struct lb_state *b = lb_maps_state(l);

	*ret = (struct lb_due){LB_DUE_NEVER, LB_DUE_NEVER, LB_DUE_NEVER, {0}};
	for (size_t n = 0; n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];
		bool open = false;
		int code;

		add_slots(b, s, now, ret, &open);
		add_overrides(b, s, now, ret);
		if ((code = add_hold(l, s, open, now, ret, err)))
			return code;
	}
	return 0;
}
