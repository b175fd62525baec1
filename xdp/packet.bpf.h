/* SPDX-License-Identifier: GPL-2.0-only */
/* The result of parse for a packet, and the results of stages. */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_helpers.h>

#include "common/counters.h"

/* A stage returns the reason that decides the packet (enum weir_reason), or this. */
#define GO_ON (-1)
/* The packet goes on to `weir_nat`. */
#define TO_NAT (-2)

#define IP_MAX_BYTES 65535 /* the range of the length field of IPv4 */
/* The minimum length of Ethernet, with a tag or the checksum: a shorter packet may have been padded
 * to this length. */
#define FRAME_SHORT 64

enum packet_fragment {
	FRAGMENT_NONE,
	FRAGMENT_FIRST,
	FRAGMENT_LATER, /* has no ports, flags or type: its payload is never read */
};

struct packet {
	__u32 src[4], dst[4]; /* network order; IPv4 in [0], the rest zero */
	__u32 length;         /* IP length; frame length where there is no IP header */
	__u32 end;            /* offset in the frame where the IP packet ends */
	__u16 l3_offset, l4_offset;
	__u16 ethertype;    /* host order, after all tags */
	__u16 vlan;         /* TCI of the outermost tag, host order */
	__u16 sport, dport; /* host order, 0 without ports */
	__u8 family;        /* 4, 6, or 0: not IP */
	__u8 tags;          /* number of VLAN tags */
	__u8 proto;         /* upper-layer protocol after all extension headers */
	__u8 fragment;      /* enum packet_fragment */
	__u8 has_l4;        /* ports, flags, type and code below are from the packet */
	__u8 tcp_flags;
	__u8 icmp_type, icmp_code;
	__u8 ttl, dscp;
	__u8 fragment_header; /* IPv6: a fragment header was there, also of an atomic fragment */
	/* number of the interface in the policy + 1; 0: not named there, or the policy names
	 * none */
	__u8 iface;
	__u8 tcp_header;        /* bytes */
	__u16 fragment_at;      /* offset of the fragment header of IPv6 in the frame */
	__u32 tcp_seq, tcp_ack; /* network order, for reject */
	__u32 sctp_tag;     /* 0: the packet is an INIT and nothing else (RFC 9260 section 8.5.1) */
	__u8 neighbour;     /* IPv6 neighbour discovery from this link */
	__u8 source_routed; /* IPv6: a routing header whose end is not reached */
	__u8 only_service;  /* dropped by default unless it goes to a backend */
	/* an ICMP error: addresses and ports of the flow it quotes, the client as source */
	__u8 quoted;
	__u8 returned; /* weir_nat has found no connection */
	__u8 verdict;  /* XDP_TX or XDP_REDIRECT, once it is on its way to a backend */
	__s32 service; /* that it belongs to; NO_SERVICE */
	__s32 passed;  /* the reason that let it pass before */
	__u32 row;     /* row of an address, passed through the map: see classify */
	/* index of the counter of the rule that decided, and 1; 0: none */
	__u32 decided_by;
};

#define NO_SERVICE (-1)

/* The VID of the outermost tag; 0: no VLAN. */
static __always_inline __u32 packet_vid(const struct packet *pkt)
{
	return pkt->vlan & 0xfff;
}

/* The packet in hand. In a map and not on the stack: what the verifier reads from there it knows
 * nothing about, so all the paths through the headers become one, where a call would cost more than
 * the whole look-up. No program interrupts another one on its CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct packet);
} packets SEC(".maps");

/* As the previous program for this packet has left it. */
static __always_inline struct packet *packet_kept(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&packets, &zero);
}

static __always_inline struct packet *packet_new(void)
{
	struct packet *pkt = packet_kept();

	if (pkt)
		*pkt = (struct packet){};
	return pkt;
}

#ifndef likely // libbpf 1.6 has both
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif
