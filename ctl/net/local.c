// SPDX-License-Identifier: GPL-2.0-only
// Connects to the sockets of the agent.
#include "ctl/net/local.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ctl/base/mem.h"

int local_connect(const char *path, int flags)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	CLEANUP_FD int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return -errno;
	return TAKE_FD(fd);
}
