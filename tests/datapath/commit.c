// SPDX-License-Identifier: GPL-2.0-only
// All or nothing: staging, the commit by epoch, what a killed command leaves, full
// maps, counters.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/overlay_table.h"
#include "tests/datapath/rig.h"

#define ENTRIES 256

// The entries of the overlay, the elements of its prefixes and its knobs, to compare two moments.
struct state {
	struct overlay_entries entries;
	struct net_elements raws[2];
	uint64_t epoch;
	uint32_t bits;
};

static void state_read(const struct rig *rig, struct state *ret)
{
	struct err err = {0};

	*ret = (struct state){
		.epoch = rig->instance->knobs->epoch,
		.bits = rig->instance->knobs->overlay,
	};
	if (overlay_read(rig->instance, &ret->entries, &err) ||
	    nets_read(rig->instance, TABLE_NETS4, &ret->raws[0], &err) ||
	    nets_read(rig->instance, TABLE_NETS6, &ret->raws[1], &err))
		test_die(&err);
}

static bool same_entry(const struct overlay_entry *a, const struct overlay_entry *b)
{
	return !prefix_compare(&a->prefix, &b->prefix) && a->kind == b->kind &&
	       a->until == b->until && a->hits.packets == b->hits.packets;
}

static bool same_raw(const struct net_element *a, const struct net_element *b)
{
	return !prefix_compare(&a->prefix, &b->prefix) && a->kind == b->kind &&
	       !memcmp(&a->value, &b->value, sizeof(a->value));
}

static bool state_equal(const struct state *a, const struct state *b)
{
	bool equal = a->epoch == b->epoch && a->bits == b->bits && a->entries.n == b->entries.n;

	for (size_t n = 0; equal && n < a->entries.n; n++)
		equal = same_entry(&a->entries.at[n], &b->entries.at[n]);
	for (size_t six = 0; six < 2; six++) {
		equal = equal && a->raws[six].n == b->raws[six].n;
		for (size_t n = 0; equal && n < a->raws[six].n; n++)
			equal = same_raw(&a->raws[six].at[n], &b->raws[six].at[n]);
	}
	return equal;
}

static void state_free(struct state *s)
{
	vec_free(&s->entries);
	for (size_t six = 0; six < 2; six++)
		vec_free(&s->raws[six]);
}
#define CLEANUP_STATE CLEANUP(state_free)

// Stages permanent entries, and commits nothing.
static void stage_text(const struct rig *rig, const char *entries, struct overlay_plan *ret)
{
	CLEANUP_WANTS struct wants w = {0};

	wants_add(&w, entries, OVERLAY_FOREVER);
	rig_stage(rig, &w, ret);
}

#define BEFORE                                                                             \
	"block-from 192.0.2.1, block-from 10.0.0.0/8, block-from 2001:db8::1, block-from " \
	"2001:db8:1::/48"
#define AFTER                                                                              \
	"block-from 192.0.2.2, block-from 11.0.0.0/8, block-from 2001:db8::2, block-from " \
	"2001:db8:2::/48, block-from 2001:db8:1::/48, block-from 2001:db8:1:1::/64, "      \
	"allow-from 2001:db8:1::1"

// The verdicts of BEFORE and AFTER for these sources.
static const struct {
	const char *src;
	uint32_t before, after;
} sources[] = {
	{"192.0.2.1", DROPPED, PASSED},     {"10.1.2.3", DROPPED, PASSED},
	{"2001:db8::1", DROPPED, PASSED},   {"2001:db8:1::2", DROPPED, DROPPED},
	{"192.0.2.2", PASSED, DROPPED},     {"11.1.2.3", PASSED, DROPPED},
	{"2001:db8::2", PASSED, DROPPED},   {"2001:db8:2::1", PASSED, DROPPED},
	{"2001:db8:1::1", DROPPED, PASSED}, {"192.0.2.3", PASSED, PASSED},
};

