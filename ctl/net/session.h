// SPDX-License-Identifier: GPL-2.0-only
// The operator's login: the peer of this terminal, whose addresses must not be cut off.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/err.h"
#include "ctl/net/link.h"

struct session {
	struct addr peer, local; // family 0: not known
	uint16_t peer_port, local_port;
	// a remote login is above this command (sshd, mosh…), or its environment names one
	bool remote;
	// The environment names this peer, but no living connection has those ends (a terminal
	// multiplexer entered from elsewhere since, mosh): worth protecting, not worth trusting.
	// Family 0 unless peer is unknown.
	struct addr guess;
	// errno of the first failed lookup, while peer is unknown: there may be a remote login. 0:
	// no lookup failed.
	int error;
};

// Finds the operator's login: the nearest sshd among the ancestors and the TCP connections it holds
// (/proc/PID/fd, sock_diag), then SSH_CONNECTION/SSH_CLIENT in our or the ancestors' environment
// (sudo strips ours; mapped addresses are undone), believed only if such a connection lives. Never
// fails: an address that is not found has family 0, and `error` is set if a lookup failed. remote
// && peer.family == 0: a remote session of unknown origin. Call it before entering another network
// namespace: sock_diag sees the current one.
void session_find(struct session *ret);

// For people: "root (ssh 198.51.100.9)", "root (remote)" where it could not be placed, "root
// (local)". The name is the login's (/proc/self/loginuid), else the user's.
void session_describe(const struct session *s, char *buf, size_t size);

// All logins over ssh whose connections are in this network namespace: of each sshd that has
// started another program, so a client that has not logged in is not among them. Both ends are
// known. Root needs CAP_SYS_PTRACE for the descriptors of an sshd. The caller frees *ret. 0; or
// -errno with err set if a login cannot be examined: *ret then has the others.
int session_logins(struct session **ret, size_t *ret_n, struct err *err);

// Is it among the logins that session_logins() finds? Without a login, and where none can be
// examined: false.
bool session_is_found(const struct session *s);

enum session_place {
	SESSION_NONE,    // at the console, or through another network namespace
	SESSION_KNOWN,   // its connection was found
	SESSION_UNKNOWN, // remote, or perhaps so, and its connection was not found
};

// session NULL: no session.
enum session_place session_placed(const struct session *s);

// The interfaces of this network namespace, and which ones the login may use.
struct session_ways {
	struct link *links;
	bool *used;     // by link
	bool *answered; // by link: the route to the peer leads by it
	size_t n;
	bool any;          // not known: all interfaces
	bool answered_any; // likewise
};
void session_ways_free(struct session_ways *w);
#define CLEANUP_SESSION_WAYS CLEANUP(session_ways_free)

// For a known login: the device of its address, the device of the route to its peer, and their
// lower devices (the device of a VLAN, the ports of a bridge or bond). Packets of a tunnel may
// arrive on any. 0 or -errno with err set.
int session_ways(const struct session *s, struct session_ways *ret, struct err *err);
bool session_uses(const struct session_ways *w, uint32_t ifindex);
// Does the route to the peer lead by the interface? True if the route is not known or leads into a
// tunnel.
bool session_answers(const struct session_ways *w, uint32_t ifindex);
