// SPDX-License-Identifier: GPL-2.0-only
// Random histories of the overlay: after each step of each command, killed ones included, every
// packet of a small set of addresses gets the reason that a linear list has, and the entry that
// decides, and no other, counts it. In half of the commands all entries are hosts, so that both
// ways see packets.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "tests/datapath/rig.h"

#define ENTRIES  512
#define STEPS    400
#define HOSTS    8 // hosts of a family, in the lowest three bits
#define WANT_MAX 24

struct history {
	struct test *test;
	struct rig *rig;
	uint64_t random;
	struct wants in_force, wanted, former;
	struct frame packets[2][HOSTS];
	struct addr src[2][HOSTS], dst[2];
	size_t step;
	// One environment: the overlay before the first packet, and the expected counters of each
	// entry.
	struct overlay_entries before;
	struct hits {
		struct overlay_hits *at;
		size_t n, cap;
	} hits;
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

static struct overlay_entry random_want(struct history *h, bool hosts)
{
	static const uint8_t lens[] = {0, 3, 2, 1, 1, 0};
	const struct addr *base = &h->src[below(h, 2)][below(h, HOSTS)];
	unsigned bits = addr_bits(base), pick = below(h, ARRAY_SIZE(lens) + 1);
	// A prefix of length 0, or with the last 3 … 0 bits free.
	uint8_t len = hosts                     ? (uint8_t)bits
		      : pick < ARRAY_SIZE(lens) ? (uint8_t)(bits - lens[pick])
						: 0;

	return (struct overlay_entry){
		.prefix = prefix_of(base, len),
		.kind = (uint8_t)below(h, OVERLAY_KINDS),
		.until = below(h, 4) ? OVERLAY_FOREVER : 1,
	};
}

static const struct overlay_entry *find(const struct wants *w, const struct overlay_entry *want)
{
	vec_each (w, old)
		if (old->kind == want->kind && !prefix_compare(&old->prefix, &want->prefix))
			return old;
	return NULL;
}

static bool is_host(const struct prefix *p)
{
	return p->len == addr_bits(&p->addr);
}

// The wishes of the next command: a part of the present entries, with new expiries, and new ones.
static void next_wants(struct history *h)
{
	unsigned keep = below(h, 101), more = below(h, 4) ? below(h, 4) : below(h, WANT_MAX);
	bool hosts = below(h, 2);

	vec_free(&h->wanted);
	vec_each (&h->in_force, old) {
		if (below(h, 100) >= keep || (hosts && !is_host(&old->prefix)))
			continue;
		vec_push(&h->wanted, *old);
		if (!below(h, 4))
			vec_last(&h->wanted)->until = below(h, 2) ? OVERLAY_FOREVER : 1;
	}
	for (unsigned n = 0; n < more; n++) {
		struct overlay_entry want = random_want(h, hosts);

		if (!find(&h->wanted, &want))
			vec_push(&h->wanted, want);
	}
	wants_sort(&h->wanted);
}

static bool is_from(const struct overlay_entry *want)
{
	return want->kind == OVERLAY_BLOCK_FROM || want->kind == OVERLAY_ALLOW_FROM;
}

static bool knows(const struct overlay_entry *want, const struct addr *src, const struct addr *dst)
{
	struct prefix host = prefix_of(is_from(want) ? src : dst, (uint8_t)addr_bits(src));

	return want->until == OVERLAY_FOREVER && prefix_contains(&want->prefix, &host);
}

// The active entry of this kind with the longest prefix around the address; NULL: none.
static const struct overlay_entry *longest(const struct wants *w, enum overlay_kind kind,
					   const struct addr *src, const struct addr *dst)
{
	const struct overlay_entry *best = NULL;

	vec_each (w, want)
		if (want->kind == kind && knows(want, src, dst) &&
		    (!best || want->prefix.len > best->prefix.len))
			best = want;
	return best;
}

// The entry that decides; NULL: none.
static const struct overlay_entry *reference(const struct wants *w, const struct addr *src,
					     const struct addr *dst)
{
	static const enum overlay_kind order[] = {OVERLAY_ALLOW_FROM, OVERLAY_ALLOW_TO,
						  OVERLAY_BLOCK_FROM, OVERLAY_BLOCK_TO};
	const struct overlay_entry *want = NULL;

	for (size_t k = 0; !want && k < ARRAY_SIZE(order); k++)
		want = longest(w, order[k], src, dst);
	return want;
}

static enum weir_reason reason_of(const struct overlay_entry *want)
{
	static const enum weir_reason reasons[OVERLAY_KINDS] = {
		[OVERLAY_ALLOW_FROM] = REASON_PASS_ALLOW,
		[OVERLAY_ALLOW_TO] = REASON_PASS_ALLOW,
		[OVERLAY_BLOCK_FROM] = REASON_DROP_BLOCK_FROM,
		[OVERLAY_BLOCK_TO] = REASON_DROP_BLOCK_TO,
	};