static void check_sources(struct test *t, struct rig *rig, bool after, const char *when)
{
	for (size_t n = 0; n < ARRAY_SIZE(sources); n++)
		CHECK(t,
		      rig_verdict_from(rig, sources[n].src) ==
			      (after ? sources[n].after : sources[n].before),
		      "%s: wrong verdict for %s", when, sources[n].src);
}

static void test_staged_has_no_effect(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};

	rig_overlay_text(rig, BEFORE);
	check_sources(t, rig, false, "before");
	stage_text(rig, AFTER, &plan);
	CHECK(t, plan.added == 6 && plan.removed == 3 && plan.changed == 0,
	      "plan: %zu added, %zu changed, %zu removed", plan.added, plan.changed, plan.removed);
	check_sources(t, rig, false, "staged");
	overlay_commit(rig->instance, &plan);
	check_sources(t, rig, true, "committed");
}

// A wider and a longer prefix, one staged to be added or removed.
static void test_staged_does_not_hide(struct test *t)
{
	static const struct {
		const char *before, *after;
		uint32_t want_before, want_after;
	} cases[] = {
		{"block-from 10.0.0.0/8", "block-from 10.0.0.0/8, block-from 10.1.0.0/16", DROPPED,
		 DROPPED},
		{"block-from 10.1.0.0/16", "block-from 10.0.0.0/8, block-from 10.1.0.0/16", DROPPED,
		 DROPPED},
		{"block-from 10.0.0.0/8, block-from 10.1.0.0/16", "block-from 10.0.0.0/8", DROPPED,
		 DROPPED},
		{"block-from 10.0.0.0/8, block-from 10.1.0.0/16", "block-from 10.1.0.0/16", DROPPED,
		 DROPPED},
		{"block-from 10.0.0.0/8, block-from 10.1.0.0/16", "", DROPPED, PASSED},
		{"block-from 10.0.0.0/8, block-from 10.1.0.0/16", "block-from 10.1.2.0/24", DROPPED,
		 DROPPED},
		{"block-from 10.1.2.0/24, block-from 10.1.2.0/25", "block-from 10.0.0.0/8", DROPPED,
		 DROPPED},
	};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
		struct knobs *knobs = rig->instance->knobs;

		rig_overlay_text(rig, "");
		rig_overlay_text(rig, cases[n].before);
		stage_text(rig, cases[n].after, &plan);
		CHECK(t, rig_verdict_from(rig, "10.1.2.3") == cases[n].want_before,
		      "'%s' with '%s' staged: wrong verdict", cases[n].before, cases[n].after);
		// A commit that is killed before dead elements are removed.
		knobs->epoch = plan.epoch;
		CHECK(t, rig_verdict_from(rig, "10.1.2.3") == cases[n].want_after,
		      "'%s' to '%s', the dead not yet cleared away: wrong verdict", cases[n].before,
		      cases[n].after);
		overlay_commit(rig->instance, &plan);
		CHECK(t, rig_verdict_from(rig, "10.1.2.3") == cases[n].want_after,
		      "'%s' to '%s': wrong verdict", cases[n].before, cases[n].after);
	}
}

// Tests from another thread during commits: a packet of the first and one of the last entry.
struct watcher {
	struct rig *rig;
	const struct frame *first, *last, *always;
	bool stop;
	unsigned long rounds, torn, leaked;
};

static void *watch(void *arg)
{
	struct watcher *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		const __u64 *epoch = &w->rig->instance->knobs->epoch;
		uint64_t start = __atomic_load_n(epoch, __ATOMIC_SEQ_CST);
		uint32_t a = rig_verdict(w->rig, w->first, 1);
		uint32_t b = rig_verdict(w->rig, w->last, 1);
		uint32_t c = rig_verdict(w->rig, w->first, 1);

		// With at most one commit between them, the last can differ from one of the tests
		// of the first, but not from both.
		w->torn +=
			__atomic_load_n(epoch, __ATOMIC_SEQ_CST) - start <= 1 && a == c && b != a;
		w->leaked += w->always && rig_verdict(w->rig, w->always, 1) == PASSED;
		w->rounds++;
	}
	return NULL;
}

