// SPDX-License-Identifier: GPL-2.0-only
// A service as it runs: its pool, its ring or two on trial, its pins, and what a packet finds.
#ifndef REF_MODEL_H
#define REF_MODEL_H

#include "flow.h"
#include "pins.h"
#include "ring_text.h"
#include "slots.h"

struct settings {
	uint8_t key[SIPHASH_KEY];
	uint32_t size;
	uint32_t buckets;
	uint64_t idle_tcp; /* jiffies, SCTP too */
	uint64_t idle_udp;
	bool has_tcp; /* and SCTP */
	bool has_udp;
	bool by_source;
	bool udp_move;
	unsigned int hold; /* 1 to 16 */
	unsigned int hz;
};

struct model {
	struct settings set;
	uint64_t now;            /* jiffies */
	struct backends edited;  /* from the file */
	struct backends running; /* input of the last ring */
	struct backends before;  /* on trial: input of the previous ring */
	enum backend_state state[BACKEND_ID_MAX + 1];
	bool counts[BACKEND_ID_MAX + 1]; /* when the last ring was made */
	struct slot *slots;
	struct slot *slots_before;
	bool trial;
	struct pins pins;
};

enum written {
	WRITTEN_NOTHING,
	WRITTEN_PIN,
	WRITTEN_TIME,
	WRITTEN_KEPT,
	WRITTEN_MOVED,
	WRITTEN_REOPENED,
	WRITTEN_NOT_STORED,
};

struct decision {
	uint16_t backend; /* 0: no backend */
	enum written written;
	uint8_t level; /* level of a new pin, which names the backend above */
	uint32_t slot;
	uint64_t hash; /* of the tuple */
	int64_t place; /* number of the pin found or stored, or PIN_NONE */
	bool pushed;   /* a living pin had to go from there */
};

void model_init(struct model *model, const struct settings *settings);
void model_free(struct model *model);

uint64_t model_idle(const struct model *model, uint8_t proto);
uint64_t model_idle_longest(const struct model *model);

/* A new ring from the pool; on trial also the ring before from its own pool. */
void model_ring(struct model *model);
void model_tidy(struct model *model);

void model_trial_begin(struct model *model);
void model_trial_confirm(struct model *model);
void model_trial_back(struct model *model);

/* Whether a backend gets new flows. */
bool model_takes(const struct model *model, uint16_t id);

struct decision model_packet(struct model *model, const struct flow *flow, enum event event);

#endif
