// SPDX-License-Identifier: GPL-2.0-only
// Captures: whole frames on each way out, the filter of the datapath, the lease, a full ring.
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "common/capture.h"
#include "common/event.h"
#include "ctl/base/mem.h"
#include "tests/datapath/balance_rig.h"

#define ENTRIES 64
#define ALL     (~0u)
#define SNAP    262144
#define PASS    "198.51.100.1"
#define DROP    "198.51.100.2"
#define REJECT  "198.51.100.3"
#define CLIENT  "198.51.100.9"
#define VIP     "192.0.2.1"

#define RULES                                                                   \
	" pass from " PASS " to any port 2000\n"                                \
	"drop from " DROP "\n"                                                  \
	"reject from " REJECT "\n"                                              \
	"service a { vip " VIP "; port any; proto udp; mode ipip; check none; " \
	"backend 10.0.0.1 }\n"

// A rig whose captured packets are read.
struct setup {
	struct rig *rig;
	struct balance_rig *policy; // NULL: the empty policy of the rig
	struct ring_buffer *ring;
	size_t n; // packets so far
	struct captured last;
	uint8_t frame[65536];
};

static int note(void *ctx, void *data, size_t size)
{
	struct setup *s = ctx;

	memcpy(&s->last, data, sizeof(s->last));
	if (s->last.captured > sizeof(s->frame) || sizeof(s->last) + s->last.captured > size)
		return -EINVAL;
	memcpy(s->frame, (uint8_t *)data + sizeof(s->last), s->last.captured);
	s->n++;
	return 0;
}

static struct knobs *knobs_of(const struct setup *s)
{
	return s->rig->instance->knobs;
}

static void capture_share(const struct setup *s, uint32_t share)
{
	knobs_of(s)->capture = knobs_of(s)->chosen = share;
}

static void setup_cleanup(struct setup **at)
{
	struct setup *s = *at;

	ring_buffer__free(s->ring);
	if (s->policy)
		balance_rig_free(s->policy);
	rig_free(s->rig);
	free(s);
}
#define CLEANUP_SETUP CLEANUP(setup_cleanup)

static struct setup *setup_new(const char *policy)
{
	struct setup *s = mem_new(struct setup);
	struct err err = {0};

	s->rig = rig_new(ENTRIES);
	if (policy)
		s->policy = balance_rig_new(s->rig, policy);
	s->ring = ring_buffer__new(s->rig->instance->captured, note, s, NULL);
	if (!s->ring) {
		err_system(&err, errno, "cannot read captured packets");
		test_die(&err);
	}
	knobs_of(s)->capture_until = rig_after_ms(s->rig, 3600 * 1000);
	memset(knobs_of(s)->capture_reasons, 0xff, sizeof(knobs_of(s)->capture_reasons));
	knobs_of(s)->capture_rule = EVENT_NO_RULE;
	knobs_of(s)->capture_snap = SNAP;
	capture_share(s, ALL);
	return s;
}

// The number of packets since the last call.
static size_t consume(struct setup *s)
{
	size_t before = s->n;

	ring_buffer__consume(s->ring);
	return s->n - before;
}

// One packet in the ring, as this frame.
static bool one_packet(struct test *t, struct setup *s, const struct frame *frame,
		       enum weir_reason reason)
{
	uint32_t snap = knobs_of(s)->capture_snap;
	size_t captured = frame->len < snap ? frame->len : snap, n = consume(s);
	const struct captured *last = &s->last;

	if (!CHECK(t, n == 1, "%zu packets of one with reason %s", n, reason_name(reason)))
		return false;
	return CHECK(t, last->reason == reason, "reason %u, expected %s", last->reason,
		     reason_name(reason)) &
	       CHECK(t, last->length == frame->len, "length %u, expected %zu", last->length,
		     frame->len) &
	       CHECK(t, last->captured == captured, "%u bytes captured, expected %zu",
		     last->captured, captured) &
	       CHECK(t, last->share == knobs_of(s)->capture, "share %u", last->share) &
	       CHECK(t, last->ifindex == s->rig->ifindex, "interface %u", last->ifindex) &
	       CHECK(t, !memcmp(s->frame, frame->at, captured), "bytes differ from the frame");
}