static void add_hosts(struct wants *w, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct overlay_entry want = {.kind = OVERLAY_BLOCK_FROM, .until = OVERLAY_FOREVER};
		struct addr addr = addr_from_v4(__builtin_bswap32(first + i));

		want.prefix = prefix_of(&addr, 32);
		vec_push(w, want);
	}
}

// /24s below 10.0.0.0/8, from 10.1.0.0/24 on.
static void add_nets(struct wants *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct overlay_entry want = {.kind = OVERLAY_BLOCK_FROM, .until = OVERLAY_FOREVER};
		struct addr addr = addr_from_v4(__builtin_bswap32(0x0a010000 + (i << 8)));

		want.prefix = prefix_of(&addr, 24);
		vec_push(w, want);
	}
}

static void test_commit_flips_at_once(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(8192);
	CLEANUP_WANTS struct wants many = {0}, none = {0};
	struct frame first = *frame_source("172.16.0.0"), last = *frame_source("172.16.15.159");
	struct watcher w = {.rig = rig, .first = &first, .last = &last};
	pthread_t thread;

	add_hosts(&many, 0xac100000, 4000);
	pthread_create(&thread, NULL, watch, &w);
	for (size_t round = 0; round < suite_repeats(10); round++) {
		rig_overlay(rig, &many);
		CHECK(t, rig_verdict(rig, &first, 1) == DROPPED, "not effective");
		rig_overlay(rig, &none);
		CHECK(t, rig_verdict(rig, &last, 1) == PASSED, "still effective");
	}
	__atomic_store_n(&w.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK(t, !w.torn, "in %lu tests only a part was effective %lu times", w.rounds, w.torn);
}

// A wider prefix stays while many longer ones inside it are added and removed.
static void test_wider_prefix_stays(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(8192);
	CLEANUP_WANTS struct wants many = {0};
	struct frame first = *frame_source("192.0.2.1"), always = *frame_source("10.12.183.1");
	struct watcher w = {.rig = rig, .first = &first, .last = &first, .always = &always};
	pthread_t thread;

	rig_overlay_text(rig, "block-from 10.0.0.0/8");
	wants_add(&many, "block-from 10.0.0.0/8", OVERLAY_FOREVER);
	add_nets(&many, 3000);
	pthread_create(&thread, NULL, watch, &w);
	for (size_t round = 0; round < suite_repeats(10); round++) {
		rig_overlay(rig, &many);
		rig_overlay_text(rig, "block-from 10.0.0.0/8");
	}
	__atomic_store_n(&w.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK(t, !w.leaked, "%lu packets: %lu passed, although 10.0.0.0/8 was blocked all the time",
	      w.rounds, w.leaked);
}

// Sends one packet without a pause.
struct stream {
	struct rig *rig;
	const struct frame *frame;
	bool stop;
};

static void *flow(void *arg)
{
	struct stream *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
		rig_verdict(s->rig, s->frame, 10000);
	return NULL;
}

static uint64_t counted(struct rig *rig, enum weir_reason reason)
{
	struct err err = {0};

	if (counters_read(rig->instance, rig->counters, &err))
		test_die(&err);
	return counters_reason(rig->counters, reason).packets;
}

// A packet that is interrupted for the whole duration of a command sees a part of either overlay.
// Test runs can be preempted, unlike a driver. A window of a microsecond would affect more packets
// than these.
#define FALLEN_MAX 5

// One overlay after the other, each of which drops (or passes) the packet for another reason: each
// packet meets the old overlay or the new one.
static void between(struct test *t, const char *const *overlays, size_t n, enum weir_reason never)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame frame;
	struct stream s = {.rig = rig, .frame = &frame};
	uint64_t fallen;
	pthread_t thread;

	frame_udp(&frame, "10.1.2.3", "203.0.113.1", 0);
	rig_overlay_text(rig, overlays[0]);
	pthread_create(&thread, NULL, flow, &s);
	for (size_t round = 1; round < suite_repeats(600); round++) {
		CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};

		stage_text(rig, overlays[round * (round / n % (n - 1) + 1) % n], &plan);
		usleep(200); // a command writes its files here
		overlay_commit(rig->instance, &plan);
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	fallen = counted(rig, never);
	CHECK(t, fallen <= FALLEN_MAX, "%llu packets during 600 commits counted as '%s'",
	      (unsigned long long)fallen, reason_name(never));
}

static void test_between_blocks(struct test *t)
{
	static const char *const overlays[] = {
		"block-from 10.1.2.3",  "block-to 203.0.113.0/24", "block-from 10.1.2.0/24",
		"block-to 203.0.113.1", "block-from 10.0.0.0/8",
	};

	between(t, overlays, ARRAY_SIZE(overlays), REASON_PASS_DEFAULT);
}

static void test_between_allows(struct test *t)
{
	static const char *const overlays[] = {
		"block-from 10.1.2.3, allow-from 10.1.2.3",
		"block-from 10.1.2.3, allow-to 203.0.113.0/24",
		"block-from 10.1.2.3, allow-from 10.1.2.0/24",
		"block-from 10.1.2.3, allow-to 203.0.113.1",
		"block-from 10.1.2.3, allow-from 10.0.0.0/8",
	};

	between(t, overlays, ARRAY_SIZE(overlays), REASON_DROP_BLOCK_FROM);
}

// Hosts, and elements of the maps of prefixes.
static size_t elements(const struct rig *rig)
{
	CLEANUP_STATE struct state state;
	size_t n = 0;

	state_read(rig, &state);
	vec_each (&state.entries, entry)
		n += prefix_is_host(&entry->prefix);
	return n + state.raws[0].n + state.raws[1].n;
}

static void tidy(struct test *t, const struct rig *rig)
{
	struct err err = {0};

	CHECK(t, !overlay_tidy(rig->instance, &err), "overlay_tidy: %s", err.text);
	CHECK(t, rig->instance->knobs->staging == rig->instance->knobs->epoch, "still staging");
}

// Killed after staging: nothing is left after a tidy.
static void test_killed_before_commit(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0}, next = {0};
	struct err err = {0};
	struct overlay_entries before = {0}, after = {0};

	rig_overlay_text(rig, BEFORE);
	rig_verdict_from(rig, "192.0.2.1");
	overlay_read(rig->instance, &before, &err);
	stage_text(rig, AFTER, &plan);
	CHECK(t, rig->instance->knobs->staging != rig->instance->knobs->epoch,
	      "nothing was staged");
	tidy(t, rig);
	CHECK(t, elements(rig) == 4, "%zu elements are left in the maps", elements(rig));
	check_sources(t, rig, false, "tidied up");
	overlay_read(rig->instance, &after, &err);
	CHECK(t, before.n == after.n && before.n == 4, "%zu entries, before %zu", after.n,
	      before.n);
	for (size_t n = 0; n < after.n && n < before.n; n++)
		CHECK(t,
		      after.at[n].until == before.at[n].until &&
			      after.at[n].hits.packets >= before.at[n].hits.packets,
		      "entry %zu is not as before", n);
	stage_text(rig, AFTER, &next);
	overlay_commit(rig->instance, &next);
	check_sources(t, rig, true, "next command");
	vec_free(&before);
	vec_free(&after);
}

