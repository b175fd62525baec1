// SPDX-License-Identifier: GPL-2.0-only
// The XDP hook of an interface: attaches and detaches any program, under libxdp's dispatcher or as
// the only one.
#pragma once

#include <stdint.h>

#include "common/words.h"
#include "ctl/datapath/attach_query.h"

struct xdp_program;

const char *hook_mode_name(enum iface_mode mode);

struct hook_target {
	const char *name;   // of the interface
	const char *driver; // "": unknown
	// why the driver may refuse native mode, with commands; "" or NULL: not known
	const char *reason;
	uint32_t ifindex;
};

// A program and how it is attached to the target.
struct hook_program {
	int (*shared)(void *ctx, enum iface_mode mode,
		      struct err *err);                // 0, or -errno with err set
	int (*alone)(void *ctx, enum iface_mode mode); // 0 or -errno
	void *ctx;
	bool can_share;     // a failure of `shared` does not come from this kernel or machine
	const char *before; // which packets may be merged in generic mode: before "Weir sees them"
};

#define HOOK_NOTICE 1280
#define HOOK_REASON 320 // bytes of struct hook_target's reason

// Attaches any program: in native mode through libxdp's dispatcher, else as the only program unless
// there is another; in mode auto then in generic mode, in the same way. unfit: why native mode does
// not work here although the driver accepts it; NULL: it does. notice: why not native, why not
// shared; "": no notice. 0, or -errno with err set (ERR_REFUSED: another program is there).
int hook_attach(const struct hook_target *target, enum attach_mode mode, const struct err *unfit,
		const struct hook_program *program, char notice[HOOK_NOTICE], struct err *err);

// Two ways to attach, for the functions of struct hook_program. 0 or -errno. The second: the only
// program on the interface, never replacing another one.
int hook_attach_shared(struct xdp_program *program, uint32_t ifindex, enum iface_mode mode);
int hook_attach_alone(int fd, uint32_t ifindex, enum iface_mode mode);

// Detaches the program with this number, one of those that are there, and no other. 0, or -errno
// with err set.
int hook_remove(uint32_t ifindex, const struct attached_list *there, uint32_t prog_id,
		struct err *err);
