// SPDX-License-Identifier: GPL-2.0-only
// Frames up to 9000 bytes, which the kernel hands out in several buffers.
#include <errno.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>

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
	CHECK(t, rig_hits(rig, "block-from 192.0.2.1").bytes == MTU, "the bytes of the entry");
	frame_udp(&f, families[1].src, families[1].dst, MTU - 48);
	EXPECT(t, rig, &f, DROP_BLOCK_TO, MTU);
	CHECK(t, rig_hits(rig, "block-to 2001:db8::2").bytes == MTU, "the bytes of the entry");
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
	rig_program(rig, PROG_ACTIVE, -1);
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
	} cases[] = {
		{0, 33, REASON_DROP_NONLINEAR}, {0, 34, REASON_DROP_NONLINEAR},
		{0, 41, REASON_DROP_NONLINEAR}, {0, 42, REASON_PASS_DEFAULT},
		{1, 53, REASON_DROP_NONLINEAR}, {1, 61, REASON_DROP_NONLINEAR},
		{1, 62, REASON_PASS_DEFAULT},   {2, 61, REASON_DROP_NONLINEAR},
		{2, 69, REASON_DROP_NONLINEAR}, {2, 70, REASON_PASS_DEFAULT},
	};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct frame f;

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		struct outcome o;

		if (cases[n].v < 2)
			frame_udp(&f, families[cases[n].v].src, families[cases[n].v].dst, 1000);
		else
			frame_udp_behind(&f, kinds, 1, 8);
		o = rig_send(rig, &f, (uint32_t)cases[n].linear);
		if (o.code == -EINVAL) {
			test_skip(t, "no short first buffer in this kernel's test runs");
			return;
		}
		CHECK(t,
		      !o.code && o.moved_n == 1 && o.moved[0].reason == cases[n].reason &&
			      !o.changed,
		      "%zu bytes in the first buffer: '%s', expected '%s'", cases[n].linear,
		      reason_name(o.moved[0].reason), reason_name(cases[n].reason));
	}
}

// ---- merged by the kernel -----------------------------------------------------------------------

#define BIG_MAX 72000 // a test run takes 17 pages after the first buffer
#define OPTION  8     // length of a jumbo payload, in a separate header

enum big { BIG4, BIG6_OPTION, BIG6_BARE, BIGS };

static const size_t big_headers[BIGS] = {20, 40, 40};

struct big_frame {
	size_t len;
	uint8_t at[BIG_MAX];
};

// TCP with a length field of zero. `bytes`: the length that the field cannot hold, of the packet in
// IPv4, after the header in IPv6.
static void big_make(struct big_frame *b, enum big kind, size_t bytes)
{
	struct frame f;
	uint8_t *ip = b->at + ETH_BYTES, *tcp = ip + big_headers[kind];

	memset(b, 0, sizeof(*b));
	frame_udp(&f, families[kind != BIG4].src, families[kind != BIG4].dst, 0);
	memcpy(b->at, f.at, ETH_BYTES + big_headers[kind]);
	b->len = ETH_BYTES + bytes + (kind == BIG4 ? 0 : big_headers[kind]);
	if (kind == BIG4) {
		ip[2] = ip[3] = 0;
		ip[9] = IPPROTO_TCP;
	} else {
		const uint8_t option[OPTION] = {
			IPPROTO_TCP,   0, 0xc2, 4, 0, (uint8_t)(bytes >> 16), (uint8_t)(bytes >> 8),
			(uint8_t)bytes};

		ip[4] = ip[5] = 0;
		ip[6] = kind == BIG6_OPTION ? IPPROTO_HOPOPTS : IPPROTO_TCP;
		if (kind == BIG6_OPTION) {
			memcpy(tcp, option, OPTION);
			tcp += OPTION;
		}
	}
	tcp[12] = 5 << 4;
}

static void big_expect(struct test *t, struct rig *rig, const struct big_frame *b,
		       enum weir_reason reason, uint64_t bytes, const char *what)
{
	struct xdp_md ctx = {.data_end = (uint32_t)b->len, .ingress_ifindex = rig->ifindex};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = b->at, .data_size_in = (uint32_t)b->len,
		    .ctx_in = &ctx, .ctx_size_in = sizeof(ctx));
	struct outcome o;

	rig_look(rig);
	if (bpf_prog_test_run_opts(rig->entry_prog, &opts)) {
		test_fail(t, __FILE__, __LINE__, "%s: not run: %d", what, errno);
		return;
	}
	o = rig_look(rig);
	CHECK(t, o.moved_n == 1 && o.moved[0].reason == reason && o.moved[0].by.bytes == bytes,
	      "%s: '%s' by %llu bytes, expected '%s' by %llu", what, reason_name(o.moved[0].reason),
	      (unsigned long long)o.moved[0].by.bytes, reason_name(reason),
	      (unsigned long long)bytes);
}