// The next command need not call overlay_tidy: staged entries of a killed command must not become
// effective with its own.
static void test_killed_then_other_command(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};

	rig_overlay_text(rig, BEFORE);
	stage_text(rig, AFTER, &plan);
	rig_overlay_text(rig, BEFORE ", block-from 198.18.0.0/15");
	check_sources(t, rig, false, "after another command");
	CHECK(t, rig_verdict_from(rig, "198.18.1.1") == DROPPED, "the other command has no effect");
	tidy(t, rig);
	check_sources(t, rig, false, "tidied up");
}

// Killed while staging: some entries were written, some not.
static void test_killed_while_staging(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	struct overlay_entry lost;
	union net_key key;
	struct err err = {0};

	rig_overlay_text(rig, BEFORE);
	stage_text(rig, AFTER, &plan);
	want_parse("block-from 11.0.0.0/8", OVERLAY_FOREVER, &lost, &err);
	net_key(&lost.prefix, lost.kind, &key);
	CHECK(t, !bpf_map_delete_elem(rig->instance->nets4, &key), "was not staged");
	tidy(t, rig);
	check_sources(t, rig, false, "tidied up");
	rig_overlay_text(rig, AFTER);
	check_sources(t, rig, true, "next command");
}

// Killed right after the store that commits: everything is effective, and the next commit removes
// dead elements.
static void test_killed_after_commit(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};

	rig_overlay_text(rig, BEFORE);
	stage_text(rig, AFTER, &plan);
	rig->instance->knobs->epoch = plan.epoch;
	check_sources(t, rig, true, "killed after the store");
	tidy(t, rig);
	check_sources(t, rig, true, "tidied up");
	rig_overlay_text(rig, AFTER ", block-from 198.18.0.1");
	check_sources(t, rig, true, "next command");
	CHECK(t, elements(rig) == 8, "%zu elements are left", elements(rig));
	CHECK(t,
	      rig->instance->knobs->overlay ==
		      (OVERLAY_HOSTS4_FROM | OVERLAY_HOSTS6_FROM |
		       OVERLAY_NETS4 << OVERLAY_BLOCK_FROM | OVERLAY_NETS6 << OVERLAY_BLOCK_FROM),
	      "bits 0x%x", rig->instance->knobs->overlay);
}

