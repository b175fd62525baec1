// SPDX-License-Identifier: GPL-2.0-only
// An event of `weir watch`: a packet that was dropped or logged, from the datapath or from a
// document of another `weir watch`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "ctl/base/json.h"
#include "ctl/base/text.h"

struct watch_event {
	uint64_t monotonic_us;
	const char *interface, *verdict, *reason;
	const char *rule;     // that decided; NULL: none did
	const char *entry;    // the prefix of the entry that decided; NULL: none did
	const char *packet;   // its description
	uint64_t length;      // bytes
	uint64_t missed;      // events of its kind before it
	bool logged;          // else a drop
	bool ip;              // it has addresses
	struct addr from, to; // if `ip`
};

// Strings are the document's. False: it is no event.
bool watch_event_read(const struct json *document, struct watch_event *ret);
// "near0 drop rule-drop "first":" and "udp 192.0.2.1 port 53 > …, 50 bytes". color, plain: around
// the verdict; may be "".
void watch_event_text(const struct watch_event *e, const char *color, const char *plain,
		      struct text *head, struct text *tail);
