// SPDX-License-Identifier: GPL-2.0-only
// Next hops of backends, as the datapath reads them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/net/nexthop.h"
#include "ctl/table/lb_state.h"

// nexthop_find for destinations of which some are `here` (family 0), which are not looked up.
int nexthops_find(const struct addr *dests, size_t n, uint32_t wait_ms, struct nexthop_answer *ret,
		  struct err *err);

// Where a service's outer headers come from.
struct nexthops_source {
	const struct prefix *at; // of `source`
	size_t n;
	uint8_t mode; // enum service_mode
};

// The backend of a member. hop NULL: not looked up. old: the backend in the kernel, NULL: none;
// whose MAC address stays when a neighbour is silent. *ret_why: a sentence, owned by the caller,
// when packets would get lost; else untouched.
void nexthops_backend(const struct lb_member *m, const struct nexthops_source *source,
		      const struct nexthop_answer *hop, const struct backend *old,
		      struct backend *ret, char **ret_why);