// Fills all four maps completely.
static void fill(struct wants *w, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		CLEANUP_FREE char *entries =
			mem_printf("block-from 10.0.0.%u, block-from 172.16.%u.0/24, "
				   "block-from 2001:db8::%x, block-from 2001:db8:%x::/48",
				   i + 1, i, i + 1, i + 1);

		wants_add(w, entries, OVERLAY_FOREVER);
	}
}

// Refused: the first `n` entries of each map, changed entries, and then one too many.
static void refused(struct test *t, const struct rig *rig, unsigned n, const char *more)
{
	CLEANUP_STATE struct state before, after;
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	CLEANUP_WANTS struct wants w = {0};
	struct err err = {0};
	int code;

	fill(&w, n);
	wants_add(&w, more, OVERLAY_FOREVER);
	wants_add(&w, "allow-from 10.0.0.1, allow-from 2001:db8::1", OVERLAY_FOREVER);
	wants_sort(&w);
	state_read(rig, &before);
	code = overlay_stage_whole(rig->instance, w.at, w.n, &plan, &err);
	state_read(rig, &after);
	CHECK(t, code == -ENOSPC && err.kind == ERR_REFUSED, "'%s' was not refused: %d", more,
	      code);
	CHECK(t, strstr(err.text, "limit of 16"), "the message lacks the limit: '%s'", err.text);
	CHECK(t, state_equal(&before, &after), "'%s' was refused but changed the overlay", more);
	CHECK(t, rig->instance->knobs->staging == rig->instance->knobs->epoch, "still staging");
}

