// SPDX-License-Identifier: GPL-2.0-only
// Maintains a running balancer: expired times, rings after an override, next hops.
#include "ctl/control/lb_running.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/trace.h"
#include "ctl/control/nexthops.h"

#define REWRITE_MS 1000  // from a reading of the clock to the slots that follow from it
#define CLOSING_US 20000 // packets that saw a slot changing have pinned their flows by then

// ---- transitions --------------------------------------------------------------------------------

static uint64_t longest_idle(const struct lb_service *s)
{
	return s->idle_tcp > s->idle_udp ? s->idle_tcp : s->idle_udp;
}

static struct ring_pins pins_of(const struct lb_service *s, uint64_t *words, size_t n,
				const struct clock *now)
{
	uint32_t shift = pin_shift(now->hz);

	return (struct ring_pins){
		.words = words,
		.n = n,
		.time = pin_time(now->jiffies, shift),
		.life = pin_life(longest_idle(s), shift) + 2,
		.linger = pin_linger(s->idle_tcp, now->hz, shift) + 2,
		.hash = (enum service_hash)s->hash,
	};
}

static bool all_stable(const struct lb_state *b, const struct lb_service *s)
{
	for (uint32_t i = 0; i < s->size; i++)
		if (slot_former(b->slots[s->first_slot + i]))
			return false;
	return true;
}

static void close_slots(struct lb_state *b, const struct lb_service *s, const struct clock *now,
			const uint64_t *foreign)
{
	struct ring_rules rules = lb_service_rules(s, now->jiffies, now->hz);

	ring_tidy_all(b->slots + s->first_slot, foreign, s->size, &rules);
}

static void wait_for_packets(void)
{
	struct timespec t = {.tv_nsec = CLOSING_US * 1000};

	nanosleep(&t, NULL);
}

// Slots stay changing longer if pins were evicted since the last visit. Slots that have expired
// only by their age are written before that time grows, and no other slot may expire until then:
// flows that open in an expired slot have no pin.
static int adjust_hold(struct lb_maps *l, struct lb_service *s, const struct clock *now,
		       struct err *err)
{
	struct service_counter counter;
	uint64_t pushed, fresh;
	uint32_t hold;
	int code = lb_maps_counter(l, s->id, &counter, err);

	if (code)
		return code;
	pushed = counter.event[SERVICE_PUSHED_FOUND];
	fresh = pushed > s->pushed ? pushed - s->pushed : 0;
	if (fresh || !s->pushed_at)
		s->pushed_at = now->jiffies;
	hold = ring_hold(s->hold, fresh, now->jiffies - s->pushed_at, longest_idle(s));
	if (hold > s->hold)
		code = lb_running_guard(l, now, REWRITE_MS, err);
	if (code)
		return code;
	s->pushed = pushed;
	s->hold = hold;
	return 0;
}

// The last step: reads the pins after no packet can add one to a closed slot.
static int walk(struct lb_maps *l, size_t n, const struct clock *now, bool *ret_pinned,
		struct lb_ids *ret_ids, struct err *err)
{
	struct lb_state *b = lb_maps_state(l);
	const struct lb_service *s = &b->services[n];
	CLEANUP_FREE uint64_t *foreign = mem_zalloc((s->size + 63) / 64, sizeof(*foreign));
	CLEANUP_MAPPING struct mapping words = {0};
	struct ring_pins pins;
	size_t count;
	int code = lb_maps_pins(l, n, &words, &count, err);

	if (code)
		return code;
	pins = pins_of(s, words.at, count, now);
	*ret_pinned = ring_walk(&pins, b->slots + s->first_slot, s->size, foreign) > 0;
	if (ret_ids)
		lb_ids_of_pins(&pins, ret_ids);
	close_slots(b, s, now, foreign);
	return 0;
}

static bool close_by_age(struct lb_state *b, const struct lb_service *s, const struct clock *now)
{
	CLEANUP_FREE uint64_t *all = mem_zalloc((s->size + 63) / 64, sizeof(*all));

	if (all_stable(b, s))
		return false;
	memset(all, 0xff, (s->size + 63) / 64 * sizeof(*all));
	close_slots(b, s, now, all);
	return true;
}

static int close_all(struct lb_maps *l, const struct clock *now, struct err *err)
{
	struct lb_state *b = lb_maps_state(l);
	bool open = false;
	int code;

	for (size_t n = 0; n < b->n_services; n++) {
		if (!lb_maps_uses(l, n))
			continue;
		open |= close_by_age(b, &b->services[n], now);
		if ((code = adjust_hold(l, &b->services[n], now, err)))
			return code;
	}
	if ((code = lb_maps_write(l, now->hz, err)))
		return code;
	if (open)
		wait_for_packets();
	return 0;
}

