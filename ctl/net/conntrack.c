// SPDX-License-Identifier: GPL-2.0-only
// Tests connection tracking by giving it a flow to track.
#include "ctl/net/conntrack.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

#define FOLDER "/proc/sys/net/netfilter/nf_conntrack_"

static bool read_number(const char *path, uint64_t *ret)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;

	if (file_read(path, 64, &text, &len, NULL))
		return false;
	return !num_parse_u64(text, strcspn(text, "\n"), 0, UINT64_MAX, ret);
}

static bool read_count(uint64_t *ret)
{
	return read_number(FOLDER "count", ret);
}

// New connections are refused, or end others; those in the table were tracked.
static bool is_nearly_full(uint64_t count)
{
	uint64_t max;

	return read_number(FOLDER "max", &max) && count >= max - max / 10;
}

// One datagram from a fresh port to itself.
static bool send_to_self(int family)
{
	CLEANUP_FD int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} self = {0};
	socklen_t size = family == AF_INET ? sizeof(self.v4) : sizeof(self.v6);

	self.any.sa_family = (sa_family_t)family;
	if (family == AF_INET)
		self.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		self.v6.sin6_addr = in6addr_loopback;
	return fd >= 0 && !bind(fd, &self.any, size) && !getsockname(fd, &self.any, &size) &&
	       sendto(fd, "", 1, 0, &self.any, size) == 1;
}

// While connections of others end, the count falls between two readings: so many datagrams, and
// several times.
#define DATAGRAMS 16
#define TIMES     4

static bool grows(int family, bool *ret_sent)
{
	uint64_t before, after;

	*ret_sent = true;
	if (!read_count(&before))
		return false;
	for (size_t n = 0; n < DATAGRAMS && *ret_sent; n++)
		*ret_sent = send_to_self(family);
	return read_count(&after) && (after > before || is_nearly_full(after));
}

static bool is_off(int family)
{
	bool sent = true;

	for (size_t n = 0; n < TIMES && sent; n++)
		if (grows(family, &sent))
			return false;
	return sent;
}

uint32_t conntrack_off(void)
{
	return (is_off(AF_INET) ? CONNTRACK_4 : 0) | (is_off(AF_INET6) ? CONNTRACK_6 : 0);
}
