// SPDX-License-Identifier: GPL-2.0-only
// Verdicts of overlay entries: precedence, kinds, families, prefix lengths, expiry, changes.
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/overlay_table.h"
#include "tests/datapath/rig.h"

#define ENTRIES    256
#define UDP_LENGTH (8 + 10)
#define LENGTH4    (20 + UDP_LENGTH)
#define LENGTH6    (40 + UDP_LENGTH)

#define SRC4 "192.0.2.1"
#define DST4 "198.51.100.1"
#define SRC6 "2001:db8:1::1"
#define DST6 "2001:db8:2::1"

// The four ways in which an entry matches, by family: host or prefix, source or destination.
static const struct family {
	const char *src, *dst;
	uint64_t length;
	const char *of[4];
} families[] = {
	{SRC4,
	 DST4,
	 LENGTH4,
	 {"from 192.0.2.1", "from 192.0.2.0/24", "to 198.51.100.1", "to 198.51.100.0/23"}},
	{SRC6,
	 DST6,
	 LENGTH6,
	 {"from 2001:db8:1::1", "from 2001:db8:1::/64", "to 2001:db8:2::1", "to 2001:db8::/33"}},
};

static enum weir_reason block_reason(const char *entry)
{
	return strstr(entry, "from") ? REASON_DROP_BLOCK_FROM : REASON_DROP_BLOCK_TO;
}

static bool expect(struct test *t, int line, struct rig *rig, const struct family *v,
		   enum weir_reason reason)
{
	struct frame f;

	frame_udp(&f, v->src, v->dst, 10);
	return rig_expect(t, __FILE__, line, rig, &f, reason, v->length);
}
#define EXPECT_OF(reason) expect(t, __LINE__, rig, v, reason)

static void set(struct rig *rig, const char *fmt, const char *a, const char *b)
{
	CLEANUP_FREE char *entries = NULL;
	struct text text = {0};

	text_addf(&text, "block-%s", a);
	if (b)
		text_addf(&text, ", %s-%s", fmt, b);
	entries = text_take(&text);
	rig_overlay_text(rig, entries);
}

static void test_allow_beats_block(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);

	for (const struct family *v = families; v < families + ARRAY_SIZE(families); v++)
		for (size_t n = 0; n < 16; n++) {
			const char *block = v->of[n / 4], *allow = v->of[n % 4];

			set(rig, NULL, block, NULL);
			EXPECT_OF(block_reason(block));
			set(rig, "allow", block, allow);
			if (!EXPECT_OF(REASON_PASS_ALLOW))
				printf("     block-%s, allow-%s\n", block, allow);
		}
}

static void test_allow_beats_all_blocks(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);

	for (const struct family *v = families; v < families + ARRAY_SIZE(families); v++)
		for (size_t n = 0; n < 4; n++) {
			CLEANUP_WANTS struct wants w = {0};
			CLEANUP_FREE char *allow = mem_printf("allow-%s", v->of[n]);

			for (size_t b = 0; b < 4; b++) {
				CLEANUP_FREE char *block = mem_printf("block-%s", v->of[b]);

				wants_add(&w, block, OVERLAY_FOREVER);
			}
			rig_overlay(rig, &w);
			EXPECT_OF(REASON_DROP_BLOCK_FROM);
			wants_add(&w, allow, OVERLAY_FOREVER);
			rig_overlay(rig, &w);
			EXPECT_OF(REASON_PASS_ALLOW);
			CHECK(t, rig_hits(rig, allow).packets == 1, "%s did not count", allow);
		}
}

static void test_allow_alone(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);

	for (const struct family *v = families; v < families + ARRAY_SIZE(families); v++)
		for (size_t n = 0; n < 4; n++) {
			CLEANUP_FREE char *allow = mem_printf("allow-%s", v->of[n]);

			rig_overlay_text(rig, allow);
			EXPECT_OF(REASON_PASS_ALLOW);
		}
}

// A host counts before a prefix, a source before a destination, and only one entry counts.
static void test_one_entry_counts(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	frame_udp(&f, SRC4, DST4, 10);
	rig_overlay_text(rig, "block-from 192.0.2.1, block-from 192.0.2.0/24, "
			      "block-from 192.0.0.0/16, block-to 198.51.100.1");
	EXPECT(t, rig, &f, DROP_BLOCK_FROM, LENGTH4);
	CHECK(t, rig_hits(rig, "block-from 192.0.2.1").packets == 1, "the host counts first");
	rig_overlay_text(rig, "block-from 192.0.2.0/24, block-from 192.0.0.0/16, "
			      "block-to 198.51.100.1");
	EXPECT(t, rig, &f, DROP_BLOCK_FROM, LENGTH4);
	CHECK(t, rig_hits(rig, "block-from 192.0.2.0/24").packets == 1, "then the longest prefix");
	CHECK(t, rig_hits(rig, "block-from 192.0.0.0/16").packets == 0, "and not the wider one");
	CHECK(t, rig_hits(rig, "block-to 198.51.100.1").packets == 0, "nor the destination");
	CHECK(t, rig_hits(rig, "block-from 192.0.2.0/24").bytes == LENGTH4,
	      "bytes of the IP packet");
}

