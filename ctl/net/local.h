// SPDX-License-Identifier: GPL-2.0-only
// Connects to unix sockets.
#pragma once

// Connects to a stream socket. flags: of socket(2), such as SOCK_NONBLOCK. Returns the descriptor,
// or -errno; -EAGAIN: its queue of connections is full.
int local_connect(const char *path, int flags);
