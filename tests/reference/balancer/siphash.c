// SPDX-License-Identifier: GPL-2.0-only
// SipHash-1-3, word by word as in section 2 of the paper.
#include "siphash.h"

#define ROUNDS_WORD  1
#define ROUNDS_FINAL 3

void bytes_lower_first(uint8_t *to, uint64_t value, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> (8 * i));
}

void bytes_network(uint8_t *to, uint64_t value, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

static uint64_t word_read(const uint8_t *from, size_t bytes)
{
	uint64_t word = 0;

	for (size_t i = 0; i < bytes; i++)
		word |= (uint64_t)from[i] << (8 * i);
	return word;
}

static uint64_t rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], unsigned int rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void word_add(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_rounds(v, ROUNDS_WORD);
	v[0] ^= word;
}

uint64_t siphash13(const uint8_t key[SIPHASH_KEY], const void *message, size_t len)
{
	const uint8_t *bytes = message;
	uint64_t k0 = word_read(key, 8);
	uint64_t k1 = word_read(key + 8, 8);
	uint64_t v[4] = {
		k0 ^ 0x736f6d6570736575U,
		k1 ^ 0x646f72616e646f6dU,
		k0 ^ 0x6c7967656e657261U,
		k1 ^ 0x7465646279746573U,
	};
	size_t whole = len / 8 * 8;

	for (size_t i = 0; i < whole; i += 8)
		word_add(v, word_read(bytes + i, 8));
	word_add(v, (uint64_t)(len & 0xff) << 56 | word_read(bytes + whole, len - whole));
	v[2] ^= 0xff;
	sip_rounds(v, ROUNDS_FINAL);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
