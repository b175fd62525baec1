// SPDX-License-Identifier: GPL-2.0-only
// A network namespace that only this process uses, in which all packets go to a tun device that the
// process serves. It is removed with its descriptors, so a killed process leaves nothing behind.
#pragma once

#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"

// The least MTU of any path: packets inside are not longer.
#define ENCLAVE_MTU 1280

struct enclave {
	int home, netns; // descriptors
	int tun;         // packets, each after a struct virtio_net_hdr; not blocking
	uint32_t ifindex;
	uint8_t families; // bit: the family has a route
};

// The process has one thread. 0 or -errno with err set.
int enclave_open(struct enclave *ret, struct err *err);
void enclave_close(struct enclave *e); // also of one that is {.home = -1, .netns = -1, .tun = -1}
// An address of the device; again if it has it. 0 or -errno with err set.
int enclave_add(struct enclave *e, const struct addr *own, struct err *err);
// A socket that lives there: SOCK_STREAM…, with flags. A descriptor or -errno.
int enclave_socket(const struct enclave *e, uint8_t family, int type);