static void test_full_map(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(16);
	CLEANUP_WANTS struct wants w = {0};

	fill(&w, 16);
	rig_overlay(rig, &w);
	refused(t, rig, 16, "block-from 10.0.1.1");
	refused(t, rig, 16, "block-from 10.1.0.0/16");
	refused(t, rig, 16, "block-from 2001:db8::ffff");
	refused(t, rig, 16, "block-from 2001:db8:ffff::/64");
	// The same address or prefix for another kind is an entry of its own.
	refused(t, rig, 16, "allow-to 10.0.0.16");
	refused(t, rig, 16, "allow-to 172.16.0.0/24");
	CHECK(t, rig_verdict_from(rig, "10.0.0.16") == DROPPED, "the last host is lost");
	CHECK(t, rig_verdict_from(rig, "172.16.15.1") == DROPPED, "the last prefix is lost");
	CHECK(t, rig_verdict_from(rig, "2001:db8::10") == DROPPED, "the last IPv6 host is lost");
	CHECK(t, rig_verdict_from(rig, "2001:db8:10::1") == DROPPED,
	      "the last IPv6 prefix is lost");
}

// A map with room is not written either when another map has no room.
static void test_one_map_full(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(16);
	CLEANUP_WANTS struct wants w = {0};

	fill(&w, 15);
	rig_overlay(rig, &w);
	refused(t, rig, 15,
		"block-from 10.0.1.1, block-from 2001:db8:fffe::/48, "
		"block-from 2001:db8:ffff::/48");
	refused(t, rig, 15, "block-from 10.0.1.1, block-from 10.0.1.2, block-from 10.1.0.0/16");
}

// The entries of a full map can still be changed and removed.
static void test_full_map_changes(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(16);
	CLEANUP_WANTS struct wants w = {0}, less = {0};
	uint64_t until = rig_after_ms(rig, 3600 * 1000);

	fill(&w, 15);
	rig_overlay(rig, &w);
	wants_add(&w, "allow-from 10.0.0.15", OVERLAY_FOREVER);
	vec_each (&w, want)
		want->until = until;
	rig_overlay(rig, &w);
	CHECK(t, rig_verdict_from(rig, "10.0.0.15") == PASSED,
	      "the second kind of a host has no effect");
	CHECK(t, rig_verdict_from(rig, "172.16.14.1") == DROPPED,
	      "the changed prefix has no effect");
	fill(&less, 14);
	rig_overlay(rig, &less);
	CHECK(t, rig_verdict_from(rig, "172.16.14.1") == PASSED,
	      "the removed prefix is still effective");
	wants_add(&less, "block-from 198.18.0.0/15, block-from 198.51.100.1", OVERLAY_FOREVER);
	rig_overlay(rig, &less);
	CHECK(t, rig_verdict_from(rig, "198.18.0.1") == DROPPED, "the new prefix has no effect");
}

// Expired entries make room.
static void test_full_of_expired(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(16);
	CLEANUP_WANTS struct wants w = {0}, fresh = {0};

	fill(&w, 16);
	vec_each (&w, want)
		want->until = 1;
	rig_overlay(rig, &w);
	CHECK(t, rig_verdict_from(rig, "10.0.0.16") == PASSED, "an expired entry is effective");
	wants_add(&fresh, "block-from 198.18.0.0/15, block-from 198.51.100.1", OVERLAY_FOREVER);
	rig_overlay(rig, &fresh);
	CHECK(t, rig_verdict_from(rig, "198.18.0.1") == DROPPED, "the new prefix has no effect");
	CHECK(t, rig_verdict_from(rig, "198.51.100.1") == DROPPED, "the new host has no effect");
}

static double seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

static void test_batch(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(WEIR_OVERLAY_MAX);
	CLEANUP_WANTS struct wants w = {0};
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	struct timespec start;

	add_hosts(&w, 0x0b000000, 100000);
	clock_gettime(CLOCK_MONOTONIC, &start);
	rig_stage(rig, &w, &plan);
	CHECK(t, plan.added == 100000, "%zu added", plan.added);
	CHECK(t, rig_verdict_from(rig, "11.0.0.0") == PASSED, "a staged entry is effective");
	overlay_commit(rig->instance, &plan);
	printf("100,000 addresses staged and committed in %.0f ms\n", seconds_since(&start) * 1e3);
	CHECK(t, rig_verdict_from(rig, "11.0.0.0") == DROPPED, "the first is not effective");
	CHECK(t, rig_verdict_from(rig, "11.0.195.80") == DROPPED, "the middle is not effective");
	CHECK(t, rig_verdict_from(rig, "11.1.134.159") == DROPPED, "the last is not effective");
	CHECK(t, rig_verdict_from(rig, "11.1.134.160") == PASSED,
	      "one entry too many is effective");
	rig_overlay_text(rig, "");
	CHECK(t, rig_verdict_from(rig, "11.0.0.0") == PASSED, "still effective");
	CHECK(t, rig->instance->knobs->overlay == 0, "bits 0x%x", rig->instance->knobs->overlay);
}

