// SPDX-License-Identifier: GPL-2.0-only
// A service as it runs: rings, trials and tidying.
#include "model.h"

#include <stdlib.h>
#include <string.h>

void model_init(struct model *model, const struct settings *settings)
{
	memset(model, 0, sizeof(*model));
	model->set = *settings;
	model->slots = memory(settings->size, sizeof(*model->slots));
	model->slots_before = memory(settings->size, sizeof(*model->slots_before));
	model->pins = pins_new(settings->buckets, settings->hz, settings->idle_tcp);
}

void model_free(struct model *model)
{
	free(model->slots);
	free(model->slots_before);
	pins_free(&model->pins);
}

uint64_t model_idle(const struct model *model, uint8_t proto)
{
	return proto == FLOW_UDP ? model->set.idle_udp : model->set.idle_tcp;
}

uint64_t model_idle_longest(const struct model *model)
{
	const struct settings *set = &model->set;
	uint64_t tcp = set->has_tcp ? set->idle_tcp : 0;
	uint64_t udp = set->has_udp ? set->idle_udp : 0;

	return tcp > udp ? tcp : udp;
}

static struct slot_clock model_clock(const struct model *model)
{
	return (struct slot_clock){
		.now = model->now,
		.hold_ticks = slot_hold_ticks(model_idle_longest(model), model->set.hold),
		.never_changing = model->set.udp_move && !model->set.has_tcp,
	};
}

/* The ring of a pool with its present states, which *ret_now keeps. */
static struct ring model_pool(const struct model *model, const struct backends *pool,
			      struct backends *ret_now)
{
	struct ring ring = {.by_source = model->set.by_source,
			    .size = model->set.size,
			    .backends = ret_now->v,
			    .count = pool->count};

	*ret_now = *pool;
	memcpy(ring.key, model->set.key, sizeof(ring.key));
	for (size_t i = 0; i < pool->count; i++)
		ret_now->v[i].state = model->state[pool->v[i].id];
	return ring;
}

static bool model_fill(const struct model *model, const struct backends *pool, uint16_t *ret_owners)
{
	struct backends now;
	struct ring ring = model_pool(model, pool, &now);

	return ring_fill(&ring, ret_owners);
}

/* Which backends get new flows from now on. */
static void counts_note(struct model *model)
{
	struct backends now;
	struct ring ring = model_pool(model, &model->running, &now);

	memset(model->counts, 0, sizeof(model->counts));
	for (size_t i = 0; i < now.count; i++)
		model->counts[now.v[i].id] = ring_counts(&ring, &now.v[i]);
}

bool model_takes(const struct model *model, uint16_t id)
{
	return model->counts[id] && model->state[id] == BACKEND_UP;
}

static void slots_take(const struct model *model, const struct backends *pool, struct slot *slots)
{
	uint16_t *owners = memory(model->set.size, sizeof(*owners));
	struct slot_clock clock = model_clock(model);

	if (model_fill(model, pool, owners))
		for (uint32_t i = 0; i < model->set.size; i++)
			slots[i] = slot_step(slots[i], owners[i], &clock);
	free(owners);
}

/* The previous ring looks for pins in all slots in which the ring on trial may have written
 * some. */
static void before_look_for_pins(struct model *model)
{
	struct slot_clock clock = model_clock(model);

	for (uint32_t i = 0; i < model->set.size; i++)
		model->slots_before[i] =
			slot_before_trial(model->slots_before[i], model->slots[i].owner, &clock);
}

void model_ring(struct model *model)
{
	model->running = model->edited;
	slots_take(model, &model->running, model->slots);
	counts_note(model);
	if (!model->trial)
		return;
	slots_take(model, &model->before, model->slots_before);
	before_look_for_pins(model);
}

void model_trial_begin(struct model *model)
{
	memcpy(model->slots_before, model->slots, model->set.size * sizeof(*model->slots));
	model->before = model->running;
	model->running = model->edited;
	model->trial = true;
	slots_take(model, &model->running, model->slots);
	counts_note(model);
	before_look_for_pins(model);
}

void model_trial_confirm(struct model *model)
{
	model->trial = false;
}

void model_trial_back(struct model *model)
{
	memcpy(model->slots, model->slots_before, model->set.size * sizeof(*model->slots));
	model->edited = model->before;
	model->running = model->before;
	model->trial = false;
	counts_note(model);
}

/* The backends that the live pins of a slot name. */
struct named {
	uint16_t backend; /* 0: no backend */
	bool several;
};

static void named_add(struct named *named, uint16_t backend)
{
	if (named->backend && named->backend != backend)
		named->several = true;
	named->backend = backend;
}

