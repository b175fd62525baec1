// SPDX-License-Identifier: GPL-2.0-only
// The pins: buckets of eight words (docs/ring.md, "Pins").
#ifndef REF_PINS_H
#define REF_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PINS_BUCKET 8
#define PINS_LEVELS 3 /* 0 opened, 1 seen once in the middle, 2 spoke again */
#define PIN_NONE    (-1)

struct pins {
	uint64_t *words; /* 0 is free */
	uint32_t buckets;
	unsigned int shift;               /* a unit of pin time is 2^shift jiffies */
	uint64_t pushed_out[PINS_LEVELS]; /* living pins that had to go, by their level */
	uint64_t not_stored;
};

struct pin {
	uint32_t flow;
	uint16_t backend;
	uint8_t level;
	uint16_t time;
};

struct pins pins_new(uint32_t buckets, unsigned int hz);
void pins_free(struct pins *pins);

uint64_t pin_word(struct pin pin);
struct pin pin_of_word(uint64_t word);
bool pin_lives(const struct pins *pins, uint64_t word, uint64_t now, uint64_t idle);

/* The place of the flow's living pin or PIN_NONE; a dead one of this flow is freed. */
int64_t pins_find(struct pins *pins, uint64_t hash, uint64_t now, uint64_t idle);

/*
 * The place of a new pin, or PIN_NONE (counted). idle is the longest of the service: the others in
 * the bucket may be of any protocol. *ret_pushed: a living pin had to go.
 */
int64_t pins_store(struct pins *pins, uint64_t hash, struct pin pin, uint64_t now, uint64_t idle,
		   bool *ret_pushed);

/* Writes time, backend and level of a pin that is there. */
void pins_renew(struct pins *pins, int64_t place, uint16_t backend, bool opens, uint64_t now);

/* Frees all that do not live. */
void pins_sweep(struct pins *pins, uint64_t now, uint64_t idle);

#endif
