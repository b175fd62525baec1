// SPDX-License-Identifier: GPL-2.0-only
// Programs without libxdp's dispatcher, held on a device by a bpf_link that is pinned as
// INSTANCE_FOLDER/links/NUMBER.
//
// A link follows its device through names and network namespaces, and no netlink request replaces
// it. To detach it, BPF_LINK_DETACH takes effect immediately in any namespace; then the file in
// bpffs is removed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/abi.h"
#include "common/limits.h"
#include "ctl/base/err.h"

// Attaches the program of this descriptor and pins the link; if the process is killed in between,
// the kernel detaches the program. 0, or -errno; *ret_made: the link was made, but could not be
// pinned.
int linked_attach(const char *folder, uint32_t number, int program, uint32_t ifindex,
		  enum iface_mode mode, bool *ret_made);

struct linked {
	bool there;       // it is in bpffs
	uint32_t ifindex; // in the device's namespace; 0: no device, or detached
	uint32_t prog_id;
};

// 0 (also if there is no such link), or -errno with err set.
int linked_read(const char *folder, uint32_t number, struct linked *ret, struct err *err);

// Detaches the program, in any namespace, and removes the file. *ret: the previous link. 0, or
// -errno with err set.
int linked_remove(const char *folder, uint32_t number, struct linked *ret, struct err *err);

// All links of the instance in this folder. *ret_n: how many had a device.
int linked_remove_all(const char *folder, size_t *ret_n, struct err *err);

// The id of the link of any owner that holds this program on a device; 0: no link does.
uint32_t linked_holder(uint32_t prog_id);
// Is this program held by a link of the instance in this folder?
bool linked_holds(const char *folder, uint32_t prog_id);