	return want ? reasons[want->kind] : REASON_PASS_DEFAULT;
}

static void read_overlay(const struct history *h, struct overlay_entries *ret)
{
	struct err err = {0};

	if (overlay_read(h->rig->instance, ret, &err))
		test_die(&err);
}

// An element of a prefix has the expiry of all wider ones, and counts for them: the longest around
// the address, even if it is not active.
static struct overlay_entry counting(const struct history *h, const struct wants *others,
				     const struct overlay_entry *want, const struct addr *addr)
{
	struct prefix host = prefix_of(addr, (uint8_t)addr_bits(addr));
	struct overlay_entry best = *want;

	if (is_host(&want->prefix))
		return best;
	vec_each (&h->before, e)
		if (e->kind == want->kind && !is_host(&e->prefix) &&
		    e->prefix.len > best.prefix.len && prefix_contains(&e->prefix, &host))
			best.prefix = e->prefix;
	vec_each (others, o)
		if (o->kind == want->kind && !is_host(&o->prefix) &&
		    o->prefix.len > best.prefix.len && prefix_contains(&o->prefix, &host))
			best.prefix = o->prefix;
	return best;
}

static void expect_hit(struct history *h, const struct wants *others,
		       const struct overlay_entry *want, const struct frame *f,
		       const struct addr *addr)
{
	struct overlay_entry counts = counting(h, others, want, addr);

	for (size_t n = 0; n < h->before.n; n++)
		if (h->before.at[n].kind == counts.kind &&
		    !prefix_compare(&h->before.at[n].prefix, &counts.prefix)) {
			h->hits.at[n].packets++;
			h->hits.at[n].bytes += f->len - ETH_HLEN;
			return;
		}
	if (!find(others, &counts))
		test_fail(h->test, __FILE__, __LINE__, "step %zu: an active entry is not read",
			  h->step);
}

static void check_hits(struct history *h, const char *when)
{
	struct overlay_entries after = {0};

	read_overlay(h, &after);
	CHECK(h->test, after.n == h->before.n, "step %zu, %s: packets change the overlay", h->step,
	      when);
	for (size_t n = 0; n < after.n && n < h->before.n; n++) {
		const struct overlay_hits *is = &after.at[n].hits, *was = &h->before.at[n].hits;
		addr_text buf;

		CHECK(h->test,
		      is->packets - was->packets == h->hits.at[n].packets &&
			      is->bytes - was->bytes == h->hits.at[n].bytes,
		      "step %zu, %s: '%s %s' counts %llu packets, not %llu", h->step, when,
		      kind_name(after.at[n].kind), prefix_format(&after.at[n].prefix, buf),
		      (unsigned long long)(is->packets - was->packets),
		      (unsigned long long)h->hits.at[n].packets);
	}
	vec_free(&after);
}

static void check_packet(struct history *h, const struct wants *w, const struct wants *others,
			 size_t family, size_t host, const char *when)
{
	const struct frame *f = &h->packets[family][host];
	const struct addr *src = &h->src[family][host], *dst = &h->dst[family];
	const struct overlay_entry *want = reference(w, src, dst);
	struct outcome o = rig_send_on(h->rig, RIG_IFACE, f, 0);
	addr_text buf;

	CHECK(h->test,
	      !o.code && o.moved_n == 1 && o.moved[0].reason == reason_of(want) &&
		      o.moved[0].by.packets == 1 &&
		      (o.verdict == XDP_DROP) == reason_drops(reason_of(want)),
	      "step %zu, %s: from %s: verdict %u, %zu counters, the first '%s', not '%s'", h->step,
	      when, addr_format(src, buf), o.verdict, o.moved_n,
	      o.moved_n ? reason_name(o.moved[0].reason) : "", reason_name(reason_of(want)));
	if (want)
		expect_hit(h, others, want, f, is_from(want) ? src : dst);
}

// others: entries that are also in the tables, but not active.
static void check_environment(struct history *h, const struct wants *w, const struct wants *others,
			      const char *when)
{
	read_overlay(h, &h->before);
	for (size_t n = 0; n < h->before.n; n++)
		vec_push(&h->hits, (struct overlay_hits){0});
	for (size_t family = 0; family < 2; family++)
		for (size_t host = 0; host < HOSTS; host++)
			check_packet(h, w, others, family, host, when);
	check_hits(h, when);
	vec_free(&h->hits);
	vec_free(&h->before);
}

// The entries that can be read are the active ones. Expired ones may have been removed.
static void check_rows(struct history *h)
{
	struct overlay_entries entries = {0};
	size_t living = 0, found = 0;

	read_overlay(h, &entries);
	vec_each (&h->in_force, want)
		living += want->until == OVERLAY_FOREVER;
	vec_each (&entries, entry) {
		const struct overlay_entry *want = find(&h->in_force, entry);

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
	vec_free(&h->former);
	h->former = h->in_force;
	h->in_force = h->wanted;
	h->wanted = (struct wants){0};
}

// One command, killed somewhere or not.
static void command(struct history *h)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	struct knobs *knobs = h->rig->instance->knobs;
	const struct wants none = {0};
	unsigned fate = below(h, 5);
	struct err err = {0};

	next_wants(h);
	rig_stage(h->rig, &h->wanted, &plan);
	check_environment(h, &h->in_force, &h->wanted, "staged");
	if (fate == 0) { // killed before the commit
		CHECK(h->test, !overlay_tidy(h->rig->instance, &err), "%s", err.text);
		check_environment(h, &h->in_force, &none, "tidied up");
	} else if (fate == 1) { // killed before the commit; only the next command tidies
		return;
	} else if (fate == 2) { // killed right after the commit
		knobs->epoch = plan.epoch;
		accept_history(h);
		check_environment(h, &h->in_force, &h->former, "not cleared away");
	} else {
		overlay_commit(h->rig->instance, &plan);
		accept_history(h);
		check_environment(h, &h->in_force, &none, "committed");
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
	for (h->step = 0; h->step < suite_repeats(STEPS) && !t->failed; h->step++)
		command(h);
	if (!rig_is_general_only())
		CHECK(t, rig_sees_both_ways(rig), "a way sees too few of them");
	vec_free(&h->in_force);
	vec_free(&h->wanted);
	vec_free(&h->former);
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