// Around each size of room that a record can have.
static void test_lengths(struct test *t)
{
	static const size_t payloads[] = {0,    85,   86,   87,   469,  470, 471,
					  1472, 2005, 2006, 2007, 8000, 8972};
	static const uint32_t snaps[] = {1, 127, 128, 129, 512, 2049, SNAP};
	CLEANUP_SETUP struct setup *s = setup_new(NULL);
	struct frame f;

	for (size_t p = 0; p < ARRAY_SIZE(payloads); p++) {
		frame_udp(&f, PASS, VIP, payloads[p]);
		for (size_t n = 0; n < ARRAY_SIZE(snaps); n++) {
			knobs_of(s)->capture_snap = snaps[n];
			rig_verdict(s->rig, &f, 1);
			one_packet(t, s, &f, REASON_PASS_DEFAULT);
			CHECK(t, s->last.bytes == 28 + payloads[p], "%u bytes", s->last.bytes);
			CHECK(t, s->last.rule == EVENT_NO_RULE, "rule %u", s->last.rule);
		}
	}
	frame_malformed(&f);
	rig_verdict(s->rig, &f, 1);
	one_packet(t, s, &f, REASON_DROP_IP4_SHORT);
}

static void test_root(struct test *t)
{
	CLEANUP_SETUP struct setup *s = setup_new(NULL);
	struct frame f;

	frame_udp(&f, PASS, VIP, 10);
	rig_program(s->rig, PROG_ACTIVE, -1);
	rig_verdict(s->rig, &f, 1);
	one_packet(t, s, &f, REASON_PASS_NO_POLICY);
}

static void captured_of(struct test *t, struct setup *s, const char *from, size_t wanted)
{
	struct frame f;
	size_t n;

	frame_udp(&f, from, "203.0.113.1", 20);
	rig_verdict(s->rig, &f, 1);
	n = consume(s);
	CHECK(t, n == wanted, "%zu packets from %s, expected %zu", n, from, wanted);
}

// Each condition of the filter, and none.
static void filter_of(struct test *t, struct setup *s)
{
	struct knobs *k = knobs_of(s);

	captured_of(t, s, PASS, 1);
	captured_of(t, s, DROP, 1);
	k->capture_rule = s->last.rule;
	captured_of(t, s, PASS, 0);
	captured_of(t, s, DROP, 1);
	k->capture_rule = EVENT_NO_RULE;
	memset(k->capture_reasons, 0, sizeof(k->capture_reasons));
	k->capture_reasons[0] = 1ull << REASON_PASS_RULE;
	captured_of(t, s, PASS, 1);
	captured_of(t, s, DROP, 0);
	k->capture_reasons[0] = ~k->capture_reasons[0];
	captured_of(t, s, PASS, 0);
	captured_of(t, s, DROP, 1);
	k->capture_reasons[0] = UINT64_MAX;
	k->capture_iface = RIG_IFACE;
	captured_of(t, s, PASS, 1);
	k->capture_iface = RIG_IFACE + 1;
	captured_of(t, s, PASS, 0);
	k->capture_iface = 0;
}

// Frames of services are captured as they leave, of reject rules before their answer.
static void rewritten(struct test *t, struct setup *s)
{
	struct outcome o;
	struct frame f;

	frame_udp(&f, CLIENT, VIP, 200);
	o = rig_try(s->rig, &f, 0);
	CHECK(t, !o.code && o.verdict == XDP_TX && o.out->len == f.len + 20, "not sent");
	one_packet(t, s, o.out, REASON_PASS_SERVICE);
	CHECK(t, s->last.bytes == 228, "%u bytes counted", s->last.bytes);
	frame_udp(&f, REJECT, "203.0.113.1", 30);
	o = rig_try(s->rig, &f, 0);
	CHECK(t, !o.code && o.verdict == XDP_TX && o.changed, "not answered: %u", o.verdict);
	one_packet(t, s, &f, REASON_DROP_REJECT);
}

static void policy_of(struct test *t, const char *policy)
{
	char hop[] =
		"a 10.0.0.1 device in mac 02:bb:00:00:00:01 own 02:aa:00:00:00:01 vlan 0 mtu 1500 "
		"no-xmit 0 source 10.255.0.1";
	CLEANUP_SETUP struct setup *s = setup_new(policy);

	if (!CHECK(t, balance_rig_hop(s->policy, hop), "the next hop is refused"))
		return;
	filter_of(t, s);
	rewritten(t, s);
}

