// SPDX-License-Identifier: GPL-2.0-only
// An answer of a name server.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/vec.h"

enum {
	DNS_TYPE_A = 1,
	DNS_TYPE_CNAME = 5,
	DNS_TYPE_AAAA = 28,
};

struct dns_found {
	VEC(struct addr) addrs;
	uint32_t ttl_s;      // the smallest of all used records; meaningless without addresses
	char canonical[256]; // the name that owns the addresses
};

// Adds to *found the addresses that `name` has in this answer to a query for `type` (A or AAAA),
// CNAMEs followed in any order. 0, -ENODATA without addresses, -EIO if it is malformed or a
// chain does not end.
int dns_message_read(const uint8_t *message, size_t len, const char *name, uint16_t type,
		     struct dns_found *found);
