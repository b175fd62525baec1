/* SPDX-License-Identifier: GPL-2.0-only */
/* What a policy program is built with (struct config, read-only data: the verifier deletes what it
 * switches off) and what can be turned while it runs (struct knobs, one map shared by all programs). */
#pragma once

#include <linux/types.h>

#include "common/limits.h"

struct config {
	__u8 malformed_pass; /* malformed packets are counted and passed instead of dropped */
	__u8 twin; /* a private copy for expect and explain: nothing is counted or written */
	__u8 pad[6];
};
_Static_assert(sizeof(struct config) == 8, "layout");

/* Bits of knobs.overlay: which look-ups can find something at all. */
#define OVERLAY_HOSTS4_FROM (1u << 0)
#define OVERLAY_HOSTS4_TO   (1u << 1)
#define OVERLAY_HOSTS6_FROM (1u << 2)
#define OVERLAY_HOSTS6_TO   (1u << 3)
/* One bit for each family and kind of prefixes: OVERLAY_NETS4 << kind, OVERLAY_NETS6 << kind. */
#define OVERLAY_NETS4 (1u << 8)
#define OVERLAY_NETS6 (1u << 16)

/* ifindex -> interface number, open addressing: an interface stands in one of the WEIR_IFACE_PROBES
 * slots from its ifindex on, modulo the size. ifindex 0: free. */
struct iface_slot {
	__u32 ifindex;
	__u32 number;
};

/* Times are jiffies64; 0 means "off". All of it is written by user space under the instance's lock,
 * each field with one store; programs only read. The first 64 bytes are the hot ones. */
struct knobs {
	__u64 deadline; /* commit-confirm: from then on entry runs the previous program */
	__u64 bypass;   /* latest end of any bypass below */
	__u64 epoch;    /* overlay entries staged for an epoch <= this one are in force */
	__u64 staging;  /* epoch that is being staged; != epoch: a command did not finish */
	__u64 watch;    /* drop events are wanted until then */
	__u32 overlay;  /* OVERLAY_* bits */
	__u32 snap;     /* bytes of a packet an event carries, at most WEIR_SNAP_MAX */
	__u64 seed;     /* of the random numbers in the datapath */
	__u64 generic;  /* bit: number of an interface in generic mode */
	__u64 bypass_until[WEIR_IFACES]; /* by interface number; [0] unused */
	struct iface_slot iface_slots[WEIR_IFACE_SLOTS];
};
_Static_assert(sizeof(struct knobs) == 64 + 8 * WEIR_IFACES + 8 * WEIR_IFACE_SLOTS, "layout");
