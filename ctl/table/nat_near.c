// SPDX-License-Identifier: GPL-2.0-only
// Sets and clears bits of the filter for answers.
#include "ctl/table/nat_near.h"

static void set_bits(uint64_t *word, uint64_t bits)
{
	__atomic_fetch_or(word, bits, __ATOMIC_RELEASE);
}

void nat_near_put(uint64_t near[NAT_NEAR_WORDS], int family, const uint32_t address[4],
		  uint32_t port_proto)
{
	uint64_t mix = nat_mix(family, address, port_proto);

	set_bits(&near[nat_near_word(mix)], 1ull << nat_near_bit(mix));
}

void nat_near_add(uint64_t near[NAT_NEAR_WORDS], const uint64_t more[NAT_NEAR_WORDS])
{
	for (size_t w = 0; w < NAT_NEAR_WORDS; w++)
		if (more[w])
			set_bits(&near[w], more[w]);
}

void nat_near_renew(uint64_t near[NAT_NEAR_WORDS], const uint64_t *const *needed, size_t n)
{
	for (size_t w = 0; w < NAT_NEAR_WORDS; w++) {
		uint64_t bits = 0;

		for (size_t i = 0; i < n; i++)
			bits |= needed[i][w];
		__atomic_store_n(&near[w], bits, __ATOMIC_RELEASE);
	}
}
