// SPDX-License-Identifier: GPL-2.0-only
// Checks the decisions of the model: active flows must keep their backend, slots must become
// stable.
#include "check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

#define COMPLAINTS 10 /* more are only counted */
#define LINGER_S   60

struct watched {
	struct flow flow;
	uint64_t hash;
	uint64_t spoke;   /* jiffies */
	uint64_t arrived; /* the event that sent it to its backend */
	uint16_t backend;
	bool used;
	bool lost;               /* its pin no longer exists or was never stored */
	bool closed, closed_pin; /* it has closed; and its pin knows */
};

/* The last value written to the slot of a pin. */
struct last_pin {
	size_t flow; /* its place in the table + 1 */
	uint16_t backend;
	uint64_t written; /* jiffies */
};

struct check {
	const struct model *model;
	struct watched *flows; /* a hash table, its size a power of two */
	size_t cap;
	size_t count;
	struct last_pin *last_pins;
	uint16_t *owners;  /* as last seen */
	uint64_t *changed; /* jiffies at which a slot last got another owner */
	uint64_t *down;    /* the last event at which a backend went down or was down until */
	uint64_t event;
	uint64_t packets, spoken, moved, moved_down, moved_lost, opened, stale;
	uint64_t slots_seen, unstable;
};

struct check *check_new(const struct model *model)
{
	struct check *check = memory(1, sizeof(*check));

	check->model = model;
	check->cap = 1024;
	check->flows = memory(check->cap, sizeof(*check->flows));
	check->last_pins =
		memory((size_t)model->set.buckets * PINS_BUCKET, sizeof(*check->last_pins));
	check->owners = memory(model->set.size, sizeof(*check->owners));
	check->changed = memory(model->set.size, sizeof(*check->changed));
	check->down = memory(BACKEND_ID_MAX + 1, sizeof(*check->down));
	return check;
}

void check_free(struct check *check)
{
	if (!check)
		return;
	free(check->flows);
	free(check->last_pins);
	free(check->owners);
	free(check->changed);
	free(check->down);
	free(check);
}

void check_state(struct check *check, uint16_t id, enum backend_state state)
{
	check->event++;
	if (state == BACKEND_DOWN || check->model->state[id] == BACKEND_DOWN)
		check->down[id] = check->event;
}

void check_ring(struct check *check, bool all)
{
	for (uint32_t i = 0; i < check->model->set.size; i++) {
		if (!all && check->owners[i] == check->model->slots[i].owner)
			continue;
		check->owners[i] = check->model->slots[i].owner;
		check->changed[i] = check->model->now;
	}
}

static size_t table_place(const struct watched *flows, size_t cap, const struct flow *flow,
			  uint64_t hash)
{
	size_t place = hash & (cap - 1);

	while (flows[place].used && memcmp(&flows[place].flow, flow, sizeof(*flow)) != 0)
		place = (place + 1) & (cap - 1);
	return place;
}

/* They name flows by index, which changes when the table grows. */
static void table_grow(struct check *check)
{
	size_t cap = check->cap * 2;
	struct watched *flows = memory(cap, sizeof(*flows));
	size_t *moved = memory(check->cap, sizeof(*moved));

	for (size_t i = 0; i < check->cap; i++) {
		const struct watched *old = &check->flows[i];

		if (!old->used)
			continue;
		moved[i] = table_place(flows, cap, &old->flow, old->hash);
		flows[moved[i]] = *old;
	}
	for (size_t i = 0; i < (size_t)check->model->set.buckets * PINS_BUCKET; i++)
		if (check->last_pins[i].flow)
			check->last_pins[i].flow = moved[check->last_pins[i].flow - 1] + 1;
	free(moved);
	free(check->flows);
	check->flows = flows;
	check->cap = cap;
}

static struct watched *table_get(struct check *check, const struct flow *flow, uint64_t hash)
{
	struct watched *watched;

	if (check->count >= check->cap / 2)
		table_grow(check);
	watched = &check->flows[table_place(check->flows, check->cap, flow, hash)];
	if (!watched->used) {
		watched->flow = *flow;
		watched->hash = hash;
		check->count++;
	}
	return watched;
}