static bool is_torn(const struct lb_state *b)
{
	for (size_t n = 0; n < b->n_services; n++)
		if (b->services[n].torn)
			return true;
	return false;
}

int lb_running_tidy(struct lb_maps *l, const struct clock *now, bool *ret_pinned,
		    struct lb_ids *ret_ids, struct err *err)
{
	struct lb_state *b = lb_maps_state(l);
	bool pinned = false, ended;
	int code = close_all(l, now, err);

	if (code)
		return code;
	for (size_t n = 0; n < b->n_services; n++) {
		if (!lb_maps_uses(l, n))
			continue;
		if ((code = walk(l, n, now, &pinned, ret_ids, err)))
			return code;
		if (ret_pinned)
			ret_pinned[n] = pinned;
	}
	ended = is_torn(b);
	ended |= lb_state_expire(b, now->wall_ms / 1000) > 0;
	ended |= lb_state_end_waits(b, now->jiffies, NULL) > 0;
	return ended ? lb_running_rewrite(l, now, NULL, err) : lb_maps_write(l, now->hz, err);
}

// Into the state. Returns how many slots changed.
static size_t guard_rings(struct lb_maps *l, const struct clock *now, uint32_t ms)
{
	const struct lb_state *b = lb_maps_state(l);
	uint32_t ticks = slot_ticks((uint64_t)ms * now->hz / 1000, 1);
	size_t changed = 0;

	for (size_t n = 0; n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];
		struct ring_rules rules = lb_service_rules(s, now->jiffies, now->hz);

		if (lb_maps_uses(l, n))
			changed += ring_guard(b->slots + s->first_slot, s->size, ticks, &rules);
	}
	return changed;
}

int lb_running_guard(struct lb_maps *l, const struct clock *now, uint32_t ms, struct err *err)
{
	return guard_rings(l, now, ms) ? lb_maps_write(l, now->hz, err) : 0;
}

// Into the state; `some` NULL: all services that are used. Returns how many slots changed.
static size_t change_rings(struct lb_maps *l, const struct clock *now, const bool *some)
{
	struct lb_state *b = lb_maps_state(l);
	size_t changed = 0;

	for (size_t n = 0; n < b->n_services; n++) {
		size_t slots;
		bool none;

		if (!lb_maps_uses(l, n) || (some && !some[n] && !b->services[n].torn))
			continue;
		slots = lb_service_change(b, n, now->jiffies, now->hz, &none);
		b->services[n].torn = 0;
		changed += slots;
		trace(ring, b->services[n].name, slots);
	}
	return changed;
}

int lb_running_rewrite(struct lb_maps *l, const struct clock *now, size_t *ret_changed,
		       struct err *err)
{
	int code = lb_running_guard(l, now, REWRITE_MS, err);
	size_t changed;

	if (code)
		return code;
	changed = change_rings(l, now, NULL);
	if (ret_changed)
		*ret_changed = changed;
	return lb_maps_write(l, now->hz, err);
}

int lb_running_rewrite_some(struct lb_maps *l, const struct clock *now, const bool *some,
			    size_t *ret_changed, struct err *err)
{
	int code = lb_running_guard(l, now, REWRITE_MS, err);

	if (code)
		return code;
	*ret_changed = change_rings(l, now, some);
	return lb_maps_write(l, now->hz, err);
}

// ---- trials -------------------------------------------------------------------------------------

static const struct lb_service *successor(const struct lb_state *trial,
					  const struct lb_service *before)
{
	const struct lb_service *after = lb_state_find(trial, before->name);

	return after && after->id == before->id ? after : NULL;
}

void lb_running_way_back(struct lb_state *before, const struct lb_state *trial,
			 const struct clock *now)
{
	for (size_t n = 0; n < before->n_services; n++) {
		const struct lb_service *was = &before->services[n];
		const struct lb_service *is = successor(trial, was);
		struct ring_rules rules = lb_service_rules(was, now->jiffies, now->hz);

		for (uint32_t i = 0; is && i < was->size; i++) {
			uint64_t *slot = &before->slots[was->first_slot + i];
			uint64_t after = trial->slots[is->first_slot + i];

			if (slot_owner(*slot) != slot_owner(after))
				*slot = ring_trial(*slot, &rules);
		}
	}
}

// Slots that are changing stay so until the trial has ended: docs/ring.md, `trial-health`.
static void extend_rings(struct lb_state *b, uint64_t end, const struct clock *now)
{
	for (size_t n = 0; n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];
		struct ring_rules rules = lb_service_rules(s, now->jiffies, now->hz);

		ring_extend(b->slots + s->first_slot, s->size, end, &rules);
	}
}

