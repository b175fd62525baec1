// SPDX-License-Identifier: GPL-2.0-only
// Reads values of XenStore, in which a virtual machine of Xen finds what its devices' backends can
// do.
#pragma once

#include <stddef.h>

// Opens the connection of this machine. A descriptor, or -errno: not a machine of Xen, or no device
// file.
int xenstore_open(void);

// Reads the value of one path, relative to the machine or absolute
// (xen/include/public/io/xs_wire.h). 0, with ret NUL-terminated; -ENOENT: the path has no value;
// -EPROTO: the answer makes no sense; other -errno.
int xenstore_read(int fd, const char *path, char *ret, size_t size);
