/* SPDX-License-Identifier: GPL-2.0-only */
/* The keyed hash of rings and keys: SipHash-1-3 (Aumasson and Bernstein, INDOCRYPT 2012). Flows
 * have a different hash: common/flowhash.h.
 *
 * It has one round after each word and three at the end. Kernel and user space compute the same,
 * and it is an ABI: docs/ring.md. Messages are bytes; addresses and ports in them are in network
 * order. SipHash takes them as 64-bit words, lower byte first. Only the last function below has a
 * loop: the others are inlined into programs that every verifier has to follow. */
#pragma once

#include <linux/types.h>

#define HASH_INLINE static inline __attribute__((always_inline))

#define HASH_ROUNDS       1 /* c: after each word */
#define HASH_ROUNDS_FINAL 3 /* d: at the end */

struct hash_key {
	__u64 word[2]; /* sixteen bytes, lower byte first */
};

struct hash_state {
	__u64 v0, v1, v2, v3;
};

/* Bytes of memory as SipHash counts them. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HASH_LE32(x) ((__u64)(x))
#else
#define HASH_LE32(x) ((__u64)__builtin_bswap32(x))
#endif
/* A 16-bit number in host order, as bytes in network order. */
#define HASH_BE16(x) ((__u64)__builtin_bswap16(x))

#define HASH_ROTATE(x, n) ((x) << (n) | (x) >> (64 - (n)))

HASH_INLINE void hash_round(struct hash_state *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = HASH_ROTATE(s->v1, 13) ^ s->v0;
	s->v3 = HASH_ROTATE(s->v3, 16) ^ s->v2;
	s->v0 = HASH_ROTATE(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = HASH_ROTATE(s->v1, 17) ^ s->v2;
	s->v3 = HASH_ROTATE(s->v3, 21) ^ s->v0;
	s->v2 = HASH_ROTATE(s->v2, 32);
}

/* Up to four rounds; `n` is a constant where it is called, and no loop is left. */
HASH_INLINE void hash_rounds(struct hash_state *s, int n)
{
	hash_round(s);
	if (n > 1)
		hash_round(s);
	if (n > 2)
		hash_round(s);
	if (n > 3)
		hash_round(s);
}

HASH_INLINE void hash_begin(struct hash_state *s, const struct hash_key *key)
{
	s->v0 = key->word[0] ^ 0x736f6d6570736575ull;
	s->v1 = key->word[1] ^ 0x646f72616e646f6dull;
	s->v2 = key->word[0] ^ 0x6c7967656e657261ull;
	s->v3 = key->word[1] ^ 0x7465646279746573ull;
}

/* The next eight bytes, the first in the lowest bits. */
HASH_INLINE void hash_word(struct hash_state *s, __u64 word, int c)
{
	s->v3 ^= word;
	hash_rounds(s, c);
	s->v0 ^= word;
}

/* `rest`: the length % 8 last bytes, the first in the lowest bits, zeros above. */
HASH_INLINE __u64 hash_end(struct hash_state *s, __u64 rest, __u64 length, int c, int d)
{
	hash_word(s, rest | length << 56, c);
	s->v2 ^= 0xff;
	hash_rounds(s, d);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

HASH_INLINE void hash_add(struct hash_state *s, __u64 word)
{
	hash_word(s, word, HASH_ROUNDS);
}

HASH_INLINE __u64 hash_done(struct hash_state *s, __u64 length)
{
	return hash_end(s, 0, length, HASH_ROUNDS, HASH_ROUNDS_FINAL);
}

/* Two 32-bit pieces of an address, as in the packet. */
HASH_INLINE __u64 hash_pair(__u32 first, __u32 second)
{
	return HASH_LE32(first) | HASH_LE32(second) << 32;
}

/* n things, spread evenly over 32 bits: which one `bits` falls on. */
HASH_INLINE __u32 hash_scale(__u32 bits, __u32 n)
{
	return (__u32)((__u64)bits * n >> 32);
}

/* Any bytes: for user space, it has loops. c and d up to four. */
static inline __u64 hash_bytes(const struct hash_key *key, const void *data, __u64 length, int c,
			       int d)
{
	const __u8 *at = data;
	struct hash_state s;
	__u64 word = 0;

	hash_begin(&s, key);
	for (__u64 i = 0; i < length; i++) {
		word |= (__u64)at[i] << i % 8 * 8;
		if (i % 8 == 7) {
			hash_word(&s, word, c);
			word = 0;
		}
	}
	return hash_end(&s, word, length, c, d);
}
