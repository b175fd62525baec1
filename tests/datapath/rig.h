// SPDX-License-Identifier: GPL-2.0-only
// An instance without pins and without an interface, its programs run by BPF_PROG_TEST_RUN, and the
// counters that each frame changes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/overlay.h"
#include "ctl/datapath/attach.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/overlay.h"
#include "tests/datapath/frame.h"
#include "tests/datapath/suite.h"

#define RIG_IFACE 1 // number of the loopback device in a new rig

struct rig {
	struct instance *instance;
	struct root_program *entry;
	int entry_prog;             // owned by entry
	struct generation *policy;  // the empty policy, active and previous of a new rig
	struct generation *lenient; // rig_lenient(), once it was asked for; else NULL
	uint32_t ifindex;
	struct counters *counters; // after the last rig_send
	bool stale;                // frames were sent since
	uint64_t sent;             // frames, except the frames of rig_verdict()
	uint64_t aside; // frames by the general way that say nothing of the ways: many of one kind
};

// Exits with status 2 if the kernel lacks a feature.
struct rig *rig_new(uint32_t max_entries);
void rig_free(struct rig *rig);
void rig_cleanup(struct rig **rig);
#define CLEANUP_RIG CLEANUP(rig_cleanup)

// Programs

// From now on, all policies of rigs are loaded without the short program.
void rig_general_only(void);
bool rig_is_general_only(void);
// From now on, all policies of rigs are loaded as on a machine that reorders reads
// (xdp/order.bpf.h).
void rig_reorders(void);
bool rig_is_reordering(void);
void rig_program(const struct rig *rig, enum weir_prog which, int prog); // -1: empty
// The caller keeps the generation while it is used.
void rig_policy(const struct rig *rig, enum weir_prog which, const struct generation *g);
// The empty policy with `malformed pass`; owned by the rig.
const struct generation *rig_lenient(struct rig *rig);
int rig_tiny(const struct rig *rig,
	     uint32_t verdict); // a program that only returns it; to be closed
// Frames arrive on interface `number` from now on.
void rig_iface(const struct rig *rig, uint32_t number);

// How many frames the short program has handed on to the general one.
uint64_t rig_handed_on(const struct rig *rig);
// Has each way seen its part of the frames that were sent (tests/ways.h)? Prints how many.
bool rig_sees_both_ways(const struct rig *rig);

// Time

struct clock rig_clock(const struct rig *rig);
// Jiffies `ms` from now.
uint64_t rig_after_ms(const struct rig *rig, uint64_t ms);
// Returns when it has expired.
void rig_wait(const struct rig *rig, uint64_t jiffies);

// Frames

struct moved {
	uint32_t number; // interface
	enum weir_reason reason;
	struct counter by;
};

struct outcome {
	int code; // 0, or -errno: the kernel refused to run it
	uint32_t verdict;
	bool changed;            // packet out is not packet in
	const struct frame *out; // until the next one is sent
	size_t moved_n;          // counters that moved
	struct moved moved[4];
};

// One frame through the root program. linear: bytes in the first buffer, 0: as the kernel chooses.
struct outcome rig_send(struct rig *rig, const struct frame *f, uint32_t linear);
// The same, but reads only the counters of interface `number`. rig_look reads all, which is much
// slower.
struct outcome rig_send_on(struct rig *rig, uint32_t number, const struct frame *f,
			   uint32_t linear);
struct outcome rig_look(struct rig *rig);
// The same without reading the counters.
struct outcome rig_try(struct rig *rig, const struct frame *f, uint32_t linear);
// Only the verdict, without reading the counters; `repeat` times. Exits on failure.
#define DROPPED 1u
#define PASSED  2u
uint32_t rig_verdict(struct rig *rig, const struct frame *f, uint32_t repeat);
// The same for one packet of frame_source().
uint32_t rig_verdict_from(struct rig *rig, const char *src);
// Fails the test unless the frame was counted once, with this reason and its verdict, and nothing
// else changed.
#define EXPECT(t, rig, f, reason, bytes) \
	rig_expect((t), __FILE__, __LINE__, (rig), (f), REASON_##reason, (bytes))
bool rig_expect(struct test *t, const char *file, int line, struct rig *rig, const struct frame *f,
		enum weir_reason reason, uint64_t bytes);

// Overlay entries as text: "block-from 192.0.2.0/24, allow-to 2001:db8::1"

struct wants {
	struct overlay_entry *at;
	size_t n, cap;
};
void wants_cleanup(struct wants *w);
#define CLEANUP_WANTS CLEANUP(wants_cleanup)

// One entry. 0 or -EINVAL with err set.
int want_parse(const char *text, uint64_t until, struct overlay_entry *ret, struct err *err);
// Adds entries. 0 or -EINVAL with err set.
int wants_parse(struct wants *w, const char *text, uint64_t until, struct err *err);
// The same for texts that are known to be valid.
void wants_add(struct wants *w, const char *text, uint64_t until);
// In the order of overlay_stage.
void wants_sort(struct wants *w);
// "block-from"
const char *kind_name(unsigned kind);

// Makes w the whole overlay. Exits if it is refused.
void rig_stage(const struct rig *rig, struct wants *w, struct overlay_plan *ret);
void rig_overlay(const struct rig *rig, struct wants *w);
void rig_overlay_text(const struct rig *rig, const char *entries); // all permanent; "": no entry
// Packets counted in this one entry; 0: no such entry.
struct overlay_hits rig_hits(const struct rig *rig, const char *entry);
