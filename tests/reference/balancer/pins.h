// SPDX-License-Identifier: GPL-2.0-only
// The pins: buckets of eight words (docs/ring.md, "Pins").
#ifndef REF_PINS_H
#define REF_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PINS_BUCKET 8
#define PINS_LEVELS 4
#define PIN_OPENED  0
#define PIN_SEEN    1 /* once, in the middle */
#define PIN_SPOKE   2 /* again */
#define PIN_CLOSED  3
#define PIN_NONE    (-1)

struct pins {
	uint64_t *words; /* 0 is free */
	uint32_t buckets;
	unsigned int shift;               /* a unit of pin time is 2^shift jiffies */
	uint64_t linger;                  /* units of the life of a closed pin */
	uint64_t pushed_out[PINS_LEVELS]; /* living pins that had to go, by their level */
	uint64_t not_stored;
};

struct pin {
	uint32_t flow;
	uint16_t backend;
	uint8_t level;
	uint16_t time;
};

/* Effect of the packet on its flow. */
enum event { EVENT_OTHER, EVENT_OPENS, EVENT_CLOSES };

/* idle_tcp: jiffies. */
struct pins pins_new(uint32_t buckets, unsigned int hz, uint64_t idle_tcp);
void pins_free(struct pins *pins);

uint64_t pin_word(struct pin pin);
struct pin pin_of_word(uint64_t word);
bool pin_lives(const struct pins *pins, uint64_t word, uint64_t now, uint64_t idle);

/* Is the flow of a pin silent for longer than a closed one is remembered? */
bool pin_silent(const struct pins *pins, uint64_t word, uint64_t now);

/* The place of the flow's live pin or PIN_NONE; an expired one of this flow is freed. */
int64_t pins_find(struct pins *pins, uint64_t hash, uint64_t now, uint64_t idle);

/*
 * The place of a new pin, or PIN_NONE (counted). idle is the longest of the service: the others in
 * the bucket may be of any protocol. *ret_pushed: a live pin was replaced.
 */
int64_t pins_store(struct pins *pins, uint64_t hash, struct pin pin, uint64_t now, uint64_t idle,
		   bool *ret_pushed);

/* Units of the life of a pin. idle: jiffies. */
uint64_t pins_life(const struct pins *pins, uint64_t idle);

/* Writes backend and level of an existing pin, and the time unless both stay and the pin is younger
 * than an eighth of the life. Is the time the present one? */
bool pins_renew(struct pins *pins, int64_t place, uint16_t backend, enum event event, uint64_t now,
		uint64_t life);
/* Gives an existing pin to another connection of the flow. */
void pins_restart(struct pins *pins, int64_t place, uint16_t backend, uint64_t now);

/* Frees all expired pins. */
void pins_sweep(struct pins *pins, uint64_t now, uint64_t idle);

#endif
