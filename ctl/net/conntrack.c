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

#define COUNT_PATH "/proc/sys/net/netfilter/nf_conntrack_count"

static bool read_count(uint64_t *ret)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;

	if (file_read(COUNT_PATH, 64, &text, &len, NULL))
		return false;
	return !num_parse_u64(text, strcspn(text, "\n"), 0, UINT64_MAX, ret);
}

// While connections of others end, the count falls between two readings: these exceed that.
#define DATAGRAMS 16

// One datagram from a fresh port to itself.
static bool send_to_self(void)
{
	CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in self = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(self);

	return fd >= 0 && !bind(fd, (const struct sockaddr *)&self, sizeof(self)) &&
	       !getsockname(fd, (struct sockaddr *)&self, &size) &&
	       sendto(fd, "", 1, 0, (const struct sockaddr *)&self, sizeof(self)) == 1;
}

bool conntrack_active(void)
{
	uint64_t before, after;

	if (!read_count(&before))
		return false;
	for (size_t n = 0; n < DATAGRAMS; n++)
		if (!send_to_self())
			return false;
	return read_count(&after) && after > before;
}