// If there are entries of both directions, the one that decides is reported and counts.
static void test_directions(struct test *t)
{
	static const char *const others[] = {"203.0.113.9", "2001:db8:9::9"};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);

	for (const struct family *v = families; v < families + ARRAY_SIZE(families); v++)
		for (size_t n = 0; n < 4; n++) {
			const char *other = others[v - families], *way = n < 2 ? "to" : "from";
			CLEANUP_FREE char *block = mem_printf("block-%s", v->of[n]);
			CLEANUP_FREE char *both = mem_printf("%s, block-%s %s", block, way, other);

			rig_overlay_text(rig, both);
			EXPECT_OF(block_reason(block));
			CHECK(t, rig_hits(rig, block).packets == 1, "%s did not count", block);
		}
}

// An entry of one kind does not hide one of another, whichever is longer.
static void test_kinds_apart(struct test *t)
{
	static const struct {
		const char *entries;
		enum weir_reason reason;
	} cases[] = {
		{"block-from 192.0.0.0/8, allow-from 192.0.2.0/24", REASON_PASS_ALLOW},
		{"block-from 192.0.2.0/24, allow-from 192.0.0.0/8", REASON_PASS_ALLOW},
		{"block-from 192.0.0.0/8, allow-to 192.0.2.0/24", REASON_DROP_BLOCK_FROM},
		{"block-from 192.0.0.0/8, block-to 192.0.2.0/24", REASON_DROP_BLOCK_FROM},
		{"block-to 192.0.2.1, block-from 198.51.100.1", REASON_PASS_DEFAULT},
		{"block-to 192.0.2.0/24, block-from 198.51.100.0/24", REASON_PASS_DEFAULT},
		{"allow-to 192.0.2.1, block-from 192.0.2.1", REASON_DROP_BLOCK_FROM},
		{"block-to 198.51.0.0/16, allow-from 198.51.100.0/24", REASON_DROP_BLOCK_TO},
	};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	const struct family *v = &families[0];

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		rig_overlay_text(rig, cases[n].entries);
		if (!EXPECT_OF(cases[n].reason))
			printf("     %s\n", cases[n].entries);
	}
}

// Each prefix with an address inside, and the next address outside on either side if it exists.
static void test_prefix_edges(struct test *t)
{
	static const struct {
		const char *prefix, *first, *last, *before, *after;
	} cases[] = {
		{"0.0.0.0/0", "0.0.0.0", "255.255.255.255", NULL, NULL},
		{"128.0.0.0/1", "128.0.0.0", "255.255.255.255", "127.255.255.255", NULL},
		{"10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"},
		{"10.1.2.0/23", "10.1.2.0", "10.1.3.255", "10.1.1.255", "10.1.4.0"},
		{"10.1.2.2/31", "10.1.2.2", "10.1.2.3", "10.1.2.1", "10.1.2.4"},
		{"10.1.2.3/32", "10.1.2.3", "10.1.2.3", "10.1.2.2", "10.1.2.4"},
		{"::/0", "::", "ffff::", NULL, NULL},
		{"8000::/1", "8000::", "ffff::", "7fff:ffff::", NULL},
		{"2001:db8::/32", "2001:db8::", "2001:db8:ffff::", "2001:db7:ffff::", "2001:db9::"},
		{"2001:db8::/65", "2001:db8::", "2001:db8::7fff:ffff:ffff:ffff",
		 "2001:db7::", "2001:db8::8000:0:0:0"},
		{"2001:db8::2/127", "2001:db8::2", "2001:db8::3", "2001:db8::1", "2001:db8::4"},
		{"2001:db8::3/128", "2001:db8::3", "2001:db8::3", "2001:db8::2", "2001:db8::4"},
	};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		const char *const in[] = {cases[n].first, cases[n].last};
		const char *const out[] = {cases[n].before, cases[n].after};
		CLEANUP_FREE char *entry = mem_printf("block-from %s", cases[n].prefix);

		rig_overlay_text(rig, entry);
		for (size_t a = 0; a < 2; a++) {
			frame_udp(&f, in[a], strchr(in[a], ':') ? DST6 : DST4, 0);
			CHECK(t, rig_verdict(rig, &f, 1) == 1, "%s passes %s", entry, in[a]);
			if (!out[a])
				continue;
			frame_udp(&f, out[a], strchr(out[a], ':') ? DST6 : DST4, 0);
			CHECK(t, rig_verdict(rig, &f, 1) == 2, "%s drops %s", entry, out[a]);
		}
	}
}

