/* SPDX-License-Identifier: GPL-2.0-only */
/* Internet checksums (RFC 1071), in the byte order of the packet. */
#pragma once

#include <linux/types.h>

static __always_inline __u16 csum_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
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
