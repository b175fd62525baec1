// SPDX-License-Identifier: GPL-2.0-only
// The table of the model of nat and fullnat: looking a connection up, beginning one, and what it
// hears.
#ifndef REF_NAT_TABLE_H
#define REF_NAT_TABLE_H

#include "nat_model.h"

bool natref_same(uint8_t family, const uint8_t *a, const uint8_t *b); /* addresses */

/* A connection that is looked for; from: the backend's address, or NULL: only the end counts. */
struct natref_wanted {
	uint8_t family, proto;
	const uint8_t *client;
	uint16_t port;
	uint16_t end;
	const uint8_t *from;
	uint16_t from_port;
};

/* The connection of a client's packet, which must remain. */
struct natref_wanted natref_wanted_of(const struct natref_packet *p, uint16_t end);
/* In the blocks of one mode; -1: not found. */
long natref_search(const struct natref *n, const struct natref_wanted *w, bool fullnat);
/* Is it with the backend that is looked for? */
bool natref_is_with(const struct natref *n, const struct natref_conn *c,
		    const struct natref_wanted *w);

/* A packet of a client to an end: it changes its connection, or begins one. Sets fate and place,
 * and the MTU of NATREF_TOO_BIG. */
void natref_serve(struct natref *n, const struct natref_packet *p, uint16_t end,
		  struct natref_answer *a);
/* A packet of the backend changes the connection. */
void natref_heard_back(const struct natref *n, const struct natref_packet *p, long place);

#endif
