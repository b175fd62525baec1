/* SPDX-License-Identifier: GPL-2.0-only */
/* Values that change while programs run: all programs of an instance share one map with the
 * knobs. */
#pragma once

#include <linux/types.h>

#include "common/limits.h"
#include "common/overlay.h"

/* Bits of knobs.overlay: which look-ups can find something at all. */
#define OVERLAY_HOSTS4_FROM (1u << 0)
#define OVERLAY_HOSTS4_TO   (1u << 1)
#define OVERLAY_HOSTS6_FROM (1u << 2)
#define OVERLAY_HOSTS6_TO   (1u << 3)
/* One bit for each family and kind of prefixes: OVERLAY_NETS4 << kind, OVERLAY_NETS6 << kind. */
#define OVERLAY_NETS4 (1u << 8)
#define OVERLAY_NETS6 (1u << 16)
/* One bit for each kind of outgoing calls, of both families. */
#define OVERLAY_OUT_LOG2  24
#define OVERLAY_OUT(kind) (1u << (OVERLAY_OUT_LOG2 + (kind)-OVERLAY_PACKET_KINDS))
_Static_assert(OVERLAY_KINDS - OVERLAY_PACKET_KINDS <= 8, "a bit for each");

/* ifindex -> interface number: one access. User space picks a multiplier under which no two
 * interfaces have the same bucket, and has two tables, so that it can fill one while packets read
 * the other. knobs.iface_hash has the multiplier in its upper half, in the lower one where the
 * table begins. */
#define IFACE_BUCKET(ifindex, number) ((__u64)(number) << 32 | (ifindex))

static inline __u32 iface_bucket(__u64 hash, __u32 ifindex)
{
	__u32 bucket = ifindex * (__u32)(hash >> 32) >> (32 - WEIR_IFACE_BUCKETS_LOG2);

	return bucket | (hash & WEIR_IFACE_BUCKETS);
}

/* The index of an interface in the arrays below, and its bit in words that have one for each
 * interface. The mask is for the verifier: numbers are below WEIR_IFACES. */
static inline __u32 iface_index(__u32 number)
{
	return number & (WEIR_IFACES - 1);
}

static inline __u64 iface_bit(__u32 number)
{
	return 1ull << iface_index(number);
}

/* Flag of knobs.station: the address is known. Other addresses of the interface are in the map
 * `stations`. */
#define STATION_KNOWN (1ull << 63)

/* Times are jiffies64; 0 means "off". User space writes each field with one store, under the
 * instance's lock; programs only read. The first 64 bytes are the hot ones. */
struct knobs {
	__u64 deadline; /* commit-confirm: from then on the root program jumps to progs[PREVIOUS] */
	__u64 bypass;   /* latest end of any bypass below */
	__u64 epoch;    /* overlay entries staged for an epoch <= this one are active */
	__u64 iface_hash; /* where an ifindex is in iface_buckets */
	__u64 watch;      /* drop events are wanted until then */
	__u32 overlay;    /* OVERLAY_* bits */
	__u32 chosen;     /* the larger of the shares `sample` and `capture` */
	__u64 seed;       /* seed of the random numbers in the datapath */
	__u64 generic;    /* bit: number of an interface in generic mode */
	/* number of shards of the overlay's hosts, IPv4 and IPv6: 0, or a power of two */
	__u32 shards[2];
	/* the epoch whose entries have their final form; != epoch: a command did not finish */
	__u64 settled;
	__u32 moving;                    /* 1: entries are being moved */
	__u32 near_stale;                /* prefixes removed since overlay_near was built */
	__u32 entries[6][OVERLAY_KINDS]; /* entries of the overlay, by table, then by kind */
	__u64 bypass_until[WEIR_IFACES]; /* by interface number; [0] unused */
	__u64 station[WEIR_IFACES]; /* MAC | STATION_KNOWN by interface number; 0: any is ours */
	/* IPv4 and IPv6: index of a device that forwards, for frames that come in on one that does
	 * not; 0: none */
	__u32 forwards[2][WEIR_IFACES];
	/* bit: number of an interface with tables of routes, or a switch, above it that are not
	 * known */
	__u64 unsure;
	__u64 staging; /* epoch that is being staged; != epoch: a command did not finish */
	/* bit: number of an interface attached by a trial; all packets pass after its end */
	__u64 brought;
	__u64 iface_buckets[2 * WEIR_IFACE_BUCKETS]; /* IFACE_BUCKET, 0: free */
	/* The members of a bond run its program, and frames arrive there: IFACE_BUCKET(member,
	 * number of the bond), 0: end. */
	__u64 members[WEIR_MEMBERS];
	/* Number for frames that arrive on another device: new or excess members of the bond, or
	 * the only interface, moved into a namespace where it has another index. 0: none. */
	__u64 iface_rest;
	__u64 watch_out;    /* events of refused calls are wanted until then */
	__u64 sample_until; /* samples are wanted until then */
	/* Both shares are of all packets, of 2^32; 0: none. */
	__u32 sample;
	__u32 capture;
	/* The filter of captured packets: */
	__u64 capture_until;      /* they are wanted until then */
	__u64 capture_reasons[2]; /* bit: enum weir_reason */
	__u32 capture_iface;      /* number of the interface; 0: any */
	__u32 capture_rule;       /* index of its counter; EVENT_NO_RULE: any */
	__u32 capture_snap;       /* bytes of a frame that are copied */
	__u32 snap;               /* bytes of a packet an event carries, at most WEIR_SNAP_MAX */
	/* bit: number of an interface whose devices are in the map `routed`, all with the main
	 * routing tables; on the others `unroutable` matches nothing */
	__u64 routed;
};
_Static_assert(sizeof(struct knobs) == 192 + 24 * OVERLAY_KINDS + 24 * WEIR_IFACES +
					       16 * WEIR_IFACE_BUCKETS + 8 * WEIR_MEMBERS,
	       "layout");
