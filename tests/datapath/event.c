// SPDX-License-Identifier: GPL-2.0-only
// The event ring: fields, rate limit, missed events, sizes.
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "common/event.h"
#include "ctl/base/mem.h"
#include "tests/datapath/rig.h"

#define ENTRIES 16
#define SRC     "192.0.2.1"
#define DST     "192.0.2.2"

// A rig whose events are read: without ctl/datapath/events.h, which renews its lease by itself.
struct setup {
	struct rig *rig;
	struct ring_buffer *ring;
	size_t n; // events so far
	uint64_t missed;
	struct event last;
};

static int note(void *ctx, void *data, size_t size)
{
	struct setup *s = ctx;

	if (size < sizeof(s->last))
		return 0;
	memcpy(&s->last, data, sizeof(s->last));
	s->missed += s->last.missed;
	s->n++;
	return 0;
}

static void setup_free(struct setup *s)
{
	ring_buffer__free(s->ring);
	rig_free(s->rig);
}
#define CLEANUP_SETUP CLEANUP(setup_free)

// Events are limited for each CPU: the tests stay on one.
static void stay_on_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void setup_new(struct setup *s)
{
	struct err err = {0};

	stay_on_cpu();
	*s = (struct setup){.rig = rig_new(ENTRIES)};
	rig_overlay_text(s->rig, "block-from " SRC ", block-from 2001:db8::1");
	s->ring = ring_buffer__new(s->rig->instance->events, note, s, NULL);
	if (!s->ring) {
		err_system(&err, errno, "cannot read events");
		test_die(&err);
	}
	s->rig->instance->knobs->watch = rig_after_ms(s->rig, 3600 * 1000);
}

// Two jiffies later: the next drop is sent.
static void next_turn(const struct setup *s)
{
	rig_wait(s->rig, rig_clock(s->rig).jiffies + 2);
}

// The number of events since the last call.
static size_t consume(struct setup *s)
{
	size_t before = s->n;

	ring_buffer__consume(s->ring);
	return s->n - before;
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void test_fields(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	uint64_t start, end;
	struct frame f;

	setup_new(&s);
	frame_udp(&f, SRC, DST, 10);
	next_turn(&s);
	start = monotonic_ns();
	EXPECT(t, s.rig, &f, DROP_BLOCK_FROM, 38);
	end = monotonic_ns();
	CHECK(t, consume(&s) == 1, "%zu events for one drop", s.n);
	CHECK(t, s.last.time_ns >= start && s.last.time_ns <= end,
	      "the time is not the present one");
	CHECK(t, s.last.ifindex == s.rig->ifindex, "interface %u", s.last.ifindex);
	CHECK(t, s.last.reason == REASON_DROP_BLOCK_FROM, "reason %u", s.last.reason);
	CHECK(t, s.last.length == f.len, "length %u", s.last.length);
	CHECK(t, s.last.captured == f.len, "%u bytes captured", s.last.captured);
	CHECK(t, !memcmp(s.last.packet, f.at, f.len), "bytes that differ from the frame");
	CHECK(t, s.last.missed == 0, "%u missed", s.last.missed);
	next_turn(&s);
	frame_malformed(&f);
	EXPECT(t, s.rig, &f, DROP_IP4_SHORT, f.len);
	CHECK(t, consume(&s) == 1 && s.last.reason == REASON_DROP_IP4_SHORT, "no second event");
	CHECK(t, s.last.length == f.len && s.last.captured == f.len, "length %u", s.last.length);
}

// Passed packets cause no event. Without a watcher, or after the watcher expired, drops cause none
// either.
static void test_only_for_a_watcher(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	struct frame drop, pass;
	uint64_t end;

	setup_new(&s);
	frame_udp(&drop, SRC, DST, 10);
	frame_udp(&pass, DST, SRC, 10);
	rig_verdict(s.rig, &pass, 1);
	frame_not_ip(&pass, 60);
	rig_verdict(s.rig, &pass, 1);
	CHECK(t, consume(&s) == 0, "%zu events for passed packets", s.n);
	s.rig->instance->knobs->watch = 0;
	next_turn(&s);
	rig_verdict(s.rig, &drop, 1);
	CHECK(t, consume(&s) == 0, "an event without a watcher");
	end = rig_after_ms(s.rig, 100);
	s.rig->instance->knobs->watch = end;
	rig_wait(s.rig, end);
	rig_verdict(s.rig, &drop, 1);
	CHECK(t, consume(&s) == 0, "an event after the watcher expired");
	s.rig->instance->knobs->watch = rig_after_ms(s.rig, 3600 * 1000);
	next_turn(&s);
	rig_verdict(s.rig, &drop, 1);
	CHECK(t, consume(&s) == 1 && !s.last.missed, "%zu events, %u missed", s.n, s.last.missed);
}

// Further drops of the same jiffy are not sent. The next event has their number.
static void test_rate_limit(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	uint64_t start, jiffies;
	struct frame f;

	setup_new(&s);
	frame_udp(&f, SRC, DST, 10);
	next_turn(&s);
	start = rig_clock(s.rig).jiffies;
	rig_verdict(s.rig, &f, 50000);
	jiffies = rig_clock(s.rig).jiffies - start + 1;
	consume(&s);
	CHECK(t, s.n >= 1 && s.n <= jiffies, "%zu events in %llu jiffies", s.n,
	      (unsigned long long)jiffies);
	next_turn(&s);
	rig_verdict(s.rig, &f, 1);
	CHECK(t, consume(&s) == 1, "no event in a later jiffy");
	CHECK(t, s.n + s.missed == 50001, "%zu events, %llu missed, 50001 dropped", s.n,
	      (unsigned long long)s.missed);
}

// Events that a full ring has no room for are missed too. The test moves the reader's position back
// to fill it.
static void test_ring_full(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned long *position;
	struct frame f;

	setup_new(&s);
	frame_udp(&f, SRC, DST, 10);
	position = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, s.rig->instance->events, 0);
	if (!CHECK(t, position != MAP_FAILED, "cannot map the ring"))
		return;
	*position -= WEIR_EVENTS_BYTES;
	for (size_t n = 0; n < 3; n++) {
		next_turn(&s);
		EXPECT(t, s.rig, &f, DROP_BLOCK_FROM, 38);
	}
	*position += WEIR_EVENTS_BYTES;
	CHECK(t, consume(&s) == 0, "%zu events in a full ring", s.n);
	next_turn(&s);
	rig_verdict(s.rig, &f, 1);
	CHECK(t, consume(&s) == 1 && s.last.missed == 3, "%zu events, %u missed", s.n,
	      s.last.missed);
	munmap(position, page);
}