static void test_policy(struct test *t)
{
	policy_of(t, RULES);
}

static void test_policy_general(struct test *t)
{
	policy_of(t, "always" RULES);
}

// A test program runs no packets of the network.
static void test_of_tests(struct test *t)
{
	CLEANUP_SETUP struct setup *s = setup_new(RULES);
	static const char *const sources[] = {PASS, DROP, REJECT, CLIENT};
	struct frame f;

	for (size_t n = 0; n < ARRAY_SIZE(sources); n++) {
		frame_udp(&f, sources[n], VIP, 20);
		balance_rig_ask(s->policy, &f);
		balance_rig_ask_general(s->policy, &f);
	}
	CHECK(t, consume(s) == 0, "%zu captured test packets", s->n);
}

// Off, and after the lease.
static void test_lease(struct test *t)
{
	CLEANUP_SETUP struct setup *s = setup_new(NULL);
	uint64_t end;
	struct frame f;

	frame_udp(&f, PASS, VIP, 10);
	capture_share(s, 0);
	rig_verdict(s->rig, &f, 100);
	CHECK(t, consume(s) == 0, "%zu packets while captures are off", s->n);
	capture_share(s, ALL);
	end = rig_after_ms(s->rig, 50);
	knobs_of(s)->capture_until = end;
	rig_wait(s->rig, end);
	rig_verdict(s->rig, &f, 100);
	CHECK(t, consume(s) == 0, "%zu packets after the lease", s->n);
	CHECK(t, !knobs_of(s)->chosen, "packets are still numbered after the lease");
}

// Samples and captures have shares of their own.
static void test_shares(struct test *t)
{
	CLEANUP_SETUP struct setup *s = setup_new(NULL);
	struct frame f;
	size_t n;

	frame_udp(&f, PASS, VIP, 10);
	knobs_of(s)->sample = 0;
	knobs_of(s)->capture = 1u << 31;
	rig_verdict(s->rig, &f, 4000);
	n = consume(s);
	CHECK(t, n > 1800 && n < 2200, "%zu of 4000 packets at a share of a half", n);
	knobs_of(s)->capture = 0; // `chosen` is of the samples
	rig_verdict(s->rig, &f, 100);
	CHECK(t, consume(s) == 0, "packets captured while only samples are taken");
}

static uint64_t lost(const struct setup *s)
{
	CLEANUP_FREE struct counters *now = mem_new(struct counters);
	struct err err = {0};

	if (counters_read(s->rig->instance, now, &err))
		test_die(&err);
	return now->tally[TALLY_CAPTURED_LOST];
}

// The test moves the reader's position back to fill the ring.
static void test_ring_full(struct test *t)
{
	CLEANUP_SETUP struct setup *s = setup_new(NULL);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned long *position;
	struct frame f;

	frame_udp(&f, PASS, VIP, 10);
	position =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, s->rig->instance->captured, 0);
	if (!CHECK(t, position != MAP_FAILED, "cannot map the ring"))
		return;
	*position -= WEIR_CAPTURED_BYTES;
	for (size_t n = 0; n < 3; n++)
		EXPECT(t, s->rig, &f, PASS_DEFAULT, 38);
	*position += WEIR_CAPTURED_BYTES;
	CHECK(t, consume(s) == 0, "%zu packets in a full ring", s->n);
	CHECK(t, lost(s) == 3, "%llu lost, expected 3", (unsigned long long)lost(s));
	EXPECT(t, s->rig, &f, PASS_DEFAULT, 38);
	CHECK(t, consume(s) == 1 && lost(s) == 3, "%zu packets afterwards", s->n);
	munmap(position, page);
}

const struct named_test capture_tests[] = {
	{"capture: lengths", test_lengths},
	{"capture: the root program", test_root},
	{"capture: filter, services, answers", test_policy},
	{"capture: the same by the general program", test_policy_general},
	{"capture: not of test programs", test_of_tests},
	{"capture: lease", test_lease},
	{"capture: shares", test_shares},
	{"capture: full ring", test_ring_full},
	{NULL, NULL},
};
