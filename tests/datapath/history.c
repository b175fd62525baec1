// SPDX-License-Identifier: GPL-2.0-only
// Random histories of the overlay: after each step of each command, killed ones included, every packet
// of a small set of addresses gets the verdict of a linear list.
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "tests/datapath/rig.h"

#define ENTRIES  512
#define DROPPED  1u
#define PASSED   2u
#define STEPS    400
#define HOSTS    8 // of a family, in the lowest three bits
#define WANT_MAX 24

struct history {
	struct test *test;
	struct rig *rig;
	uint64_t random;
	struct wants in_force, wanted;
	struct frame packets[2][HOSTS];
	struct addr src[2][HOSTS], dst[2];
	size_t step;
};

// xorshift64*: the same numbers in every run, so that a failure can be repeated.
static unsigned below(struct history *h, unsigned bound)
{
	h->random ^= h->random >> 12;
	h->random ^= h->random << 25;
	h->random ^= h->random >> 27;
	return (unsigned)((h->random * 0x2545f4914f6cdd1dull) >> 33) % bound;
}

static struct addr address(const char *text)
{
	struct addr a;
	struct err err = {0};

	if (addr_parse(text, strlen(text), &a, NULL)) {
		err_input(&err, "'%s' is not an address", text);
		test_die(&err);
	}
	return a;
}

static void make_environment(struct history *h)
{
	static const char *const bases[2] = {"10.0.0.0", "2001:db8::"};
	static const char *const dsts[2] = {"10.0.0.5", "2001:db8::5"};

	for (size_t family = 0; family < 2; family++) {
		h->dst[family] = address(dsts[family]);
		for (uint8_t host = 0; host < HOSTS; host++) {
			struct addr *src = &h->src[family][host];

			*src = address(bases[family]);
			src->bytes[addr_bits(src) / 8 - 1] = host;
			frame_udp_between(&h->packets[family][host], src, &h->dst[family], 0);
		}
	}
}

static struct overlay_want random_want(struct history *h)
{
	static const uint8_t lens[] = {0, 3, 2, 1, 1, 0};
	const struct addr *base = &h->src[below(h, 2)][below(h, HOSTS)];
	unsigned bits = addr_bits(base), pick = below(h, ARRAY_SIZE(lens) + 1);
	// A prefix of length 0, or with the last 3 … 0 bits free.
	uint8_t len = pick < ARRAY_SIZE(lens) ? (uint8_t)(bits - lens[pick]) : 0;

	return (struct overlay_want){
		.prefix = prefix_of(base, len),
		.kind = (uint8_t)below(h, OVERLAY_KINDS),
		.until = below(h, 4) ? OVERLAY_FOREVER : 1,
	};
}

static const struct overlay_want *find(const struct wants *w, const struct overlay_want *want)
{
	vec_each (w, old)
		if (old->kind == want->kind && !prefix_compare(&old->prefix, &want->prefix))
			return old;
	return NULL;
}

// What the next command wants: a part of the present entries, with new expiries, and new ones.
static void next_wants(struct history *h)
{
	unsigned keep = below(h, 101), more = below(h, 4) ? below(h, 4) : below(h, WANT_MAX);

	vec_free(&h->wanted);
	vec_each (&h->in_force, old) {
		if (below(h, 100) >= keep)
			continue;
		vec_push(&h->wanted, *old);
		if (!below(h, 4))
			vec_last(&h->wanted)->until = below(h, 2) ? OVERLAY_FOREVER : 1;
	}
	for (unsigned n = 0; n < more; n++) {
		struct overlay_want want = random_want(h);

		if (!find(&h->wanted, &want))
			vec_push(&h->wanted, want);
	}
	wants_sort(&h->wanted);
}

static bool knows(const struct overlay_want *want, const struct addr *src, const struct addr *dst)
{
	bool from = want->kind == OVERLAY_BLOCK_FROM || want->kind == OVERLAY_ALLOW_FROM;
	struct prefix host = prefix_of(from ? src : dst, (uint8_t)addr_bits(src));

	return want->until == OVERLAY_FOREVER && prefix_contains(&want->prefix, &host);
}