/* Follows a pin to its new flow, and marks the flow that loses it. */
static bool holder_strange(const struct check *check, const struct watched *watched,
			   const struct decision *decision)
{
	bool found = decision->written == WRITTEN_TIME || decision->written == WRITTEN_KEPT ||
		     decision->written == WRITTEN_MOVED || decision->written == WRITTEN_REOPENED;

	return found && decision->place != PIN_NONE &&
	       check->last_pins[decision->place].flow != (size_t)(watched - check->flows) + 1;
}

static void holder_follow(struct check *check, struct watched *watched,
			  const struct decision *decision)
{
	struct last_pin *last = &check->last_pins[decision->place];
	size_t place = (size_t)(watched - check->flows) + 1;
	bool stranger = holder_strange(check, watched, decision);

	if (last->flow && (decision->pushed || stranger))
		check->flows[last->flow - 1].lost = true;
	if (stranger)
		watched->lost = true;
	if (decision->written == WRITTEN_KEPT)
		*last = (struct last_pin){place, decision->backend, last->written};
	else
		*last = (struct last_pin){place, decision->backend, check->model->now};
}

static void move_count(struct check *check, const struct watched *watched,
		       const struct decision *decision, unsigned long line)
{
	bool down = check->model->state[watched->backend] == BACKEND_DOWN ||
		    check->down[watched->backend] >= watched->arrived;

	if (down) {
		check->moved_down++;
	} else if (watched->lost) {
		check->moved_lost++;
	} else if (check->moved++ < COMPLAINTS) {
		fprintf(stderr,
			"line %lu: a flow of slot %u moves from %u to %u, %" PRIu64
			" jiffies after it last spoke\n",
			line, decision->slot, watched->backend, decision->backend,
			check->model->now - watched->spoke);
	}
}

/* Does this packet continue its flow? */
static bool flow_goes_on(const struct check *check, const struct watched *watched, enum event event)
{
	uint64_t idle = model_idle(check->model, watched->flow.proto);
	uint64_t linger = (uint64_t)check->model->set.hz * LINGER_S;

	if (watched->closed && linger < idle)
		idle = linger;
	return watched->used && event != EVENT_OPENS && watched->backend &&
	       check->model->now - watched->spoke <= idle;
}

/* Has the flow been silent for long, by the coarse time of its pin, which wraps? */
static bool flow_is_silent(const struct check *check, const struct watched *watched)
{
	const struct model *model = check->model;
	uint64_t round = UINT64_C(65536) << model->pins.shift;
	uint64_t unit = UINT64_C(1) << model->pins.shift;
	uint64_t age = (model->now - watched->spoke) % round;

	return age > (model->pins.linger + 2) * unit && age < round - 17 * unit;
}

/* Can this opening packet belong to no present connection? */
static bool flow_is_new(const struct check *check, const struct watched *watched)
{
	if (!watched->used || !watched->backend || watched->closed_pin)
		return true;
	if (check->model->state[watched->backend] == BACKEND_FAILING)
		return true;
	return flow_is_silent(check, watched) && !model_takes(check->model, watched->backend);
}

static void open_check(struct check *check, const struct watched *watched,
		       const struct decision *decision, unsigned long line)
{
	if (!flow_is_new(check, watched) || holder_strange(check, watched, decision))
		return;
	check->opened++;
	if (decision->backend != check->owners[decision->slot] && check->stale++ < COMPLAINTS)
		fprintf(stderr, "line %lu: a new connection of slot %u goes to %u, not to %u\n",
			line, decision->slot, decision->backend, check->owners[decision->slot]);
}

static void closing_note(struct watched *watched, enum event event, const struct decision *decision)
{
	bool kept = decision->written == WRITTEN_TIME || decision->written == WRITTEN_KEPT ||
		    decision->written == WRITTEN_MOVED;

	if (event == EVENT_OTHER) { /* the connection closed, or the pin of the flow was removed */
		watched->closed_pin &= kept;
		return;
	}
	watched->closed = event == EVENT_CLOSES;
	watched->closed_pin = watched->closed && decision->place != PIN_NONE;
}

