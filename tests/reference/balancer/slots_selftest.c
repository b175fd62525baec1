// SPDX-License-Identifier: GPL-2.0-only
// Rules of slots and pins, case by case as in docs/ring.md.
#include "slots_selftest.h"

#include <stddef.h>

#include "pins.h"
#include "slots.h"
#include "verdicts.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* At tick 1000, with a hold of 100 ticks. */
struct step_case {
	const char *what;
	struct slot slot;
	uint16_t owner;
	struct slot wanted;
};

static const struct step_case steps[] = {
	{"rule 1, no backend", {5, 3, 950}, 0, {5, 3, 950}},
	{"rule 1, the owner", {5, 3, 950}, 5, {5, 3, 950}},
	{"rule 3", {0, 0, 0}, 7, {7, 7, 1000}},
	{"rule 4, stable", {5, 0, 0}, 7, {7, 5, 1000}},
	{"rule 4, pins only", {5, 5, 950}, 7, {7, 5, 1000}},
	{"rule 4, by age", {5, 3, 899}, 7, {7, 5, 1000}},
	{"rule 4, by age, former returns", {5, 3, 899}, 3, {3, 5, 1000}},
	{"rule 5", {5, 3, 900}, 3, {3, 3, 1000}},
	{"rule 6", {5, 3, 900}, 7, {7, 3, 900}},
	{"rule 6, future", {5, 3, 1001}, 7, {7, 3, 1001}},
};

struct tidy_case {
	const char *what;
	struct slot slot;
	bool others;
	struct slot wanted;
};

static const struct tidy_case tidies[] = {
	{"tidy stable", {5, 0, 0}, false, {5, 0, 0}},
	{"tidy changing", {5, 3, 900}, false, {5, 3, 900}},
	{"tidy by age", {5, 3, 899}, false, {5, 0, 0}},
	{"tidy pins only", {5, 5, 999}, false, {5, 0, 0}},
	{"tidy by age, others", {5, 3, 899}, true, {5, 5, 1000}},
	{"tidy pins only, others", {5, 5, 950}, true, {5, 5, 950}},
};

struct class_case {
	struct slot slot;
	uint64_t now;
	enum slot_class wanted;
};

#define TOP (UINT64_C(1) << 36)

static const struct class_case classes[] = {
	{{5, 0, 7}, 16, SLOT_STABLE},
	{{0, 0, 0}, 16, SLOT_STABLE},
	{{5, 5, 1}, 16, SLOT_PINS_ONLY},
	{{5, 3, 1}, 16 * 101 + 15, SLOT_CHANGING},
	{{5, 3, 1}, 16 * 102, SLOT_PINS_ONLY},
	{{5, 3, 1}, 15, SLOT_CHANGING},
	{{5, 3, TOP - 1}, 16 * TOP + 16 * 99 + 15, SLOT_CHANGING},
	{{5, 3, TOP - 1}, 16 * TOP + 16 * 100, SLOT_PINS_ONLY},
	{{5, 3, 0}, 16 * (TOP / 2 - 1), SLOT_PINS_ONLY},
	{{5, 3, 0}, 16 * (TOP / 2), SLOT_CHANGING},
};

static void test_slots(struct verdicts *verdicts)
{
	struct slot_clock clock = {.now = 16000, .hold_ticks = 100};

	for (size_t i = 0; i < COUNT(steps); i++)
		expect(verdicts, steps[i].what,
		       slot_word(slot_step(steps[i].slot, steps[i].owner, &clock)),
		       slot_word(steps[i].wanted));
	for (size_t i = 0; i < COUNT(tidies); i++)
		expect(verdicts, tidies[i].what,
		       slot_word(slot_tidy(tidies[i].slot, tidies[i].others, &clock)),
		       slot_word(tidies[i].wanted));
	for (size_t i = 0; i < COUNT(classes); i++) {
		clock.now = classes[i].now;
		expect(verdicts, "class", slot_class(classes[i].slot, &clock), classes[i].wanted);
	}
}

static void test_words(struct verdicts *verdicts)
{
	struct slot slot = {0x3fff, 1, 2};
	struct pin pin = {0x12345678, 0x3fff, 2, 0xffff};
	struct slot_clock move = {.now = 16000, .hold_ticks = 100, .never_changing = true};

	expect(verdicts, "slot word", slot_word(slot), 0xfffc001000000002);
	expect(verdicts, "pin word", pin_word(pin), 0x12345678fffeffff);
	expect(verdicts, "pin word back", pin_word(pin_of_word(pin_word(pin))), pin_word(pin));
	slot = slot_step((struct slot){5, 0, 0}, 7, &move);
	expect(verdicts, "rule 2", slot_word(slot), slot_word((struct slot){7, 0, 0}));
	expect(verdicts, "hold", slot_hold_ticks(33, 1), 3);
	expect(verdicts, "hold, even", slot_hold_ticks(16, 2), 2);
}

/* HZ 100: a unit is 128 jiffies. An idle of 1000 jiffies is 8 units, the life 9. */
static void test_pin_ages(struct verdicts *verdicts)
{
	struct pins pins = pins_new(1, 100, 100000);
	uint64_t word = pin_word((struct pin){1, 1, 0, 10});

	expect(verdicts, "shift of 100", pins.shift, 7);
	expect(verdicts, "age 9", pin_lives(&pins, word, 128 * 20 - 1, 1000), true);
	expect(verdicts, "age 10", pin_lives(&pins, word, 128 * 20, 1000), false);
	expect(verdicts, "age 65519", pin_lives(&pins, word, 128 * 65529, 1000), false);
	expect(verdicts, "age 65520", pin_lives(&pins, word, 128 * 65530, 1000), true);
	expect(verdicts, "age 0 again", pin_lives(&pins, word, 128 * 65546, 1000), true);
	pins_free(&pins);
	pins = pins_new(1, 1024, 100000);
	expect(verdicts, "shift of 1024", pins.shift, 10);
	pins_free(&pins);
}

