// SPDX-License-Identifier: GPL-2.0-only
// The XDP hook of an interface: attaches and detaches any program, under libxdp's dispatcher or alone.
#pragma once

#include <stdint.h>

#include "ctl/datapath/attach.h"

struct xdp_program;

const char *hook_mode_name(enum iface_mode mode);

// Behind the dispatcher. 0 or -errno.
int hook_attach_shared(struct xdp_program *program, uint32_t ifindex, enum iface_mode mode);

// Alone, the program of this descriptor; never in the place of another one. 0 or -errno.
int hook_attach_alone(int fd, uint32_t ifindex, enum iface_mode mode);

// Why hook_attach_alone failed with `code`, which is returned: what the kernel said since the last
// probe_kernel_said is the hint. driver: "" when unknown.
int hook_attach_failed(const char *name, const char *driver, enum iface_mode mode, int code,
		       struct err *err);

// Says that another program is in the way, and how it goes. why: what came of the attempt to share; NULL:
// that is not known. ERR_REFUSED.
int hook_occupied(const char *name, const struct attached_list *there, const char *why,
		  struct err *err);

// Takes away the program with this number, one of those that are there, and only that. 0, or -errno with
// err set.
int hook_remove(uint32_t ifindex, const struct attached_list *there, uint32_t prog_id,
		struct err *err);
