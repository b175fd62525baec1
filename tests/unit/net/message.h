// SPDX-License-Identifier: GPL-2.0-only
// Synthetic netlink messages: answers of kernels that are not at hand.
#pragma once

#include <libmnl/libmnl.h>
#include <string.h>

#include "ctl/base/addr.h"

struct message {
	char bytes[1024] __attribute__((aligned(NLMSG_ALIGNTO)));
};

// A header of `size` bytes, to be filled in, after the header of the message.
static inline void *message_begin(struct message *m, uint16_t type, size_t size)
{
	struct nlmsghdr *nlh;

	memset(m, 0, sizeof(*m));
	nlh = mnl_nlmsg_put_header(m->bytes);
	nlh->nlmsg_type = type;
	return mnl_nlmsg_put_extra_header(nlh, size);
}

static inline struct nlmsghdr *message_head(struct message *m)
{
	return (struct nlmsghdr *)m->bytes;
}

static inline struct addr message_addr(const char *text)
{
	struct addr a = {0};

	assert_int_equal(addr_parse(text, strlen(text), &a, NULL), 0);
	return a;
}

static inline void message_put_addr(struct message *m, uint16_t type, const char *text)
{
	struct addr a = message_addr(text);

	mnl_attr_put(message_head(m), type, addr_bits(&a) / 8, a.bytes);
}
