/* SPDX-License-Identifier: GPL-2.0-only */
/* The layout version, and what all layouts have in common. ctl/datapath/instance.h has the shared
 * maps. */
#pragma once

#include <linux/types.h>

/* Raise it when the layout or the meaning of anything in common/ that is in a pinned map changes: a
 * tool of another version then refuses the instance instead of misreading it. */
#define WEIR_LAYOUT 30

/* File names below /sys/fs/bpf/weir/INSTANCE/ that are read in any layout. */
#define WEIR_META  "meta"
#define WEIR_PROGS "progs"

/* Key of the map `identities`: a hash of the rule's identity. Its value is the index of the rule
 * counter. */
struct identity_key {
	__u64 digest[2];
};

/* A MAC address that frames to this host may have on an interface, beside the one in
 * knobs.station. */
struct station_key {
	__u32 number; /* of the interface */
	__u32 pad;
	__u64 mac; /* the six bytes in the order of the frame, the first in the lowest bits */
};

/* A device that routes can name and by which frames of an interface reach the stack: the interface,
 * or one above it. */
struct routed_key {
	__u32 ifindex;
	__u32 number; /* of the interface */
};

struct routed {
	__u16 vid;      /* of these frames: of the outermost tag */
	__u8 tags;      /* number of their tags */
	__u8 any_frame; /* 1: whatever their tags: it is above a bridge, or tags are removed */
};

/* An address of this host, or the broadcast address of a subnet: no echo request from there is
 * answered. */
struct own_key {
	__u32 family;
	__u32 addr[4]; /* network order; IPv4 in [0], the rest zero */
};

/* Indexes of the program array; constants, because a variable index costs a retpoline. */
enum weir_prog {
	PROG_ACTIVE,
	PROG_PREVIOUS,
};

/* Elements of a generation's program array: the programs after its first one, reached by tail
 * calls. */
enum policy_stage {
	STAGE_BALANCE,
	STAGE_GENERAL, /* from the short program: weir_nat_answer, if it is loaded */
	STAGE_POLICY,  /* after that: the general program */
	STAGE_NAT,
	STAGE_NAT_ANY,
	STAGE_NAT_ANSWER_ANY,
	STAGES,
};

/* Can the programs of the instance run under libxdp's dispatcher, beside other XDP programs? It is
 * tried once, when the instance is made: all programs that ever come into its program array are
 * loaded for one answer. */
enum weir_sharing {
	SHARING_WORKS,
	SHARING_NO_DISPATCHER, /* libxdp's dispatcher is not installed, or does not load */
	SHARING_NO_EXTENSIONS, /* the kernel does not allow BPF_PROG_TYPE_EXT */
	/* the kernel requires a dispatcher whose functions may change packets */
	SHARING_OLD_LIBXDP,
	SHARING_REFUSED, /* the kernel refuses for another reason */
};

/* The only value of the map `meta`. It is written before the instance becomes visible, and never
 * afterwards. */
struct meta {
	__u32 layout;       /* WEIR_LAYOUT of the tool that made the instance */
	__u32 max_entries;  /* of each overlay map */
	__u64 netns_cookie; /* network namespace of the first attach (SO_NETNS_COOKIE) */
	__u64 netns_inode;  /* the same for messages: the inode of /proc/PID/ns/net */
	__u64 created_s;    /* wall clock, seconds since 1970 */
	__u32 sharing;      /* enum weir_sharing */
	__u32 sharing_code; /* the errno of the attempt, 0 if it works */
	__u64 ring_key[2];  /* seed of rings if the policy has no `seed` */
	__u32 cpus; /* CPUs below this number have small counters in the shards of the overlay */
	__u32 pad;
};
_Static_assert(sizeof(struct meta) == 64, "layout");

/* State of an element of the interface table. It is written before the kernel is asked and again
 * afterwards, so that a killed command leaves a record of what it was about to do. */
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

/* An element of the interface table, the map `ifaces`; its index is the number of the interface. */
struct iface {
	/* NUL-terminated, as last seen; a new device of this name gets the number */
	char name[16];
	__u32 ifindex;
	__u32 state;   /* enum iface_state */
	__u32 mode;    /* enum iface_mode */
	__u32 shared;  /* 1: under libxdp's dispatcher, 0: the only program on the interface */
	__u32 prog_id; /* ID of our root program there */
	__u32 dispatcher_id; /* ID of the program that the link shows if shared, else 0 */
	__u64 attached_s;    /* wall clock */
	__u32 generation;    /* number of the policy that brought it, 0: attached by a command */
	__u32 linked;        /* 1: held by the bpf_link that is pinned as links/NUMBER */
};
_Static_assert(sizeof(struct iface) == 56, "layout");
