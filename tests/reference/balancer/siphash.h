// SPDX-License-Identifier: GPL-2.0-only
// SipHash-1-3, after Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012).
#ifndef REF_SIPHASH_H
#define REF_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY 16

/* One round after each word, three at the end. */
uint64_t siphash13(const uint8_t key[SIPHASH_KEY], const void *message, size_t len);

/* The low bytes of value, lower first and in network order. */
void bytes_lower_first(uint8_t *to, uint64_t value, unsigned int bytes);
void bytes_network(uint8_t *to, uint64_t value, unsigned int bytes);

#endif
