// SPDX-License-Identifier: GPL-2.0-only
// Dynamic sets as user space sees them: the addresses that rules and `weir block --set` have added.
//
// They are LRU maps: a full one gives up its least recently used address. A map is larger than
// `max` by what the kernel hands out to each CPU at once; a smaller one would evict too early.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/datapath/generation.h"

struct set_address {
	struct prefix prefix; // of the set's mask
	uint64_t until;       // jiffies64, UINT64_MAX: permanent; may have expired
	uint64_t packets;     // 0 if the set does not count
};
struct set_addresses {
	struct set_address *at;
	size_t n, cap;
};

// The map of a dynamic set for a new generation: the one of generation folder `previous` (NULL:
// none) if that has one of this name and size; else a new one, with the addresses of one of another
// size. Nothing is pinned. Addresses that rules add between the copy and the switch are lost. 0 or
// -errno with err set.
int sets_provide(const char *previous, const char *name, uint32_t max, int *ret_fd,
		 struct err *err);

// The set of this name in the active policy; ERR_INPUT with a hint if there is no such set.
int sets_find(const struct generation_about *about, const char *name,
	      const struct generation_about_set **ret, struct err *err);
// All its addresses, sorted. The caller frees ret->at.
int sets_read(const struct instance *i, const struct generation_about_set *set,
	      struct set_addresses *ret, struct err *err);
// The number of addresses in it that have not expired at `now` (jiffies64).
int sets_fill(const struct instance *i, const struct generation_about_set *set, uint64_t now,
	      size_t *ret, struct err *err);
// Adds addresses (their networks by the set's mask) until a jiffy, or removes them.
int sets_add(const struct instance *i, const struct generation_about_set *set,
	     const struct addr *addrs, size_t n, uint64_t until, struct err *err);
int sets_remove(const struct instance *i, const struct generation_about_set *set,
		const struct addr *addrs, size_t n, size_t *ret_removed, struct err *err);