static uint32_t reference(const struct wants *w, const struct addr *src, const struct addr *dst)
{
	bool blocked = false;

	vec_each (w, want) {
		if (!knows(want, src, dst))
			continue;
		if (want->kind == OVERLAY_ALLOW_FROM || want->kind == OVERLAY_ALLOW_TO)
			return PASSED;
		blocked = true;
	}
	return blocked ? DROPPED : PASSED;
}

static void check_environment(struct history *h, const struct wants *w, const char *when)
{
	for (size_t family = 0; family < 2; family++)
		for (size_t host = 0; host < HOSTS; host++) {
			const struct addr *src = &h->src[family][host];
			uint32_t want = reference(w, src, &h->dst[family]);
			uint32_t got = rig_verdict(h->rig, &h->packets[family][host], 1);
			addr_text buf;

			CHECK(h->test, got == want, "step %zu, %s: %s from %s", h->step, when,
			      got == DROPPED ? "dropped" : "passed", addr_format(src, buf));
		}
}

// The entries that can be read are those in effect. Expired ones may have been removed.
static void check_rows(struct history *h)
{
	struct overlay_entries entries = {0};
	struct err err = {0};
	size_t living = 0, found = 0;

	if (overlay_read(h->rig->instance, &entries, &err))
		test_die(&err);
	vec_each (&h->in_force, want)
		living += want->until == OVERLAY_FOREVER;
	vec_each (&entries, entry) {
		struct overlay_want key = {entry->prefix, entry->kind, entry->until};
		const struct overlay_want *want = find(&h->in_force, &key);

		CHECK(h->test, entry->until == 1 || (want && want->until == entry->until),
		      "step %zu: an entry is read that is not effective", h->step);
		found += entry->until != 1;
	}
	CHECK(h->test, found == living, "step %zu: %zu entries are read, %zu are effective",
	      h->step, found, living);
	vec_free(&entries);
}

static void accept_history(struct history *h)
{
	vec_free(&h->in_force);
	h->in_force = h->wanted;
	h->wanted = (struct wants){0};
}

// One command, killed somewhere or not.
static void command(struct history *h)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	struct knobs *knobs = h->rig->instance->knobs;
	unsigned fate = below(h, 5);
	struct err err = {0};

	next_wants(h);
	rig_stage(h->rig, &h->wanted, &plan);
	check_environment(h, &h->in_force, "staged");
	if (fate == 0) { // killed before the commit
		CHECK(h->test, !overlay_tidy(h->rig->instance, &err), "%s", err.text);
		check_environment(h, &h->in_force, "tidied up");
	} else if (fate == 1) { // killed before the commit; only the next command tidies
		return;
	} else if (fate == 2) { // killed right after the commit
		knobs->epoch = plan.epoch;
		accept_history(h);
		check_environment(h, &h->in_force, "not cleared away");
	} else {
		overlay_commit(h->rig->instance, &plan);
		accept_history(h);
		check_environment(h, &h->in_force, "committed");
		CHECK(h->test, knobs->overlay == plan.bits, "bits 0x%x", knobs->overlay);
	}
	check_rows(h);
}

static void run_history(struct test *t, uint64_t seed)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_FREE struct history *h = mem_new(struct history);

	*h = (struct history){.test = t, .rig = rig, .random = seed};
	make_environment(h);
	for (h->step = 0; h->step < STEPS && !t->failed; h->step++)
		command(h);
	vec_free(&h->in_force);
	vec_free(&h->wanted);
}

static void test_history_1(struct test *t)
{
	run_history(t, 1);
}

static void test_history_2(struct test *t)
{
	run_history(t, 0x776569720a);
}

static void test_history_3(struct test *t)
{
	run_history(t, 0xfeedfacecafe);
}

const struct named_test history_tests[] = {
	{"history: one", test_history_1},
	{"history: another", test_history_2},
	{"history: a third", test_history_3},
	{NULL, NULL},
};
