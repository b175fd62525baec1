// SPDX-License-Identifier: GPL-2.0-only
// Samples: their fields on each way out, which packets are chosen, the lease, a full ring.
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "common/sample.h"
#include "ctl/base/mem.h"
#include "tests/datapath/balance_rig.h"

#define ENTRIES 64
#define ALL     (~0u)
#define PASS    "198.51.100.1"
#define DROP    "198.51.100.2"
#define REJECT  "198.51.100.3"
#define VIP     "192.0.2.1"
#define VIP_MTU "192.0.2.2"
#define CLIENT  "198.51.100.9"

// The first line is before it: "always" leaves a policy without the short program.
#define RULES                                                                               \
	" pass from " PASS " to any port 2000\n"                                            \
	"drop from " DROP "\n"                                                              \
	"reject from " REJECT "\n"                                                          \
	"service a { vip " VIP "; port any; proto udp; mode ipip; check none; backend "     \
	"10.0.0.1 }\n"                                                                      \
	"service b { vip " VIP_MTU "; port any; proto udp; mode ipip; check none; backend " \
	"10.0.0.2 }\n"

// A rig whose samples are read.
struct setup {
	struct rig *rig;
	struct balance_rig *policy; // NULL: the empty policy of the rig
	struct ring_buffer *ring;
	size_t n; // samples so far
	struct sampled last;
};

static int note(void *ctx, void *data, size_t size)
{
	struct setup *s = ctx;

	if (size != sizeof(s->last))
		return -EINVAL;
	memcpy(&s->last, data, sizeof(s->last));
	s->n++;
	return 0;
}

static struct knobs *knobs_of(const struct setup *s)
{
	return s->rig->instance->knobs;
}

static void sample_share(const struct setup *s, uint32_t share)
{
	knobs_of(s)->sample = knobs_of(s)->chosen = share;
}

static void setup_free(struct setup *s)
{
	ring_buffer__free(s->ring);
	if (s->policy)
		balance_rig_free(s->policy);
	rig_free(s->rig);
}
#define CLEANUP_SETUP CLEANUP(setup_free)

// Counters are per CPU: the tests stay on one.
static unsigned stay_on_cpu(void)
{
	unsigned cpu = (unsigned)sched_getcpu();
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	return cpu;
}

static void setup_new(struct setup *s, const char *policy)
{
	struct err err = {0};

	stay_on_cpu();
	*s = (struct setup){.rig = rig_new(ENTRIES)};
	if (policy)
		s->policy = balance_rig_new(s->rig, policy);
	s->ring = ring_buffer__new(s->rig->instance->samples, note, s, NULL);
	if (!s->ring) {
		err_system(&err, errno, "cannot read samples");
		test_die(&err);
	}
	sample_share(s, ALL);
	knobs_of(s)->sample_until = rig_after_ms(s->rig, 3600 * 1000);
}

// The number of samples since the last call.
static size_t consume(struct setup *s)
{
	size_t before = s->n;

	ring_buffer__consume(s->ring);
	return s->n - before;
}

// Packets that a rule has counted on all CPUs.
static uint64_t counted(const struct setup *s, uint32_t rule)
{
	CLEANUP_FREE struct counter *values = NULL;
	struct err err = {0};
	size_t cpus;

	if (percpu_values(1, sizeof(*values), &values, &cpus, &err))
		test_die(&err);
	if (percpu_read(s->rig->instance->rulecounters, rule, 1, values))
		return 0;
	return percpu_sum(values, cpus).packets;
}