// Such a frame before it is merged.
static const enum weir_reason big_refused[BIGS] = {REASON_DROP_IP4_LENGTH, REASON_DROP_IP6_LENGTH,
						   REASON_DROP_TCP_SHORT};

static uint64_t big_bytes(const struct big_frame *b, enum weir_reason reason)
{
	if (reason == REASON_DROP_TCP_SHORT)
		return 40; // the length field is believed
	return b->len - (reason == REASON_PASS_DEFAULT ? ETH_BYTES : 0);
}

static void test_merged(struct test *t)
{
	static const size_t sizes[] = {1000, 65535, 65536, 70000};
	static const char *const names[BIGS] = {"IPv4", "IPv6", "IPv6 without the option"};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	static struct big_frame b;

	for (unsigned generic = 0; generic < 2; generic++)
		for (enum big kind = 0; kind < BIGS; kind++)
			for (size_t n = 0; n < ARRAY_SIZE(sizes); n++) {
				CLEANUP_FREE char *what =
					mem_printf("%s, %zu bytes, %s mode", names[kind], sizes[n],
						   generic ? "generic" : "native");
				enum weir_reason reason = generic && sizes[n] > 65535
								  ? REASON_PASS_DEFAULT
								  : big_refused[kind];

				rig->instance->knobs->generic = (uint64_t)generic << RIG_IFACE;
				big_make(&b, kind, sizes[n]);
				big_expect(t, rig, &b, reason, big_bytes(&b, reason), what);
			}
	rig->instance->knobs->generic = ~(1ull << RIG_IFACE); // another interface's mode
	big_make(&b, BIG4, 70000);
	big_expect(t, rig, &b, REASON_DROP_IP4_LENGTH, b.len, "on another interface");
}

// Zero lengths that the kernel does not write.
static void test_merged_wrongly(struct test *t)
{
	static const struct {
		const char *what;
		enum big kind;
		size_t at; // in the IP packet
		uint8_t value;
		enum weir_reason reason;
	} cases[] = {
		{"IPv4: UDP", BIG4, 9, IPPROTO_UDP, REASON_DROP_IP4_LENGTH},
		{"IPv4: IP in IP", BIG4, 9, IPPROTO_IPIP, REASON_DROP_IP4_LENGTH},
		{"IPv4: more fragments", BIG4, 6, 0x20, REASON_DROP_IP4_LENGTH},
		{"IPv4: a later fragment", BIG4, 7, 1, REASON_DROP_IP4_LENGTH},
		{"IPv4: do not fragment", BIG4, 6, 0x40, REASON_PASS_DEFAULT},
		{"IPv4: 19 bytes, it says", BIG4, 3, 19, REASON_DROP_IP4_LENGTH},
		{"IPv6: UDP after the option", BIG6_OPTION, 40, IPPROTO_UDP,
		 REASON_DROP_IP6_LENGTH},
		{"IPv6: two options", BIG6_OPTION, 41, 1, REASON_DROP_IP6_LENGTH},
		{"IPv6: another option", BIG6_OPTION, 42, 5, REASON_DROP_IP6_LENGTH},
		{"IPv6: an option of 5 bytes", BIG6_OPTION, 43, 5, REASON_DROP_IP6_LENGTH},
		{"IPv6: a byte more", BIG6_OPTION, 47, 0x71, REASON_DROP_IP6_LENGTH},
		{"IPv6: a byte less", BIG6_OPTION, 47, 0x6f, REASON_DROP_IP6_LENGTH},
		{"IPv6: much more", BIG6_OPTION, 44, 1, REASON_DROP_IP6_LENGTH},
		{"TCP with its header cut", BIG6_OPTION, 48 + 12, 4 << 4, REASON_DROP_TCP_OFFSET},
	};
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	static struct big_frame b;

	rig->instance->knobs->generic = 1ull << RIG_IFACE;
	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		bool whole = cases[n].reason == REASON_PASS_DEFAULT ||
			     cases[n].reason == REASON_DROP_TCP_OFFSET;

		big_make(&b, cases[n].kind, 70000); // 0x11170
		b.at[ETH_BYTES + cases[n].at] = cases[n].value;
		big_expect(t, rig, &b, cases[n].reason, b.len - (whole ? ETH_BYTES : 0),
			   cases[n].what);
	}
}

const struct named_test jumbo_tests[] = {
	{"jumbo: lengths", test_lengths},
	{"jumbo: blocked", test_blocked},
	{"jumbo: not IP", test_not_ip},
	{"jumbo: counted by entry", test_entry_counts},
	{"jumbo: headers in the second buffer", test_headers_beyond},
	{"jumbo: short first buffer", test_short_first_buffer},
	{"jumbo: merged by the kernel", test_merged},
	{"jumbo: not as the kernel merges", test_merged_wrongly},
	{NULL, NULL},
};
