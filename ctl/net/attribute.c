// SPDX-License-Identifier: GPL-2.0-only
// Reads addresses from netlink attributes, with their length checked.
#include "ctl/net/attribute.h"

#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

static struct addr addr_of(int family, const void *bytes, size_t len)
{
	struct addr none = {0};
	uint32_t v4;

	if (family == AF_INET && len == sizeof(v4)) {
		memcpy(&v4, bytes, sizeof(v4));
		return addr_from_v4(v4);
	}
	if (family == AF_INET6 && len == 16)
		return addr_from_v6(bytes);
	return none;
}

struct addr attribute_addr(int family, const struct nlattr *attr)
{
	return addr_of(family, mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));
}

struct addr attribute_via(const struct nlattr *attr)
{
	const struct rtvia *via = mnl_attr_get_payload(attr);
	size_t len = mnl_attr_get_payload_len(attr);

	if (len < sizeof(*via))
		return (struct addr){0};
	return addr_of(via->rtvia_family, via->rtvia_addr, len - sizeof(*via));
}
