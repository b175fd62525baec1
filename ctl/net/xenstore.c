// SPDX-License-Identifier: GPL-2.0-only
// Speaks the protocol of XenStore over the device file of the kernel: a header of four words, then
// the text.
#include "ctl/net/xenstore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"

#define XENSTORE_PAYLOAD_MAX 4096u

enum xenstore_type { XENSTORE_READ = 2, XENSTORE_ERROR = 16 };

// Words in the byte order of the machine.
struct xenstore_header {
	uint32_t type, request, transaction, len;
};

int xenstore_open(void)
{
	int fd = open("/dev/xen/xenbus", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int read_all(int fd, void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = read(fd, (char *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPROTO;
		done += (size_t)n;
	}
	return 0;
}

static int ask(int fd, const char *path)
{
	struct xenstore_header h = {.type = XENSTORE_READ, .len = (uint32_t)strlen(path) + 1};
	int code = file_write(fd, &h, sizeof(h));

	return code ? code : file_write(fd, path, h.len);
}

int xenstore_read(int fd, const char *path, char *ret, size_t size)
{
	char text[XENSTORE_PAYLOAD_MAX + 1];
	struct xenstore_header h;
	int code = ask(fd, path);

	if (code || (code = read_all(fd, &h, sizeof(h))))
		return code;
	if (h.len > XENSTORE_PAYLOAD_MAX)
		return -EPROTO;
	if ((code = read_all(fd, text, h.len)))
		return code;
	text[h.len] = '\0';
	if (h.type == XENSTORE_ERROR)
		return strcmp(text, "ENOENT") ? -EIO : -ENOENT;
	if (h.type != XENSTORE_READ || strlen(text) >= size)
		return -EPROTO;
	memcpy(ret, text, strlen(text) + 1);
	return 0;
}
