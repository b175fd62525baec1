// SPDX-License-Identifier: GPL-2.0-only
// The datagrams of sd_notify(3), without its library.
#include "ctl/agent/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"

#define GROUPS_MAX 65536

// A path, or an abstract name that begins with '@'.
static bool address_of(const char *name, struct sockaddr_un *ret, socklen_t *ret_len)
{
	size_t len = strlen(name);

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof(ret->sun_path))
		return false;
	memcpy(ret->sun_path, name, len);
	if (name[0] == '@')
		ret->sun_path[0] = '\0';
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return true;
}

static bool send_lines(const char *lines, size_t len)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to;
	socklen_t to_len;
	CLEANUP_FD int fd = -1;

	if (!name || !address_of(name, &to, &to_len))
		return false;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd >= 0 && sendto(fd, lines, len, MSG_NOSIGNAL, (const struct sockaddr *)&to,
				 to_len) == (ssize_t)len;
}

bool notify_send(const char *fmt, ...)
{
	CLEANUP_TEXT struct text lines = {0};
	va_list ap;

	va_start(ap, fmt);
	text_vaddf(&lines, fmt, ap);
	va_end(ap);
	return send_lines(text_get(&lines), lines.len);
}

void notify_reloading(void)
{
	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
		    (unsigned long long)time_us(CLOCK_MONOTONIC));
}

static bool read_env(const char *name, uint64_t *ret)
{
	const char *text = getenv(name);

	return text && !num_parse_u64(text, strlen(text), 1, UINT64_MAX, ret);
}

uint64_t notify_watchdog_us(void)
{
	uint64_t us, pid;

	if (!read_env("WATCHDOG_USEC", &us))
		return 0;
	if (getenv("WATCHDOG_PID") &&
	    (!read_env("WATCHDOG_PID", &pid) || pid != (uint64_t)getpid()))
		return 0;
	return us;
}

bool notify_logs_to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat st;
	char here[64];

	if (!stream || fstat(STDERR_FILENO, &st))
		return false;
	snprintf(here, sizeof(here), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return !strcmp(stream, here);
}

#define SERVICE ".service"

// The last step of the first path that is a service:
// "0::/system.slice/system-weir.slice/weir@main.service".
static char *service_in(char *groups)
{
	char *rest = NULL;

	for (char *line = strtok_r(groups, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *name = strrchr(line, '/');
		size_t len = name ? strlen(name) : 0;

		if (len > strlen("/" SERVICE) && !strcmp(name + len - strlen(SERVICE), SERVICE))
			return mem_strdup(name + 1);
	}
	return NULL;
}

bool notify_is_managed(void)
{
	return getenv("NOTIFY_SOCKET");
}

char *notify_unit(void)
{
	CLEANUP_FREE char *groups = NULL;
	size_t len;

	if (!notify_is_managed() || file_read("/proc/self/cgroup", GROUPS_MAX, &groups, &len, NULL))
		return NULL;
	return service_in(groups);
}
