/* SPDX-License-Identifier: GPL-2.0-only */
/* Internet checksums (RFC 1071), in the byte order of the packet. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/bounds.h"

/* The product with 2^16 is equal modulo 65535. */
#define SUM_EACH_16 0x0001000100010001ull

/* Folds a sum below 2^47 to 16 bits. In the upper 16 bits the product adds up the three words of
 * the sum, and what their sum carries. */
static __always_inline __u32 sum_fold(__u64 sum)
{
	return sum * SUM_EACH_16 >> 48;
}

static __always_inline __u16 csum_fold(__u64 sum)
{
	return ~sum_fold(sum);
}

/* Adds `words` 16-bit words at p; words is a constant. */
static __always_inline __u64 csum_add(__u64 sum, const void *p, int words)
{
	const __u16 *word = p;

#pragma unroll
	for (int i = 0; i < words; i++)
		sum += word[i];
	return sum;
}

/* The sum of a pseudo-header, not folded (RFC 9293 section 3.1, RFC 8200 section 8.1), modulo
 * 65535, where bpf_htons(x) is x * bpf_htons(1). Addresses as in the packet; length: of what
 * follows the headers of IP, host order. */
static __always_inline __u64 pseudo_sum(int family, const __u32 *src, const __u32 *dst,
					__u16 length, __u8 proto)
{
	__u64 sum = (__u64)(length + proto) * bpf_htons(1) + src[0] + dst[0];

	if (family == 6)
		sum += (__u64)src[1] + src[2] + src[3] + dst[1] + dst[2] + dst[3];
	return sum;
}

/* Does the checksum hold the sum of the pseudo-header only, whose completion a local sender leaves
 * to its device? Then both are equal modulo 65535: their difference is a multiple, whose quotient
 * is below 2^48, and the difference times SUM_EACH_16, the inverse of -65535, is this quotient.
 * Also true for 0 if the pseudo-header has 0xffff. */
static __always_inline bool may_be_partial(__u16 check, __u64 pseudo)
{
	const __u64 each = BOUND_HIDE(SUM_EACH_16);

	return (check - pseudo) * each <= each;
}