// Addresses of one family never match entries of the other, however their bytes look.
static void test_families_apart(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	rig_overlay_text(rig, "block-from 0.0.0.0/0, block-from 32.1.13.184, block-to 32.1.13.184, "
			      "block-from 192.0.2.1, block-to 0.0.0.0/0");
	frame_udp(&f, "2001:db8::1", "2001:db8::2", 0);
	EXPECT(t, rig, &f, PASS_DEFAULT, 48);
	frame_udp(&f, "::192.0.2.1", "64:ff9b::192.0.2.1", 0);
	EXPECT(t, rig, &f, PASS_DEFAULT, 48);
	rig_overlay_text(rig, "block-from ::/0, block-to ::/0, block-from 2001:db8::, "
			      "block-from c000:201::");
	frame_udp(&f, "32.1.13.184", "32.1.13.184", 0);
	EXPECT(t, rig, &f, PASS_DEFAULT, 28);
	frame_udp(&f, "192.0.2.1", "0.0.0.0", 0);
	EXPECT(t, rig, &f, PASS_DEFAULT, 28);
}

static void test_not_ip(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	rig_overlay_text(rig, "block-from 0.0.0.0/0, block-to 0.0.0.0/0, block-from ::/0, "
			      "block-to ::/0, block-from 0.0.0.0, block-from ::");
	frame_not_ip(&f, 60);
	EXPECT(t, rig, &f, PASS_NOT_IP, 60);
}

static void test_malformed_before_allow(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	rig_overlay_text(rig, "allow-from 0.0.0.0/0, allow-to 0.0.0.0/0, allow-from 192.0.2.1");
	frame_malformed(&f);
	EXPECT(t, rig, &f, DROP_IP4_SHORT, f.len);
	frame_udp(&f, SRC4, DST4, 0);
	f.at[14 + 20 + 5] = 7; // the UDP length: the addresses are known when this is found
	EXPECT(t, rig, &f, DROP_UDP_LENGTH, 28);
}

// An entry is effective until it expires.
static void expires(struct test *t, struct rig *rig, const struct family *v, const char *entry,
		    enum weir_reason reason)
{
	CLEANUP_WANTS struct wants w = {0};
	uint64_t until = rig_after_ms(rig, 300);
	struct frame f;
	uint32_t verdict;

	wants_add(&w, entry, until);
	rig_overlay(rig, &w);
	frame_udp(&f, v->src, v->dst, 10);
	verdict = rig_verdict(rig, &f, 1);
	if (rig_clock(rig).jiffies < until)
		CHECK(t, verdict == (reason_drops(reason) ? 1 : 2), "%s is not effective", entry);
	else
		test_skip(t, "too slow for an expiry of 300 ms");
	rig_wait(rig, until);
	EXPECT_OF(REASON_PASS_DEFAULT);
}

static void test_expiry(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);

	for (const struct family *v = families; v < families + ARRAY_SIZE(families); v++)
		for (size_t n = 0; n < 4; n++) {
			CLEANUP_FREE char *block = mem_printf("block-%s", v->of[n]);

			expires(t, rig, v, block, block_reason(block));
		}
}

static void test_expired_allow(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);

	for (const struct family *v = families; v < families + ARRAY_SIZE(families); v++)
		for (size_t n = 0; n < 4; n++) {
			CLEANUP_FREE char *block = mem_printf("block-%s", v->of[n]);
			CLEANUP_FREE char *allow = mem_printf("allow-%s", v->of[n]);
			CLEANUP_WANTS struct wants w = {0};

			wants_add(&w, block, OVERLAY_FOREVER);
			wants_add(&w, allow, 1);
			rig_overlay(rig, &w);
			EXPECT_OF(block_reason(block));
		}
}

