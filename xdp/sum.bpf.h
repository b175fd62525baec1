/* SPDX-License-Identifier: GPL-2.0-only */
/* Checksums over whole packets, and the completion of partial checksums that a local sender left to
 * its device. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/bounds.h"
#include "xdp/csum.bpf.h"
#include "xdp/generic.bpf.h"
#include "xdp/parse.bpf.h"
#include "xdp/service.bpf.h"

/* Bytes that one call of the kernel sums up; a multiple of four. */
#define SUM_BYTES  512
#define SUM_CHUNKS (IP_MAX_BYTES / SUM_BYTES + 1)

struct sum_buffer {
	__u8 bytes[SUM_BYTES] __attribute__((aligned(8))); /* cleared eight at a time */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sum_buffer);
} sum_buffers SEC(".maps");

/* The sum of `length` bytes from `offset` on, 16 bits in the order of the packet, not inverted; -1:
 * the packet is shorter. */
__noinline int sum_packet(struct xdp_md *ctx, __u32 offset, __u32 length)
{
	__u32 zero = 0;
	struct sum_buffer *b = bpf_map_lookup_elem(&sum_buffers, &zero);
	__s64 sum = 0;

	if (!b)
		return -1;
	for (int i = 0; i < SUM_CHUNKS && length >= SUM_BYTES; i++) {
		if (bpf_xdp_load_bytes(ctx, offset, b->bytes, SUM_BYTES))
			return -1;
		sum = bpf_csum_diff(NULL, 0, (__be32 *)b->bytes, SUM_BYTES, (__u32)sum);
		offset += SUM_BYTES;
		length -= SUM_BYTES;
	}
	if (length >= SUM_BYTES)
		return -1;
	if (length) {
		__u32 n = BOUND_LENGTH(length, SUM_BYTES);

		__builtin_memset(b->bytes, 0, SUM_BYTES);
		if (bpf_xdp_load_bytes(ctx, offset, b->bytes, n))
			return -1;
		sum = bpf_csum_diff(NULL, 0, (__be32 *)b->bytes, SUM_BYTES, (__u32)sum);
	}
	return sum_fold((__u32)sum);
}

/* Not folded. */
static __always_inline __u64 pseudo_of(const struct packet *pkt)
{
	return pseudo_sum(pkt->family, pkt->src, pkt->dst, pkt->end - pkt->l4_offset, pkt->proto);
}

/* The sum of a whole packet from its headers: TCP or UDP with the pseudo-header sum up to all ones,
 * and so does a header of IPv4. ip: the header, looked at for IPv6. */
static __always_inline __u32 inner_of(int family, __u64 pseudo, const void *ip)
{
	__u64 sum = 0xffff & ~sum_fold(pseudo);
	const __u32 *word = ip;

	if (family == 6) {
#pragma unroll
		for (int i = 0; i < 10; i++)
			sum += word[i];
	}
	return sum_fold(sum);
}

/* Folded: what a sender writes that leaves the rest to its device. */
static __always_inline __u32 sum_pseudo(const struct packet *pkt)
{
	return sum_fold(pseudo_of(pkt));
}

/* Is the checksum of an ICMP message right? */
static __always_inline bool checksum_holds(struct xdp_md *ctx, const struct packet *pkt)
{
	int sum = sum_packet(ctx, pkt->l4_offset, pkt->end - pkt->l4_offset);

	if (sum < 0)
		return false;
	return sum_fold((__u32)sum + (pkt->family == 6 ? sum_pseudo(pkt) : 0)) == 0xffff;
}

/* Offset of the checksum of TCP or UDP in the frame; 0: none. */
static __always_inline __u32 checksum_offset(const struct packet *pkt)
{
	if (!pkt->has_l4 || pkt->fragment || pkt->quoted)
		return 0;
	return pkt->proto == IPPROTO_TCP   ? pkt->l4_offset + 16
	       : pkt->proto == IPPROTO_UDP ? pkt->l4_offset + 6
					   : 0;
}

/* The checksum of TCP or UDP over all bytes after the headers of IP, or NULL. UDP may end before IP
 * does (RFC 9868): its checksum does not cover what follows. */
static __always_inline const __u16 *checksum_at(const struct xdp_md *ctx, const struct packet *pkt)
{
	__u32 offset = checksum_offset(pkt);
	const __u16 *at;

	/* The length of UDP is two bytes before its checksum. */
	if (!offset || offset - 2 > L4_OFFSET_MAX || !(at = header_at(ctx, offset - 2, 4)))
		return NULL;
	if (pkt->proto == IPPROTO_UDP && at[0] != bpf_htons(pkt->end - pkt->l4_offset))
		return NULL;
	return at + 1;
}

/* Completes a checksum that has only the sum of the pseudo-header. Once in 65,536 a complete one
 * looks the same: then the packet already sums up to all ones. */
__noinline int checksum_complete(struct xdp_md *ctx, struct packet *pkt)
{
	__u32 offset;
	int sum;
	__u16 check;

	if (!pkt || !(offset = checksum_offset(pkt)))
		return 0;
	sum = sum_packet(ctx, pkt->l4_offset, pkt->end - pkt->l4_offset);
	/* The field itself has the pseudo-header: the sum covers both. */
	if (sum < 0 || sum_fold((__u32)sum + sum_pseudo(pkt)) == 0xffff)
		return 0;
	check = ~sum;
	if (!check && pkt->proto == IPPROTO_UDP)
		check = 0xffff; /* zero means none: RFC 768 */
	return !bpf_xdp_store_bytes(ctx, offset, &check, sizeof(check));
}

static __always_inline bool checksum_is_partial(const struct xdp_md *ctx, const struct packet *pkt)
{
	const __u16 *check = checksum_at(ctx, pkt);

	return check && *check && may_be_partial(*check, pseudo_of(pkt));
}

/* We cannot ask the device to sum up, so a frame that a driver sends must be complete. In generic
 * mode the kernel still knows the remaining work. */
static __always_inline void checksum_check(struct xdp_md *ctx, struct packet *pkt,
					   const struct service *s)
{
	if (likely(!checksum_is_partial(ctx, pkt)))
		return;
	if (is_generic(ctx))
		return;
	if (checksum_complete(ctx, pkt))
		service_tally(s->id, SERVICE_COMPLETED);
}