// One packet and its sample. frame: as it is recorded.
static bool one_sample(struct test *t, struct setup *s, const struct frame *sent,
		       const struct frame *frame, enum weir_reason reason, uint32_t bytes)
{
	size_t captured = frame->len < WEIR_SAMPLE_SNAP ? frame->len : WEIR_SAMPLE_SNAP;
	const struct sampled *last = &s->last;
	size_t n = consume(s);

	if (!CHECK(t, n == 1, "%zu samples of a packet with reason %s", n, reason_name(reason)))
		return false;
	return CHECK(t, last->reason == reason, "reason %s, expected %s",
		     last->reason < WEIR_REASON_COUNT ? reason_name(last->reason) : "?",
		     reason_name(reason)) &
	       CHECK(t, last->bytes == bytes, "%u bytes counted, expected %u", last->bytes, bytes) &
	       CHECK(t, last->length == frame->len, "length %u, expected %zu", last->length,
		     frame->len) &
	       CHECK(t, last->captured == captured, "%u bytes captured, expected %zu",
		     last->captured, captured) &
	       CHECK(t, last->share == knobs_of(s)->sample, "share %u", last->share) &
	       CHECK(t, last->ifindex == s->rig->ifindex, "interface %u", last->ifindex) &
	       CHECK(t, !memcmp(last->packet, frame->at, captured),
		     "%s: bytes that differ from the frame of %zu bytes", reason_name(reason),
		     sent->len);
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// Frames that keep their bytes, of all lengths, by both programs.
static void test_fields(struct test *t)
{
	static const size_t payloads[] = {0, 22, 85, 86, 87, 1472, 8972};
	CLEANUP_SETUP struct setup s;
	struct frame f;

	setup_new(&s, NULL);
	for (size_t p = 0; p < ARRAY_SIZE(payloads); p++) {
		uint64_t start = monotonic_ns();
		uint32_t ip = 28 + (uint32_t)payloads[p];

		frame_udp(&f, PASS, VIP, payloads[p]);
		rig_verdict(s.rig, &f, 1);
		one_sample(t, &s, &f, &f, REASON_PASS_DEFAULT, ip);
		CHECK(t, s.last.rule == EVENT_NO_RULE, "rule %u", s.last.rule);
		CHECK(t, s.last.time_ns >= start && s.last.time_ns <= monotonic_ns(),
		      "the time is not the present one");
	}
	frame_malformed(&f);
	rig_verdict(s.rig, &f, 1);
	one_sample(t, &s, &f, &f, REASON_DROP_IP4_SHORT, (uint32_t)f.len);
	frame_not_ip(&f, 60);
	rig_verdict(s.rig, &f, 1);
	one_sample(t, &s, &f, &f, REASON_PASS_NOT_IP, 60);
	rig_overlay_text(s.rig, "block-from " DROP);
	frame_udp(&f, DROP, VIP, 10);
	rig_verdict(s.rig, &f, 1);
	one_sample(t, &s, &f, &f, REASON_DROP_BLOCK_FROM, 38);
}

static void test_root(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	uint64_t later;
	struct frame f;

	setup_new(&s, NULL);
	later = rig_after_ms(s.rig, 3600 * 1000);
	frame_udp(&f, PASS, VIP, 10);
	knobs_of(&s)->bypass = knobs_of(&s)->bypass_until[RIG_IFACE] = later;
	rig_verdict(s.rig, &f, 1);
	one_sample(t, &s, &f, &f, REASON_PASS_BYPASS, (uint32_t)f.len);
	knobs_of(&s)->bypass = 0;
	rig_program(s.rig, PROG_ACTIVE, -1);
	rig_verdict(s.rig, &f, 1);
	one_sample(t, &s, &f, &f, REASON_PASS_NO_POLICY, (uint32_t)f.len);
}

// The record has the counter of the rule that decided, also of one that passed the packet.
static void packet_of_rule(struct test *t, struct setup *s, const char *from,
			   enum weir_reason reason)
{
	struct frame f;
	uint64_t before;

	frame_udp(&f, from, "203.0.113.1", 20);
	rig_verdict(s->rig, &f, 1);
	if (!one_sample(t, s, &f, &f, reason, 48))
		return;
	before = counted(s, s->last.rule);
	CHECK(t, before > 0, "rule %u has counted no packet", s->last.rule);
	rig_verdict(s->rig, &f, 1);
	CHECK(t, consume(s) == 1 && counted(s, s->last.rule) == before + 1,
	      "rule %u does not count packets from %s", s->last.rule, from);
}

// A packet of a service is recorded as it leaves: 20 bytes more, with the outer header.
static void packet_of_service(struct test *t, struct setup *s)
{
	struct frame f;
	struct outcome o;

	frame_udp(&f, CLIENT, VIP, 200);
	o = rig_try(s->rig, &f, 0);
	CHECK(t, !o.code && o.verdict == XDP_TX && o.out->len == f.len + 20,
	      "not sent: verdict %u, %zu bytes", o.verdict, o.out->len);
	one_sample(t, s, &f, o.out, REASON_PASS_SERVICE, 228);
	CHECK(t, s->last.rule == EVENT_NO_RULE, "rule %u", s->last.rule);
}

// An answer overwrites its packet. Each packet is recorded once: of reject rules before the answer,
// of a service as "too big" is sent.
static void packets_with_answers(struct test *t, struct setup *s)
{
	struct frame f;
	struct outcome o;

	frame_udp(&f, REJECT, "203.0.113.1", 30);
	o = rig_try(s->rig, &f, 0);
	CHECK(t, !o.code && o.verdict == XDP_TX && o.changed, "not answered: %u", o.verdict);
	one_sample(t, s, &f, &f, REASON_DROP_REJECT, 58);
	CHECK(t, counted(s, s->last.rule) == 1, "rule %u is not the rule", s->last.rule);
	frame_udp(&f, CLIENT, VIP_MTU, 1400);
	o = rig_try(s->rig, &f, 0);
	CHECK(t, !o.code && o.verdict == XDP_TX && o.changed, "not answered: %u", o.verdict);
	one_sample(t, s, &f, o.out, REASON_PASS_TOO_BIG, 1428);
}

static void packets_of_policy(struct test *t, const char *policy)
{
	char hop[] =
		"a 10.0.0.1 device in mac 02:bb:00:00:00:01 own 02:aa:00:00:00:01 vlan 0 mtu 1500 "
		"no-xmit 0 source 10.255.0.1";
	char small[] =
		"b 10.0.0.2 device in mac 02:bb:00:00:00:02 own 02:aa:00:00:00:01 vlan 0 mtu 1300 "
		"no-xmit 0 source 10.255.0.1";
	CLEANUP_SETUP struct setup s;

	setup_new(&s, policy);
	if (!CHECK(t, balance_rig_hop(s.policy, hop) && balance_rig_hop(s.policy, small),
		   "the next hops are refused"))
		return;
	packet_of_rule(t, &s, PASS, REASON_PASS_RULE);
	packet_of_rule(t, &s, DROP, REASON_DROP_RULE);
	packet_of_service(t, &s);
	packets_with_answers(t, &s);
}

static void test_policy(struct test *t)
{
	packets_of_policy(t, RULES);
}

static void test_policy_general(struct test *t)
{
	packets_of_policy(t, "always" RULES);
}

// A test program runs no packets of the network.
static void test_of_tests(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	struct frame f;

	setup_new(&s, RULES);
	frame_udp(&f, REJECT, VIP, 20);
	balance_rig_ask(s.policy, &f);
	balance_rig_ask_general(s.policy, &f);
	frame_udp(&f, CLIENT, VIP, 20);
	balance_rig_ask(s.policy, &f);
	balance_rig_ask_general(s.policy, &f);
	CHECK(t, consume(&s) == 0, "%zu samples of test packets", s.n);
}

// Off, after the lease, and after a reader that was killed.
static void test_lease(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	uint64_t end;
	struct frame f;

	setup_new(&s, NULL);
	frame_udp(&f, PASS, VIP, 10);
	sample_share(&s, 0);
	rig_verdict(s.rig, &f, 100);
	CHECK(t, consume(&s) == 0, "%zu samples while they are off", s.n);
	sample_share(&s, ALL);
	end = rig_after_ms(s.rig, 50);
	knobs_of(&s)->sample_until = end;
	rig_wait(s.rig, end);
	rig_verdict(s.rig, &f, 100);
	CHECK(t, consume(&s) == 0, "%zu samples after the lease", s.n);
	CHECK(t, !knobs_of(&s)->chosen, "packets are still numbered after the lease");
	sample_share(&s, ALL);
	knobs_of(&s)->sample_until = 0;
	rig_verdict(s.rig, &f, 100);
	CHECK(t, consume(&s) == 0, "%zu samples without a lease", s.n);
}

// The capture of a reader that was killed ends, and the samples of another one do not.
static void test_two_leases(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	struct frame f;

	setup_new(&s, NULL);
	frame_udp(&f, PASS, VIP, 10);
	sample_share(&s, ALL / 4);
	knobs_of(&s)->capture = knobs_of(&s)->chosen = ALL;
	rig_verdict(s.rig, &f, 100);
	CHECK(t, knobs_of(&s)->chosen == ALL / 4, "the share of the capture is left");
	CHECK(t, consume(&s) > 0, "no sample beside a capture that has ended");
}

// The counter of this CPU.
static struct counter counter_here(const struct setup *s, unsigned cpu, enum weir_reason reason)
{
	CLEANUP_FREE struct counter *values = NULL;
	struct err err = {0};
	size_t cpus;

	if (percpu_values(1, sizeof(*values), &values, &cpus, &err))
		test_die(&err);
	if (percpu_read(s->rig->instance->counters, RIG_IFACE * WEIR_REASON_COUNT + reason, 1,
			values))
		test_die(&err);
	return values[cpu];
}

// Exactly the packets that sample_chooses() names, for several shares.
static void test_choice(struct test *t)
{
	static const uint32_t shares[] = {1, 1u << 22, 1u << 28, 1u << 31, ALL};
	CLEANUP_SETUP struct setup s;
	unsigned cpu = stay_on_cpu();
	struct frame f;

	setup_new(&s, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		struct counter at = counter_here(&s, cpu, REASON_PASS_DEFAULT);
		size_t expected = 0, n = 4000;

		frame_udp(&f, PASS, VIP, 10 + i);
		sample_share(&s, shares[i]);
		rig_verdict(s.rig, &f, (uint32_t)n);
		for (size_t p = 1; p <= n; p++)
			expected += sample_chooses(at.packets + p, at.bytes + p * (38 + i),
						   knobs_of(&s)->seed, shares[i]);
		n = consume(&s);
		CHECK(t, n == expected, "share %u: %zu samples, expected %zu", shares[i], n,
		      expected);
	}
}

static uint64_t lost(const struct setup *s)
{
	CLEANUP_FREE struct counters *now = mem_new(struct counters);
	struct err err = {0};

	if (counters_read(s->rig->instance, now, &err))
		test_die(&err);
	return now->tally[TALLY_SAMPLES_LOST];
}

// The test moves the reader's position back to fill the ring.
static void test_ring_full(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned long *position;
	struct frame f;

	setup_new(&s, NULL);
	frame_udp(&f, PASS, VIP, 10);
	position =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, s.rig->instance->samples, 0);
	if (!CHECK(t, position != MAP_FAILED, "cannot map the ring"))
		return;
	CHECK(t, !lost(&s), "lost before the ring is full");
	*position -= WEIR_SAMPLES_BYTES;
	for (size_t n = 0; n < 3; n++)
		EXPECT(t, s.rig, &f, PASS_DEFAULT, 38);
	*position += WEIR_SAMPLES_BYTES;
	CHECK(t, consume(&s) == 0, "%zu samples in a full ring", s.n);
	CHECK(t, lost(&s) == 3, "%llu lost, expected 3", (unsigned long long)lost(&s));
	EXPECT(t, s.rig, &f, PASS_DEFAULT, 38);
	CHECK(t, consume(&s) == 1 && lost(&s) == 3, "%zu samples afterwards", s.n);
	munmap(position, page);
}

const struct named_test sample_tests[] = {
	{"sample: fields", test_fields},
	{"sample: the root program", test_root},
	{"sample: rules, services, answers", test_policy},
	{"sample: the same by the general program", test_policy_general},
	{"sample: not of test programs", test_of_tests},
	{"sample: lease", test_lease},
	{"sample: two leases", test_two_leases},
	{"sample: choice", test_choice},
	{"sample: full ring", test_ring_full},
	{NULL, NULL},
};
