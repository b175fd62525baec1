// SPDX-License-Identifier: GPL-2.0-only
// Frames up to 9000 bytes, which the kernel hands out in several buffers.
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

#include "ctl/base/mem.h"
#include "tests/datapath/rig.h"

#define ENTRIES   16
#define MTU       9000
#define ETH_BYTES 14

static const struct {
	const char *src, *dst;
	size_t headers;
} families[] = {
	{"192.0.2.1", "192.0.2.2", 28},
	{"2001:db8::1", "2001:db8::2", 48},
};

static void test_lengths(struct test *t)
{
	static const size_t lengths[] = {1500, 3000, 3400, 3500, 3506, 3507, 3508,
					 3600, 4082, 4083, 5000, 7000, MTU};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	for (size_t v = 0; v < ARRAY_SIZE(families); v++)
		for (size_t n = 0; n < ARRAY_SIZE(lengths); n++) {
			size_t payload = lengths[n] - families[v].headers;

			frame_udp(&f, families[v].src, families[v].dst, payload);
			EXPECT(t, rig, &f, PASS_DEFAULT, lengths[n]);
			f.len--; // the last byte is missing: in whichever buffer it was
			if (v)
				EXPECT(t, rig, &f, DROP_IP6_LENGTH, f.len);
			else
				EXPECT(t, rig, &f, DROP_IP4_LENGTH, f.len);
			f.len += 3; // padding
			EXPECT(t, rig, &f, PASS_DEFAULT, lengths[n]);
		}
}

static void test_blocked(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	rig_overlay_text(rig, "block-from 192.0.2.1, block-to 2001:db8::2");
	frame_udp(&f, families[0].src, families[0].dst, MTU - 28);
	EXPECT(t, rig, &f, DROP_BLOCK_FROM, MTU);
	CHECK(t, rig_hits(rig, "block-from 192.0.2.1").bytes == MTU, "the entry's bytes");
	frame_udp(&f, families[1].src, families[1].dst, MTU - 48);
	EXPECT(t, rig, &f, DROP_BLOCK_TO, MTU);
	CHECK(t, rig_hits(rig, "block-to 2001:db8::2").bytes == MTU, "the entry's bytes");
}

// Where there is no IP header the length of the whole frame is counted.
static void test_not_ip(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	frame_not_ip(&f, MTU + ETH_BYTES);
	EXPECT(t, rig, &f, PASS_NOT_IP, MTU + ETH_BYTES);
}

static void test_entry_counts(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct knobs *knobs = rig->instance->knobs;
	struct frame f;

	frame_udp(&f, families[0].src, families[0].dst, MTU - 28);
	rig_slot(rig, WEIR_SLOT_ACTIVE, -1);
	EXPECT(t, rig, &f, PASS_NO_POLICY, MTU + ETH_BYTES);
	knobs->bypass = knobs->bypass_until[RIG_IFACE] = rig_after_ms(rig, 3600 * 1000);
	EXPECT(t, rig, &f, PASS_BYPASS, MTU + ETH_BYTES);
}

// Extension headers may reach into the second buffer: not truncated, but not followed either.
static void test_headers_beyond(struct test *t)
{
	static const uint8_t kinds[] = {IPPROTO_HOPOPTS, IPPROTO_DSTOPTS, IPPROTO_ROUTING,
					IPPROTO_DSTOPTS};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	frame_udp_behind(&f, kinds, 1, 2048);
	EXPECT(t, rig, &f, PASS_DEFAULT, 40 + 2048 + 8);
	frame_udp_behind(&f, kinds, 2, 2048); // UDP itself is beyond
	EXPECT(t, rig, &f, DROP_NONLINEAR, 40 + 2 * 2048 + 8);
	frame_udp_behind(&f, kinds, 4, 2048); // an extension header is
	EXPECT(t, rig, &f, DROP_NONLINEAR, 40 + 4 * 2048 + 8);
	f.len--;
	EXPECT(t, rig, &f, DROP_IP6_LENGTH, f.len);
}

// One byte of each header beyond the first buffer.
static void test_short_first_buffer(struct test *t)
{
	static const uint8_t kinds[] = {IPPROTO_HOPOPTS};
	static const struct {
		size_t v, linear;
		enum weir_reason reason;
	} rows[] = {
		{0, 33, REASON_DROP_NONLINEAR}, {0, 34, REASON_DROP_NONLINEAR},
		{0, 41, REASON_DROP_NONLINEAR}, {0, 42, REASON_PASS_DEFAULT},
		{1, 53, REASON_DROP_NONLINEAR}, {1, 61, REASON_DROP_NONLINEAR},
		{1, 62, REASON_PASS_DEFAULT},   {2, 61, REASON_DROP_NONLINEAR},
		{2, 69, REASON_DROP_NONLINEAR}, {2, 70, REASON_PASS_DEFAULT},
	};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	for (size_t n = 0; n < ARRAY_SIZE(rows); n++) {
		struct outcome o;

		if (rows[n].v < 2)
			frame_udp(&f, families[rows[n].v].src, families[rows[n].v].dst, 1000);
		else
			frame_udp_behind(&f, kinds, 1, 8);
		o = rig_send(rig, &f, (uint32_t)rows[n].linear);
		if (o.code == -EINVAL) {
			test_skip(t, "no short first buffer in this kernel's test runs");
			return;
		}
		CHECK(t,
		      !o.code && o.moved_n == 1 && o.moved[0].reason == rows[n].reason &&
			      !o.changed,
		      "%zu bytes in the first buffer: '%s', wanted '%s'", rows[n].linear,
		      reason_name(o.moved[0].reason), reason_name(rows[n].reason));
	}
}

const struct named_test jumbo_tests[] = {
	{"jumbo: lengths", test_lengths},
	{"jumbo: blocked", test_blocked},
	{"jumbo: not IP", test_not_ip},
	{"jumbo: counted by entry", test_entry_counts},
	{"jumbo: headers in the second buffer", test_headers_beyond},
	{"jumbo: short first buffer", test_short_first_buffer},
	{NULL, NULL},
};