/* With `hash source` a pin does not tell its slot, and counts for all. */
static struct named *named_collect(const struct model *model)
{
	const struct pins *pins = &model->pins;
	struct named *named = memory(model->set.size, sizeof(*named));
	struct named *last = named + model->set.size - 1;

	for (size_t i = 0; i < (size_t)pins->buckets * PINS_BUCKET; i++) {
		struct pin pin = pin_of_word(pins->words[i]);
		uint32_t slot = flow_scale(pin.flow, model->set.size);

		if (pins->words[i])
			named_add(model->set.by_source ? last : &named[slot], pin.backend);
	}
	for (uint32_t i = 0; model->set.by_source && i < model->set.size; i++)
		named[i] = *last;
	return named;
}

void model_tidy(struct model *model)
{
	struct slot_clock clock = model_clock(model);
	struct named *named;

	pins_sweep(&model->pins, model->now, model_idle_longest(model));
	named = named_collect(model);
	for (uint32_t i = 0; i < model->set.size; i++) {
		struct slot *slot = &model->slots[i];
		bool others =
			named[i].several || (named[i].backend && named[i].backend != slot->owner);

		*slot = slot_tidy(*slot, others, &clock);
	}
	free(named);
}

static bool backend_down(const struct model *model, uint16_t id)
{
	return model->state[id] == BACKEND_DOWN;
}

/* The connection of this pin has ended, or must have. */
static bool pin_given_up(const struct model *model, uint64_t word)
{
	struct pin pin = pin_of_word(word);

	if (pin.level == PIN_CLOSED || model->state[pin.backend] == BACKEND_FAILING)
		return true;
	return pin_silent(&model->pins, word, model->now) && !model_takes(model, pin.backend);
}

/* A SYN may end a connection that seems silent for longer than the linger, so the time of TCP and
 * SCTP is exact to an eighth of that. */
static uint64_t shortest_life(const struct model *model, uint8_t proto)
{
	return proto == FLOW_UDP ? pins_life(&model->pins, model->set.idle_udp)
				 : model->pins.linger;
}

static struct decision to_pinned(struct model *model, struct decision found, uint16_t owner,
				 enum event event, uint8_t proto)
{
	uint64_t word = model->pins.words[found.place];
	uint16_t pinned = pin_of_word(word).backend;
	bool down = backend_down(model, pinned), on_time;

	if (event == EVENT_OPENS && pin_given_up(model, word)) {
		found.backend = owner;
		found.written = WRITTEN_REOPENED;
		pins_restart(&model->pins, found.place, owner, model->now);
		return found;
	}
	found.backend = down ? owner : pinned;
	on_time = pins_renew(&model->pins, found.place, found.backend, event, model->now,
			     shortest_life(model, proto));
	found.written = down ? WRITTEN_MOVED : on_time ? WRITTEN_TIME : WRITTEN_KEPT;
	return found;
}

static struct decision to_new_pin(struct model *model, struct decision found, struct slot slot,
				  enum event event)
{
	static const uint8_t levels[] = {
		[EVENT_OTHER] = PIN_SEEN,
		[EVENT_OPENS] = PIN_OPENED,
		[EVENT_CLOSES] = PIN_CLOSED,
	};
	bool to_owner = event == EVENT_OPENS || backend_down(model, slot.former);
	struct pin pin = {.backend = to_owner ? slot.owner : slot.former, .level = levels[event]};

	found.backend = pin.backend;
	found.level = pin.level;
	found.place = pins_store(&model->pins, found.hash, pin, model->now,
				 model_idle_longest(model), &found.pushed);
	found.written = found.place == PIN_NONE ? WRITTEN_NOT_STORED : WRITTEN_PIN;
	return found;
}

struct decision model_packet(struct model *model, const struct flow *flow, enum event event)
{
	uint64_t hash = flow_hash_tuple(model->set.key, flow);
	uint64_t place_hash = model->set.by_source ? flow_hash_source(model->set.key, flow) : hash;
	struct decision found = {.hash = hash, .place = PIN_NONE};
	struct slot_clock clock = model_clock(model);
	struct slot slot;

	found.slot = flow_scale((uint32_t)place_hash, model->set.size);
	slot = model->slots[found.slot];
	found.backend = slot.owner;
	if (flow->proto == FLOW_UDP && model->set.udp_move)
		return found;
	if (slot_class(slot, &clock) == SLOT_STABLE)
		return found;
	found.place = pins_find(&model->pins, hash, model->now, model_idle(model, flow->proto));
	if (found.place != PIN_NONE)
		return to_pinned(model, found, slot.owner, event, flow->proto);
	if (slot_class(slot, &clock) == SLOT_PINS_ONLY)
		return found;
	return to_new_pin(model, found, slot, event);
}