void check_packet(struct check *check, const struct flow *flow, enum event event,
		  const struct decision *decision, unsigned long line)
{
	struct watched *watched;
	bool goes_on;

	check->event++;
	check->packets++;
	if (flow->proto == FLOW_UDP && check->model->set.udp_move)
		return;
	watched = table_get(check, flow, decision->hash);
	if (event == EVENT_OPENS)
		open_check(check, watched, decision, line);
	if (decision->place != PIN_NONE)
		holder_follow(check, watched, decision);
	goes_on = flow_goes_on(check, watched, event);
	check->spoken += goes_on;
	if (goes_on && watched->backend != decision->backend)
		move_count(check, watched, decision, line);
	if (!goes_on || watched->backend != decision->backend)
		watched->arrived = check->event;
	closing_note(watched, event, decision);
	watched->used = true;
	watched->backend = decision->backend;
	watched->spoke = check->model->now;
	watched->lost = decision->written == WRITTEN_NOT_STORED;
}

/* May a pin written then still be live, given its coarse time? */
static bool last_pin_recent(const struct check *check, const struct last_pin *last)
{
	const struct model *model = check->model;
	uint64_t round = UINT64_C(65536) << model->pins.shift;
	uint64_t unit = UINT64_C(1) << model->pins.shift;
	uint64_t age = (model->now - last->written) % round;
	uint64_t life = (pins_life(&model->pins, model_idle_longest(model)) + 2) * unit;

	return last->flow && (age <= life || age >= round - 17 * unit);
}

/* The slots with a recent pin that names a backend other than the owner. */
static bool *slots_excused(const struct check *check)
{
	const struct model *model = check->model;
	bool *excused = memory(model->set.size, sizeof(*excused));

	for (size_t i = 0; i < (size_t)model->set.buckets * PINS_BUCKET; i++) {
		const struct last_pin *pin = &check->last_pins[i];
		uint32_t first, last;

		if (!last_pin_recent(check, pin))
			continue;
		first = flow_scale((uint32_t)check->flows[pin->flow - 1].hash, model->set.size);
		last = first;
		if (model->set.by_source) {
			first = 0;
			last = model->set.size - 1;
		}
		for (uint32_t slot = first; slot <= last; slot++)
			excused[slot] |= pin->backend != check->owners[slot];
	}
	return excused;
}

void check_tidied(struct check *check, unsigned long line)
{
	const struct model *model = check->model;
	uint64_t hold = model_idle_longest(model) * model->set.hold + 2 * SLOT_TICK;
	bool *excused = slots_excused(check);

	for (uint32_t i = 0; i < model->set.size; i++) {
		if (excused[i] || model->now - check->changed[i] <= hold)
			continue;
		check->slots_seen++;
		if (model->slots[i].former && check->unstable++ < COMPLAINTS)
			fprintf(stderr, "line %lu: slot %u is not stable\n", line, i);
	}
	free(excused);
}

bool check_report(const struct check *check)
{
	const struct pins *pins = &check->model->pins;

	printf("packets %" PRIu64 "\n", check->packets);
	printf("went-on %" PRIu64 "\n", check->spoken);
	printf("moved %" PRIu64 "\n", check->moved);
	printf("moved-down %" PRIu64 "\n", check->moved_down);
	printf("moved-lost %" PRIu64 "\n", check->moved_lost);
	for (unsigned int level = 0; level < PINS_LEVELS; level++)
		printf("pushed-out-%u %" PRIu64 "\n", level, pins->pushed_out[level]);
	printf("not-stored %" PRIu64 "\n", pins->not_stored);
	printf("opened %" PRIu64 "\n", check->opened);
	printf("stale %" PRIu64 "\n", check->stale);
	printf("slots-seen %" PRIu64 "\n", check->slots_seen);
	printf("unstable %" PRIu64 "\n", check->unstable);
	return !check->moved && !check->stale && !check->unstable;
}
