// SPDX-License-Identifier: GPL-2.0-only
// Looks into the network namespaces of this machine.
#pragma once

// Calls visit inside each network namespace but the present one that has a name (`ip netns`) or a process, until
// it returns other than 0; that is returned, else 0. name: as -N takes it. One that cannot be entered is left out.
// Runs in a thread, whose namespace is its own: the caller stays where it is.
int netns_visit_others(int (*visit)(void *ctx, const char *name), void *ctx);