// One frame with this snap length; linear as in rig_send.
static void capture(struct test *t, struct setup *s, const struct frame *f, uint32_t snap,
		    uint32_t linear)
{
	size_t want = snap < f->len ? snap : f->len;
	struct outcome o;

	s->rig->instance->knobs->snap = snap;
	next_turn(s);
	o = rig_send(s->rig, f, linear);
	if (linear && o.code == -EINVAL) {
		test_skip(t, "no short first buffer in this kernel's test runs");
		return;
	}
	CHECK(t, consume(s) == 1, "frame of %zu, snap %u: no event", f->len, snap);
	CHECK(t, s->last.captured == want && s->last.length == f->len,
	      "frame of %zu, snap %u: %u captured, length %u", f->len, snap, s->last.captured,
	      s->last.length);
	CHECK(t, !memcmp(s->last.packet, f->at, s->last.captured),
	      "frame of %zu, snap %u: bytes that differ from the frame", f->len, snap);
}

static void test_sizes(struct test *t)
{
	static const size_t payloads[] = {0, 22, 85, 86, 87, 213, 214, 215, 1472, 4000, 8972};
	static const uint32_t snaps[] = {1, 14, 64, 127, 128, 129, 255, 256};
	CLEANUP_SETUP struct setup s;
	struct frame f;

	setup_new(&s);
	for (size_t p = 0; p < ARRAY_SIZE(payloads); p++)
		for (size_t n = 0; n < ARRAY_SIZE(snaps); n++) {
			frame_udp(&f, SRC, DST, payloads[p]);
			capture(t, &s, &f, snaps[n], 0);
		}
	frame_udp(&f, "2001:db8::1", "2001:db8::2", 8952);
	capture(t, &s, &f, WEIR_SNAP_MAX, 0);
}

// The snap goes beyond the first buffer.
static void test_snap_over_buffers(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	struct frame f;

	setup_new(&s);
	frame_udp(&f, SRC, DST, 8000);
	capture(t, &s, &f, WEIR_SNAP_MAX, 100);
}

const struct named_test event_tests[] = {
	{"event: fields", test_fields},
	{"event: only for a watcher", test_only_for_a_watcher},
	{"event: rate limit", test_rate_limit},
	{"event: full ring", test_ring_full},
	{"event: sizes", test_sizes},
	{"event: over several buffers", test_snap_over_buffers},
	{NULL, NULL},
};
