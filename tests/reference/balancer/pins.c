// SPDX-License-Identifier: GPL-2.0-only
// The pins: buckets of eight words.
#include "pins.h"

#include <stdlib.h>

#include "flow.h"
#include "words.h"

#define AGE_FUTURE 65519 /* an age above that is a time a little in the future */
#define LINGER_S   60

static uint64_t pins_units(const struct pins *pins, uint64_t jiffies)
{
	uint64_t unit = UINT64_C(1) << pins->shift;

	return (jiffies + unit - 1) / unit;
}

uint64_t pins_life(const struct pins *pins, uint64_t idle)
{
	return pins_units(pins, idle) + pins_units(pins, idle) / 7;
}

struct pins pins_new(uint32_t buckets, unsigned int hz, uint64_t idle_tcp)
{
	struct pins pins = {.buckets = buckets};
	uint64_t linger = (uint64_t)hz * LINGER_S;

	pins.words = memory((size_t)buckets * PINS_BUCKET, sizeof(*pins.words));
	while (1U << pins.shift < hz)
		pins.shift++;
	pins.linger = pins_life(&pins, linger < idle_tcp ? linger : idle_tcp);
	return pins;
}

void pins_free(struct pins *pins)
{
	free(pins->words);
	*pins = (struct pins){0};
}

uint64_t pin_word(struct pin pin)
{
	return (uint64_t)pin.flow << 32 | (uint64_t)pin.backend << 18 | (uint64_t)pin.level << 16 |
	       pin.time;
}

struct pin pin_of_word(uint64_t word)
{
	return (struct pin){
		.flow = (uint32_t)(word >> 32),
		.backend = (uint16_t)(word >> 18 & 0x3fff),
		.level = word >> 16 & 3,
		.time = (uint16_t)word,
	};
}

static uint16_t pins_time(const struct pins *pins, uint64_t now)
{
	return (uint16_t)(now >> pins->shift);
}

static unsigned int pin_age(const struct pins *pins, uint64_t word, uint64_t now)
{
	unsigned int age = (uint16_t)(pins_time(pins, now) - pin_of_word(word).time);

	return age > AGE_FUTURE ? 0 : age;
}

bool pin_lives(const struct pins *pins, uint64_t word, uint64_t now, uint64_t idle)
{
	bool closed = pin_of_word(word).level == PIN_CLOSED;

	return word && pin_age(pins, word, now) <= (closed ? pins->linger : pins_life(pins, idle));
}

bool pin_silent(const struct pins *pins, uint64_t word, uint64_t now)
{
	return pin_age(pins, word, now) > pins->linger;
}

static int64_t bucket_first(const struct pins *pins, uint64_t hash)
{
	return (int64_t)flow_scale((uint32_t)(hash >> 32), pins->buckets) * PINS_BUCKET;
}

int64_t pins_find(struct pins *pins, uint64_t hash, uint64_t now, uint64_t idle)
{
	int64_t first = bucket_first(pins, hash);

	for (int64_t place = first; place < first + PINS_BUCKET; place++) {
		uint64_t *word = &pins->words[place];

		if (!*word || pin_of_word(*word).flow != (uint32_t)hash)
			continue;
		if (pin_lives(pins, *word, now, idle))
			return place;
		*word = 0;
	}
	return PIN_NONE;
}

/* A closed pin has the least value, then the lower levels. */
static unsigned int level_worth(uint8_t level)
{
	return level == PIN_CLOSED ? 0 : level + 1U;
}

/* Is a replaced rather than b? The one of less value, then the older one; of equals the first
 * stays. */
static bool pin_goes_before(const struct pins *pins, uint64_t a, uint64_t b, uint64_t now)
{
	unsigned int worth_a = level_worth(pin_of_word(a).level);
	unsigned int worth_b = level_worth(pin_of_word(b).level);

	if (worth_a != worth_b)
		return worth_a < worth_b;
	return pin_age(pins, a, now) > pin_age(pins, b, now);
}

/* The first slot that is free or expired, else the slot of the pin to be replaced. */
static int64_t bucket_place(const struct pins *pins, int64_t first, uint64_t now, uint64_t idle)
{
	int64_t best = first;

	for (int64_t place = first; place < first + PINS_BUCKET; place++) {
		if (!pin_lives(pins, pins->words[place], now, idle))
			return place;
		if (pin_goes_before(pins, pins->words[place], pins->words[best], now))
			best = place;
	}
	return best;
}

int64_t pins_store(struct pins *pins, uint64_t hash, struct pin pin, uint64_t now, uint64_t idle,
		   bool *ret_pushed)
{
	int64_t place = bucket_place(pins, bucket_first(pins, hash), now, idle);
	uint64_t *word = &pins->words[place];
	uint8_t level = pin_of_word(*word).level;

	*ret_pushed = pin_lives(pins, *word, now, idle);
	if (*ret_pushed && level_worth(level) > level_worth(pin.level)) {
		*ret_pushed = false;
		pins->not_stored++;
		return PIN_NONE;
	}
	if (*ret_pushed)
		pins->pushed_out[level]++;
	pin.flow = (uint32_t)hash;
	pin.time = pins_time(pins, now);
	*word = pin_word(pin);
	return place;
}

bool pins_renew(struct pins *pins, int64_t place, uint16_t backend, enum event event, uint64_t now,
		uint64_t life)
{
	struct pin pin = pin_of_word(pins->words[place]);
	unsigned int age = pin_age(pins, pins->words[place], now);
	uint8_t level = pin.level;

	if (event == EVENT_CLOSES)
		level = PIN_CLOSED;
	else if (event == EVENT_OTHER && pin.level != PIN_CLOSED)
		level = PIN_SPOKE;
	if (level != pin.level || backend != pin.backend || age >= life / 8)
		pin.time = pins_time(pins, now);
	pin.backend = backend;
	pin.level = level;
	pins->words[place] = pin_word(pin);
	return pin.time == pins_time(pins, now);
}

void pins_restart(struct pins *pins, int64_t place, uint16_t backend, uint64_t now)
{
	struct pin pin = pin_of_word(pins->words[place]);

	pin.backend = backend;
	pin.level = PIN_OPENED;
	pin.time = pins_time(pins, now);
	pins->words[place] = pin_word(pin);
}

void pins_sweep(struct pins *pins, uint64_t now, uint64_t idle)
{
	for (size_t i = 0; i < (size_t)pins->buckets * PINS_BUCKET; i++)
		if (!pin_lives(pins, pins->words[i], now, idle))
			pins->words[i] = 0;
}