static int64_t store(struct pins *pins, uint64_t hash, uint8_t level, uint64_t now)
{
	bool pushed;

	return pins_store(pins, hash, (struct pin){.backend = 9, .level = level}, now, 1000,
			  &pushed);
}

static void test_replacement(struct verdicts *verdicts)
{
	struct pins pins = pins_new(1, 1, 1000);

	for (uint8_t i = 0; i < PINS_BUCKET; i++)
		expect(verdicts, "free place", (uint64_t)store(&pins, i, i < 4, 100 + i / 2), i);
	expect(verdicts, "oldest of level 0", (uint64_t)store(&pins, 10, 0, 110), 4);
	expect(verdicts, "first of equals", (uint64_t)store(&pins, 11, 1, 111), 5);
	expect(verdicts, "level 0 first", (uint64_t)store(&pins, 12, 1, 112), 6);
	expect(verdicts, "then again", (uint64_t)store(&pins, 13, 1, 113), 7);
	expect(verdicts, "the new one of level 0", (uint64_t)store(&pins, 14, 1, 114), 4);
	expect(verdicts, "level 0 has no place", (uint64_t)store(&pins, 15, 0, 115), UINT64_MAX);
	expect(verdicts, "not stored", pins.not_stored, 1);
	expect(verdicts, "level 1 pushes level 1", (uint64_t)store(&pins, 16, 1, 116), 0);
	expect(verdicts, "pushed out", pins.pushed_out[0] * 16 + pins.pushed_out[1], 0x51);
	expect(verdicts, "expired place", (uint64_t)store(&pins, 17, 0, 1244), 1);
	expect(verdicts, "found", (uint64_t)pins_find(&pins, 17, 2386, 1000), 1);
	expect(verdicts, "dead", (uint64_t)pins_find(&pins, 17, 2387, 1000), UINT64_MAX);
	expect(verdicts, "freed", pins.words[1], 0);
	pins_free(&pins);
}

/* HZ 100: 60 s are 47 units, the life 53. */
static void test_closed(struct verdicts *verdicts)
{
	struct pins pins = pins_new(1, 100, 100000);
	uint64_t closed = pin_word((struct pin){1, 1, PIN_CLOSED, 10});
	uint64_t spoke = pin_word((struct pin){1, 1, PIN_SPOKE, 10});

	expect(verdicts, "linger", pins.linger, 53);
	expect(verdicts, "closed, age 53", pin_lives(&pins, closed, 128 * 63, 100000), true);
	expect(verdicts, "closed, age 54", pin_lives(&pins, closed, 128 * 64, 100000), false);
	expect(verdicts, "spoke, age 54", pin_lives(&pins, spoke, 128 * 64, 100000), true);
	expect(verdicts, "silent, age 53", pin_silent(&pins, spoke, 128 * 63), false);
	expect(verdicts, "silent, age 54", pin_silent(&pins, spoke, 128 * 64), true);
	pins.words[0] = spoke;
	pins_renew(&pins, 0, 1, EVENT_OPENS, 128 * 11, 53);
	expect(verdicts, "opens again", pin_of_word(pins.words[0]).level, PIN_SPOKE);
	pins_renew(&pins, 0, 1, EVENT_CLOSES, 128 * 11, 53);
	expect(verdicts, "closes", pin_of_word(pins.words[0]).level, PIN_CLOSED);
	pins_renew(&pins, 0, 1, EVENT_OTHER, 128 * 11, 53);
	expect(verdicts, "stays closed", pin_of_word(pins.words[0]).level, PIN_CLOSED);
	pins_restart(&pins, 0, 7, 128 * 12);
	expect(verdicts, "restarts", pins.words[0], pin_word((struct pin){1, 7, PIN_OPENED, 12}));
	pins_free(&pins);
	pins = pins_new(1, 100, 1000);
	expect(verdicts, "no longer than idle", pins.linger, 9);
	pins_free(&pins);
}

/* A full bucket of pins that have only opened, and a closed one among them. */
static void test_closed_goes_first(struct verdicts *verdicts)
{
	struct pins pins = pins_new(1, 1, 1000);

	for (uint8_t i = 0; i < PINS_BUCKET; i++)
		store(&pins, i, i == 5 ? PIN_CLOSED : PIN_OPENED, 100 + i);
	expect(verdicts, "closed goes first", (uint64_t)store(&pins, 20, PIN_OPENED, 110), 5);
	expect(verdicts, "closed has no place", (uint64_t)store(&pins, 21, PIN_CLOSED, 111),
	       UINT64_MAX);
	expect(verdicts, "pushed out", pins.pushed_out[PIN_CLOSED], 1);
	pins_free(&pins);
}

int slots_selftest(void)
{
	struct verdicts verdicts = {0};

	test_words(&verdicts);
	test_slots(&verdicts);
	test_pin_ages(&verdicts);
	test_replacement(&verdicts);
	test_closed(&verdicts);
	test_closed_goes_first(&verdicts);
	return verdicts_end(&verdicts);
}
