// SPDX-License-Identifier: GPL-2.0-only
// A row of the balancer: its packets and its service. The rows of Katran are of this kind, too.
#pragma once

#include "tests/bench/measure.h"

#define BALANCE_BACKENDS 64 // 10.0.1.1 and following, or fd00::1:1 and following
#define BALANCE_VIP      "198.18.0.1"
#define BALANCE_PORT     80

enum traffic {
	ONE,   // one flow
	MANY,  // BENCH_SOURCES flows
	FLOOD, // a SYN flood
};

struct balance_case {
	struct row_goal goal;
	const char *mode;
	uint8_t grow; // outer headers
	bool v6;      // backends
	bool changing;
	bool answers; // the packets are the backend's, in nat and fullnat
	enum traffic traffic;
	size_t rules;   // before the service; none matches
	size_t blocked; // addresses in the overlay, none a client's
};

#define BALANCE_IP4 20
#define BALANCE_IP6 40
#define BALANCE_UDP 8

// Measures Weir and a peer that answers the same packets with headers of the same length; NULL:
// none.
void balance_measure(const struct bench *b, const struct balance_case *c, struct subject *peer);
