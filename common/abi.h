/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of the pinned maps and programs, and the version of their layout. */
#pragma once

#include <linux/types.h>

/* Raise it when the layout or the meaning of anything in common/ that lives in a pinned map changes:
 * a tool of another version then refuses to touch the pins instead of misreading them. */
#define WEIR_LAYOUT 8

/* Maps that live as long as the instance; file names below /sys/fs/bpf/weir/INSTANCE/. */
#define WEIR_MAP_META     "meta"
#define WEIR_MAP_KNOBS    "knobs"
#define WEIR_MAP_PROGS    "progs"
#define WEIR_MAP_IFACES   "ifaces"
#define WEIR_MAP_COUNTERS "counters"
#define WEIR_MAP_EVENTS   "events"
#define WEIR_MAP_HOSTS4   "hosts4"
#define WEIR_MAP_HOSTS6   "hosts6"
#define WEIR_MAP_NETS4    "nets4"
#define WEIR_MAP_NETS6    "nets6"
#define WEIR_MAP_RULES    "rulecounters"
#define WEIR_MAP_STATIONS "stations"

#define WEIR_MAP_IDENTITIES "identities" /* struct identity_key -> row of the rule counters */

struct identity_key {
	__u64 digest[2];
};

/* A MAC address that frames to this host may have on an interface, beside the one in knobs.station. */
struct station_key {
	__u32 number; /* of the interface */
	__u32 pad;
	__u64 mac; /* the six bytes in the order of the frame, the first in the lowest bits */
};

/* Indexes of the progs array; constants, because a variable index costs a retpoline. */
enum weir_prog {
	PROG_ACTIVE,
	PROG_PREVIOUS,
};

/* Can the programs of the instance run under libxdp's dispatcher, beside other XDP programs? Tried once,
 * when the instance is made: all programs that ever come into its progs array are loaded for one answer. */
enum weir_sharing {
	SHARING_WORKS,
	SHARING_NO_DISPATCHER, /* libxdp's dispatcher is not installed, or does not load */
	SHARING_NO_EXTENSIONS, /* the kernel allows no BPF_PROG_TYPE_EXT */
	SHARING_OLD_LIBXDP,    /* the kernel wants a dispatcher whose places change packets */
	SHARING_REFUSED,       /* the kernel says no for another reason */
};

/* The one row of the meta map, written before the pins become visible and never after. */
struct meta {
	__u32 layout;       /* WEIR_LAYOUT of the tool that made the pins */
	__u32 max_entries;  /* of each overlay map */
	__u64 netns_cookie; /* network namespace of the first attach (SO_NETNS_COOKIE) */
	__u64 netns_inode;  /* the same for people: the inode of /proc/PID/ns/net */
	__u64 created_s;    /* wall clock, seconds since 1970 */
	__u32 sharing;      /* enum weir_sharing */
	__u32 sharing_code; /* the errno that went with it, 0 where it works */
	__u64 ring_key[2];  /* of rings, where the policy has no `seed` */
};
_Static_assert(sizeof(struct meta) == 56, "layout");

/* What a row of the ifaces map says. A row is written before the kernel is asked and again after, so
 * that a killed command leaves behind what it was about to do. */
enum iface_state {
	IFACE_FREE,
	IFACE_ATTACHING,
	IFACE_ATTACHED,
	IFACE_DETACHING,
};

enum iface_mode {
	IFACE_NATIVE,
	IFACE_GENERIC,
};

struct iface {
	char name
		[16]; /* NUL-terminated, when it was last looked at; a device made anew under this name gets the number */
	__u32 ifindex;
	__u32 state;         /* enum iface_state */
	__u32 mode;          /* enum iface_mode */
	__u32 shared;        /* 1: behind libxdp's dispatcher, 0: alone on the interface */
	__u32 prog_id;       /* of our root program there */
	__u32 dispatcher_id; /* program the link shows when shared, else 0 */
	__u64 attached_s;    /* wall clock */
	__u32 generation;    /* number of the policy that it came with, 0: `weir attach` */
	__u32 linked;        /* 1: held by the bpf_link that is pinned as links/NUMBER */
};
_Static_assert(sizeof(struct iface) == 56, "layout");