// The widest of nested prefixes expires last: each in turn takes over when a longer one has
// expired.
static void test_expired_does_not_hide(struct test *t)
{
	static const struct {
		const char *src, *dst, *entries[4];
	} cases[] = {
		{"10.1.2.3",
		 DST4,
		 {"block-from 0.0.0.0/0", "block-from 10.0.0.0/8", "block-from 10.1.2.0/24",
		  "block-from 10.1.2.3"}},
		{DST4,
		 "10.1.2.3",
		 {"block-to 0.0.0.0/0", "block-to 10.0.0.0/8", "block-to 10.1.2.2/31",
		  "block-to 10.1.2.3"}},
		{"2001:db8::1",
		 DST6,
		 {"block-from ::/0", "block-from 2001:db8::/32", "block-from 2001:db8::/127",
		  "block-from 2001:db8::1"}},
	};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++)
		for (size_t living = 0; living < 4; living++) {
			CLEANUP_WANTS struct wants w = {0};

			for (size_t e = 0; e < 4; e++)
				wants_add(&w, cases[n].entries[e],
					  e == living ? OVERLAY_FOREVER : 1);
			rig_overlay(rig, &w);
			frame_udp(&f, cases[n].src, cases[n].dst, 0);
			CHECK(t, rig_verdict(rig, &f, 1) == 1, "'%s' is hidden by expired ones",
			      cases[n].entries[living]);
		}
}

// The same while time passes, without commits in between.
static void test_expiry_uncovers(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_WANTS struct wants w = {0};
	uint64_t soon = rig_after_ms(rig, 150), late = rig_after_ms(rig, 2600);
	struct frame f;

	wants_add(&w, "block-from 10.1.2.0/24", soon);
	wants_add(&w, "block-from 10.1.0.0/16", soon);
	wants_add(&w, "block-from 10.0.0.0/8", late);
	rig_overlay(rig, &w);
	frame_udp(&f, "10.1.2.3", DST4, 0);
	rig_wait(rig, soon);
	CHECK(t, rig_verdict(rig, &f, 1) == 1 || rig_clock(rig).jiffies >= late,
	      "10.0.0.0/8 is hidden by what has expired");
	rig_wait(rig, late);
	CHECK(t, rig_verdict(rig, &f, 1) == 2, "an expired entry is effective");
}

static uint32_t bit_of(enum overlay_table table, unsigned kind)
{
	bool from_side = kind == OVERLAY_BLOCK_FROM || kind == OVERLAY_ALLOW_FROM;

	if (overlay_is_out(kind))
		return OVERLAY_OUT(kind);
	switch (table) {
	case TABLE_HOSTS4:
		return from_side ? OVERLAY_HOSTS4_FROM : OVERLAY_HOSTS4_TO;
	case TABLE_HOSTS6:
		return from_side ? OVERLAY_HOSTS6_FROM : OVERLAY_HOSTS6_TO;
	case TABLE_NETS4:
		return OVERLAY_NETS4 << kind;
	default:
		return OVERLAY_NETS6 << kind;
	}
}

static void test_bits(struct test *t)
{
	static const char *const prefixes[TABLES] = {
		[TABLE_HOSTS4] = "192.0.2.1",   [TABLE_HOSTS6] = "2001:db8::1",
		[TABLE_NETS4] = "192.0.2.0/24", [TABLE_NETS6] = "2001:db8::/32",
		[TABLE_OUT4] = "192.0.2.1",     [TABLE_OUT6] = "2001:db8::1",
	};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	const struct knobs *knobs = rig->instance->knobs;
	CLEANUP_WANTS struct wants all = {0};
	uint32_t sum = 0;

	for (enum overlay_table table = 0; table < TABLES; table++)
		for (unsigned kind = 0; kind < OVERLAY_KINDS; kind++) {
			CLEANUP_FREE char *entry =
				mem_printf("%s %s", kind_name(kind), prefixes[table]);
			CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
			CLEANUP_WANTS struct wants one = {0};

			if (table_is_out(table) != overlay_is_out(kind))
				continue;
			rig_overlay_text(rig, "");
			CHECK(t, knobs->overlay == 0, "an empty overlay has bits 0x%x",
			      knobs->overlay);
			wants_add(&one, entry, OVERLAY_FOREVER);
			rig_stage(rig, &one, &plan);
			CHECK(t, plan.bits == bit_of(table, kind), "'%s': bits 0x%x", entry,
			      plan.bits);
			CHECK(t, !(plan.bits & ~knobs->overlay), "'%s': not before the commit",
			      entry);
			overlay_commit(rig->instance, &plan);
			CHECK(t, knobs->overlay == plan.bits, "'%s': bits 0x%x", entry,
			      knobs->overlay);
			wants_add(&all, entry, OVERLAY_FOREVER);
			sum |= plan.bits;
		}
	rig_overlay(rig, &all);
	CHECK(t, knobs->overlay == sum, "all kinds have bits 0x%x, expected 0x%x", knobs->overlay,
	      sum);
}

