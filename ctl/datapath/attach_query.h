// SPDX-License-Identifier: GPL-2.0-only
// The XDP programs on an interface.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/abi.h"
#include "ctl/base/err.h"

// A program on an interface.
struct attached {
	uint32_t prog_id;
	char name[16];
	bool ours; // a root program of the instance in question
};
#define ATTACHED_MAX 11 // libxdp's dispatcher holds ten

struct attached_list {
	uint32_t link_prog_id; // that the interface shows: the dispatcher or a program; 0: none
	enum iface_mode mode;
	bool shared; // the link shows libxdp's dispatcher
	size_t n;
	struct attached at[ATTACHED_MAX];
};

// The programs on an interface. progs_id: of the instance in question (0: no program is "ours").
// 0 (also without a program) or -errno with err set.
int attach_query(uint32_t ifindex, uint32_t progs_id, struct attached_list *ret, struct err *err);

// Our program among them, or NULL.
const struct attached *attached_ours(const struct attached_list *list);
