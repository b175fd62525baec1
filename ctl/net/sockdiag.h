// SPDX-License-Identifier: GPL-2.0-only
// Open TCP and UDP sockets of the current network namespace (sock_diag(7)).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"

struct socket_info {
	uint8_t proto; // IPPROTO_TCP or IPPROTO_UDP
	struct addr local,
		remote; // IPv4-mapped addresses are undone; remote unspecified when unconnected
	uint16_t local_port, remote_port; // host order
	uint32_t inode;
};

// Established TCP sockets and connected UDP sockets; a kernel without udp_diag shows TCP only.
// The caller frees *ret. 0 or -errno with err set.
int sockdiag_connected(struct socket_info **ret, size_t *ret_n, struct err *err);
// The same for TCP sockets that listen and UDP sockets that are not connected.
int sockdiag_bound(struct socket_info **ret, size_t *ret_n, struct err *err);
// Only connected UDP sockets: a server may have a hundred thousand TCP sockets.
int sockdiag_udp(struct socket_info **ret, size_t *ret_n, struct err *err);
// Does this -errno of sockdiag_connected mean that the kernel has no sock_diag?
bool sockdiag_missing(int code);