static void test_plan_counts(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_WANTS struct wants w = {0};
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};

	rig_overlay_text(rig, "block-from 192.0.2.1, block-to 192.0.2.1, block-from 10.0.0.0/8, "
			      "block-from 10.1.0.0/16, block-from 2001:db8::1");
	wants_add(&w, "block-from 192.0.2.1, block-from 10.1.0.0/16", rig_after_ms(rig, 60000));
	wants_add(&w, "allow-to 192.0.2.1, block-from 2001:db8::1, block-from 11.0.0.0/8",
		  OVERLAY_FOREVER);
	rig_stage(rig, &w, &plan);
	CHECK(t, plan.added == 2 && plan.changed == 2 && plan.removed == 2,
	      "%zu added, %zu changed, %zu removed", plan.added, plan.changed, plan.removed);
}

static void change(const struct rig *rig, const char *begin, const char *end,
		   struct overlay_plan *ret)
{
	CLEANUP_WANTS struct wants w = {0};
	struct err err = {0};

	wants_add(&w, begin, OVERLAY_FOREVER);
	wants_add(&w, end, 0);
	wants_sort(&w);
	if (overlay_stage(rig->instance, w.at, w.n, ret, &err))
		test_die(&err);
	overlay_commit(rig->instance, ret);
}

// Entries that a change does not name do not change, nor do their counters.
static void test_change_leaves_others(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0}, again = {0};

	rig_overlay_text(rig,
			 "block-from 192.0.2.1, block-from 10.0.0.0/8, block-from 2001:db8::1, "
			 "block-from 2001:db8:1::/48");
	rig_verdict_from(rig, "10.1.2.3");
	change(rig, "block-from 192.0.2.2, block-from 10.1.0.0/16, allow-from 2001:db8::1",
	       "block-from 192.0.2.1, block-from 2001:db8:1::/48, block-from 192.0.2.9", &plan);
	CHECK(t, plan.added == 3 && plan.removed == 2 && plan.changed == 0,
	      "plan: %zu added, %zu changed, %zu removed", plan.added, plan.changed, plan.removed);
	CHECK(t, rig_verdict_from(rig, "192.0.2.1") == PASSED, "a removed host is effective");
	CHECK(t, rig_verdict_from(rig, "192.0.2.2") == DROPPED, "a new host is not effective");
	CHECK(t, rig_verdict_from(rig, "10.2.2.3") == DROPPED, "an old prefix is not effective");
	CHECK(t, rig_verdict_from(rig, "2001:db8::1") == PASSED, "an allow is not effective");
	CHECK(t, rig_verdict_from(rig, "2001:db8:1::2") == PASSED, "a removed prefix is effective");
	CHECK(t, rig_hits(rig, "block-from 10.0.0.0/8").packets == 2,
	      "the prefix lost its counters");
	change(rig, "allow-from 2001:db8::1", "block-from 10.0.0.0/8, allow-from 192.0.2.2",
	       &again);
	CHECK(t, again.added == 0 && again.removed == 1 && again.changed == 0,
	      "plan: %zu added, %zu changed, %zu removed", again.added, again.changed,
	      again.removed);
	CHECK(t, rig_verdict_from(rig, "10.2.2.3") == PASSED, "a removed prefix is effective");
	CHECK(t, rig_verdict_from(rig, "10.1.2.3") == DROPPED,
	      "the prefix inside is not effective");
}

const struct named_test overlay_tests[] = {
	{"overlay: allow beats block", test_allow_beats_block},
	{"overlay: one allow beats every block", test_allow_beats_all_blocks},
	{"overlay: allow alone", test_allow_alone},
	{"overlay: one entry counts", test_one_entry_counts},
	{"overlay: entries of both directions", test_directions},
	{"overlay: kinds do not hide each other", test_kinds_apart},
	{"overlay: edges of prefixes", test_prefix_edges},
	{"overlay: families are apart", test_families_apart},
	{"overlay: frames that are not IP", test_not_ip},
	{"overlay: malformed comes before allow", test_malformed_before_allow},
	{"overlay: expiry", test_expiry},
	{"overlay: an expired allow lifts nothing", test_expired_allow},
	{"overlay: expired prefixes hide nothing", test_expired_does_not_hide},
	{"overlay: expiry uncovers wider prefixes", test_expiry_uncovers},
	{"overlay: a change leaves the others", test_change_leaves_others},
	{"overlay: bits of kinds that exist", test_bits},
	{"overlay: counts of a plan", test_plan_counts},
	{NULL, NULL},
};
