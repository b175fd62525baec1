/* SPDX-License-Identifier: GPL-2.0-only */
/* The hash of flows: Multilinear-HM (Lemire and Kaser, The Computer Journal 57, 2014) and a
 * finalizer, all keys secret.
 *
 * It is a universal hash, not a pseudorandom function: without the keys an attacker cannot
 * construct flows that share a slot or a bucket, which is sufficient here. For IPv4 it takes four
 * multiplications. Kernel and user space compute the same, and it is an ABI: docs/ring.md. A flow
 * is an even number of 32-bit words: the bytes as in the packet, the lower byte first. */
#pragma once

#include <linux/types.h>

#include "common/hash.h"

#define FLOW_WORDS 10 /* words of the longest flow: two IPv6 addresses, the ports, the protocol */

/* Made once from the key of the service: ring_flow_key(). The flows of IPv4 need its first 48
 * bytes. */
struct flow_key {
	__u64 mix[2]; /* odd */
	__u64 word[FLOW_WORDS];
};

/* Words n and n + 1 of the flow, in memory order. */
HASH_INLINE __u64 flow_pair(const struct flow_key *key, int n, __u32 even, __u32 odd)
{
	return (key->word[n] + HASH_LE32(even)) * (key->word[n + 1] + HASH_LE32(odd));
}

/* The highest bits of the product are the best; each bit of the result depends on all of these. */
HASH_INLINE __u64 flow_mix(const struct flow_key *key, __u64 sum)
{
	sum ^= sum >> 32;
	sum *= key->mix[0];
	sum ^= sum >> 32;
	sum *= key->mix[1];
	return sum ^ sum >> 32;
}

/* The word of both ports, as in the packet. Ports in host order. */
HASH_INLINE __u32 flow_ports(__u16 sport, __u16 dport)
{
	__u32 ports = (__u32)HASH_BE16(sport) | (__u32)HASH_BE16(dport) << 16;

	return (__u32)HASH_LE32(ports);
}

/* The word of the protocol: its number and three zeros. */
HASH_INLINE __u32 flow_proto(__u8 proto)
{
	return (__u32)HASH_LE32(proto);
}

/* Addresses and ports as in the packet. */
HASH_INLINE __u64 flow_tuple4(const struct flow_key *key, __u32 src_be, __u32 dst_be,
			      __u32 ports_be, __u8 proto)
{
	return flow_mix(key, flow_pair(key, 0, src_be, dst_be) +
				     flow_pair(key, 2, ports_be, flow_proto(proto)));
}

HASH_INLINE __u64 flow_tuple6(const struct flow_key *key, const __u32 src_be[4],
			      const __u32 dst_be[4], __u32 ports_be, __u8 proto)
{
	return flow_mix(key, flow_pair(key, 0, src_be[0], src_be[1]) +
				     flow_pair(key, 2, src_be[2], src_be[3]) +
				     flow_pair(key, 4, dst_be[0], dst_be[1]) +
				     flow_pair(key, 6, dst_be[2], dst_be[3]) +
				     flow_pair(key, 8, ports_be, flow_proto(proto)));
}

/* Only the client, for `hash source`. */
HASH_INLINE __u64 flow_source4(const struct flow_key *key, __u32 src_be)
{
	return flow_mix(key, flow_pair(key, 0, src_be, 0));
}

HASH_INLINE __u64 flow_source6(const struct flow_key *key, const __u32 src_be[4])
{
	return flow_mix(key, flow_pair(key, 0, src_be[0], src_be[1]) +
				     flow_pair(key, 2, src_be[2], src_be[3]));
}

/* Of either family; IPv4 in the first word. */
HASH_INLINE __u64 flow_tuple(const struct flow_key *key, int family, const __u32 *src_be,
			     const __u32 *dst_be, __u32 ports_be, __u8 proto)
{
	return family == 4 ? flow_tuple4(key, src_be[0], dst_be[0], ports_be, proto)
			   : flow_tuple6(key, src_be, dst_be, ports_be, proto);
}

HASH_INLINE __u64 flow_source(const struct flow_key *key, int family, const __u32 *src_be)
{
	return family == 4 ? flow_source4(key, src_be[0]) : flow_source6(key, src_be);
}