static void test_counters_survive(struct test *t)
{
	static const char *const entries[] = {"block-from 192.0.2.1", "block-from 10.0.0.0/8",
					      "block-from 2001:db8::1",
					      "block-from 2001:db8:1::/48"};
	static const char *const srcs[] = {"192.0.2.1", "10.1.2.3", "2001:db8::1", "2001:db8:1::2"};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_WANTS struct wants w = {0};

	rig_overlay_text(rig, BEFORE);
	for (size_t n = 0; n < ARRAY_SIZE(srcs); n++)
		rig_verdict(rig, frame_source(srcs[n]), 3);
	// Another kind for the same address, other entries, then another expiry, then a tidy.
	rig_overlay_text(rig, BEFORE ", allow-to 192.0.2.1, allow-to 10.0.0.0/8, "
				     "block-from 0.0.0.0/0, block-from 198.18.0.1");
	wants_add(&w, BEFORE, rig_after_ms(rig, 3600 * 1000));
	rig_overlay(rig, &w);
	tidy(t, rig);
	for (size_t n = 0; n < ARRAY_SIZE(srcs); n++) {
		struct overlay_hits hits = rig_hits(rig, entries[n]);
		uint64_t bytes = strchr(srcs[n], ':') ? 48 : 28;

		CHECK(t, hits.packets == 3 && hits.bytes == 3 * bytes,
		      "%s has %llu packets, %llu bytes", entries[n],
		      (unsigned long long)hits.packets, (unsigned long long)hits.bytes);
	}
}

// The counters of an entry that is added again begin at zero.
static void test_counters_begin_anew(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);

	rig_overlay_text(rig, BEFORE);
	rig_verdict_from(rig, "192.0.2.1");
	rig_verdict_from(rig, "10.1.2.3");
	rig_overlay_text(rig, "");
	CHECK(t, !rig_hits(rig, "block-from 192.0.2.1").packets, "counted without an entry");
	rig_overlay_text(rig, BEFORE);
	CHECK(t, !rig_hits(rig, "block-from 192.0.2.1").packets, "the host kept its counters");
	CHECK(t, !rig_hits(rig, "block-from 10.0.0.0/8").packets, "the prefix kept its counters");
}

const struct named_test commit_tests[] = {
	{"commit: staged has no effect", test_staged_has_no_effect},
	{"commit: staged and dead prefixes hide nothing", test_staged_does_not_hide},
	{"commit: flips all at once", test_commit_flips_at_once},
	{"commit: a wider prefix stays effective", test_wider_prefix_stays},
	{"commit: no packet between two blocks", test_between_blocks},
	{"commit: no packet between two allows", test_between_allows},
	{"commit: killed before it", test_killed_before_commit},
	{"commit: killed, then another command", test_killed_then_other_command},
	{"commit: killed while staging", test_killed_while_staging},
	{"commit: killed after it", test_killed_after_commit},
	{"commit: a full map refuses", test_full_map},
	{"commit: one full map of four refuses", test_one_map_full},
	{"commit: a full map can be changed", test_full_map_changes},
	{"commit: expired entries make room", test_full_of_expired},
	{"commit: 100,000 addresses", test_batch},
	{"commit: counters survive a change", test_counters_survive},
	{"commit: counters begin anew", test_counters_begin_anew},
	{NULL, NULL},
};
