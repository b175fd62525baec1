// SPDX-License-Identifier: GPL-2.0-only
// The programs that refuse outgoing calls, and their links to the root of cgroup 2.
//
// FOLDER/out/ of the instance has one pinned link for each program. They exist while the tables
// have entries of outgoing calls: calls of a machine that blocks none run no program. They are
// attached before the first block entry becomes effective, and detached by the commit that leaves
// none. A new instance attaches them after it is visible, so that a killed attach leaves no program
// that no command finds; each later attach repairs missing links, and links to a part of the cgroup
// 2 that it sees. Programs of others stay, before and after ours; a call that one program refuses
// fails.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/datapath/instance.h"

#define OUTGOING_HOOKS 4

// Are there block entries of outgoing calls, perhaps expired ones?
bool outgoing_wanted(const struct instance *i);
// Attaches the programs that are not attached, or only to a part of the visible cgroup 2. -ENOENT
// (ERR_SYSTEM, with a hint) without cgroup 2, unless all are attached. *ret_whole: they see the
// calls of the whole machine; false: of a container. 0 or -errno with err set; some may then be
// attached.
int outgoing_attach(const struct instance *i, bool *ret_whole, struct err *err);
// Attaches or detaches, as the entries require, after a commit and after instance_publish; before
// that it does nothing. 0 or -errno with err set.
int outgoing_follow(const struct instance *i, bool *ret_whole, struct err *err);
// Detaches all programs of the instance in this folder of bpffs, at once. Works for any version.
int outgoing_detach(const char *folder, struct err *err);
// How many programs are attached, how many of them to the cgroup of a container, and how many only
// to a part of the cgroup 2 that is visible here.
struct outgoing_links {
	size_t attached, part, narrow;
};
struct outgoing_links outgoing_links(const struct instance *i);
