// SPDX-License-Identifier: GPL-2.0-only
// The filter by which packets that are no answer are recognised: a bit for each source of fullnat,
// and for each {address, port, protocol} from which a backend of nat answers (docs/nat.md).
//
// Packets read the filter of the table at any time: a bit that is needed before and after a change
// is set at every moment. Pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/nat.h"

// Sets a bit. port_proto: nat_port_proto(); 0: the address is a source.
void nat_near_put(uint64_t near[NAT_NEAR_WORDS], int family, const uint32_t address[4],
		  uint32_t port_proto);
// Sets the bits of `more` too.
void nat_near_add(uint64_t near[NAT_NEAR_WORDS], const uint64_t more[NAT_NEAR_WORDS]);
// Sets the bits that one of the n filters has, and clears the others.
void nat_near_renew(uint64_t near[NAT_NEAR_WORDS], const uint64_t *const *needed, size_t n);