int lb_running_rewrite_trial(struct lb_maps *trial, const bool *some, struct lb_maps *before,
			     const bool *some_before, uint64_t end, const struct clock *now,
			     size_t *ret_changed, struct err *err)
{
	int code = lb_running_guard(trial, now, REWRITE_MS, err);

	if (code)
		return code;
	*ret_changed = change_rings(trial, now, some);
	guard_rings(before, now, REWRITE_MS); // no packet meets it now
	change_rings(before, now, some_before);
	extend_rings(lb_maps_state(before), end, now);
	lb_running_way_back(lb_maps_state(before), lb_maps_state(trial), now);
	// The ring before first: what the trial's ring moves from now on, it has to look for.
	if ((code = lb_maps_write_before(before, now->hz, err)))
		return code;
	return lb_maps_write(trial, now->hz, err);
}

// ---- next hops ----------------------------------------------------------------------------------

// The prefix that outer sources are chosen from.
static struct prefix source_of(const struct backend *backend)
{
	struct prefix p = {.len = backend->source_len};

	p.addr.family = backend->family;
	memcpy(p.addr.bytes, backend->source, backend->family == 4 ? 4 : 16);
	return p;
}

void lb_paths_free(struct lb_paths *ways)
{
	sentences_free(&ways->lost);
	sentences_free(&ways->warnings);
	vec_free(&ways->moved);
	vec_free(&ways->hops);
}

// Drained or down backends are not missed.
static bool is_needed(const struct lb_member *m, bool kept)
{
	return kept || (lb_member_state(m) == BACKEND_UP && lb_member_weight(m));
}

static bool refresh_backend(struct lb_maps *l, const struct lb_service *s,
			    const struct lb_member *m, bool kept, const struct nexthop_answer *hop,
			    bool write, struct lb_paths *ways)
{
	const struct backend *old = lb_maps_backend(l, m->id);
	struct prefix prefix = old ? source_of(old) : (struct prefix){0};
	struct nexthops_source source = {&prefix, old && old->source_set ? 1 : 0, s->mode};
	struct backend fresh;
	char *why = NULL;

	nexthops_backend(m, &source, hop, old, &fresh, &why);
	if (old) // which the whole pool determines
		fresh.state = old->state;
	if (why && !m->gone)
		sentences_add(hop->code && is_needed(m, kept) ? &ways->lost : &ways->warnings,
			      mem_printf("service '%s': %s", s->name, why));
	free(why);
	if (!old || !memcmp(old, &fresh, offsetof(struct backend, path)))
		return false;
	if (write)
		lb_maps_set_backend(l, m->id, &fresh);
	return true;
}

static void add_hops(const struct addr *dest, const struct nexthop_answer *hop,
		     struct lb_paths *ways)
{
	if (dest->family)
		vec_push(&ways->hops, *dest);
	if (hop->hop.gateway.family)
		vec_push(&ways->hops, hop->hop.gateway);
}

int lb_running_refresh(struct lb_maps *l, uint32_t wait_ms, bool write, struct lb_paths *ret,
		       struct err *err)
{
	const struct lb_state *b = lb_maps_state(l);
	CLEANUP_FREE struct addr *dests = mem_zalloc(b->n_members, sizeof(*dests));
	CLEANUP_FREE struct nexthop_answer *nexthops = mem_zalloc(b->n_members, sizeof(*nexthops));
	int code;

	for (size_t m = 0; m < b->n_members; m++)
		lb_member_address(&b->members[m], &dests[m]);
	code = nexthops_find(dests, b->n_members, wait_ms, nexthops, err);
	if (code)
		return code;
	for (size_t m = 0; m < b->n_members; m++)
		add_hops(&dests[m], &nexthops[m], ret);
	for (size_t n = 0; n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];
		CLEANUP_FREE bool *kept = mem_zalloc(s->n_members, sizeof(*kept));

		lb_service_keep(b, s, kept);
		for (uint32_t m = s->first_member; m < s->first_member + s->n_members; m++) {
			if (write && !nexthops[m].code && nexthops[m].hop.ifindex &&
			    (code = lb_maps_add_device(l, nexthops[m].hop.ifindex, err)))
				return code;
			if (!refresh_backend(l, s, &b->members[m], kept[m - s->first_member],
					     &nexthops[m], write, ret))
				continue;
			ret->changed++;
			vec_push(&ret->moved, dests[m]);
		}
	}
	return 0;
}
