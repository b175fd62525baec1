// SPDX-License-Identifier: GPL-2.0-only
// Decides a packet of nat or fullnat: in both directions, errors and fragments too.
#include "nat_model.h"

#include <string.h>

#include "nat_table.h"

#define TCP         6
#define FLAG_RST    0x04
#define FRAGMENTS_S 5 /* how long the later fragments are known by their first one */
#define LAST_HOP    1

// ---- what the sender gets -----------------------------------------------------------------------

/* No error is sent about an error, nor about a later fragment (RFC 1122 section 3.2.2). */
static bool may_answer(const struct natref_packet *p)
{
	return !p->error && p->part != NATREF_LATER;
}

static void too_big(const struct natref_packet *p, struct natref_answer *a)
{
	a->fate = may_answer(p) ? NATREF_TOO_BIG : NATREF_TOO_BIG_SILENT;
}

static void expired(const struct natref_packet *p, struct natref_answer *a)
{
	a->fate = may_answer(p) ? NATREF_EXPIRED : NATREF_EXPIRED_SILENT;
}

/* A reset is not answered (RFC 9293 section 3.10.7.1), and no fragment is. */
static bool gets_reset(const struct natref *n, const struct natref_packet *p)
{
	return p->proto == TCP && p->part == NATREF_WHOLE && !(p->flags & FLAG_RST) &&
	       n->jiffies >= n->resets_from;
}

// ---- fragments ----------------------------------------------------------------------------------

static bool is_of(const struct natref_first *f, const struct natref_packet *p, bool back)
{
	return f->family == p->family && f->back == back && f->id == p->id &&
	       (p->family == 6 || f->proto == p->proto) && natref_same(p->family, f->src, p->src) &&
	       natref_same(p->family, f->dst, p->dst);
}

/* The connection may have ended since, and another one may have its place. */
static bool has_place(const struct natref *n, const struct natref_first *f)
{
	const struct natref_conn *c = natref_at(n, f->family, f->place);

	return c->taken && c->end == f->end && c->port == f->port &&
	       natref_same(f->family, c->client, f->client);
}

static struct natref_first *first_of(struct natref *n, const struct natref_packet *p, bool back)
{
	size_t kept = n->n_firsts < NATREF_FIRSTS ? n->n_firsts : NATREF_FIRSTS;

	for (size_t f = 0; f < kept; f++)
		if (is_of(&n->firsts[f], p, back))
			return &n->firsts[f];
	return NULL;
}

static void note_first(struct natref *n, const struct natref_packet *p, bool back, long place)
{
	const struct natref_conn *c = natref_at(n, p->family, place);
	struct natref_first *f;

	if (p->part != NATREF_FIRST)
		return;
	f = first_of(n, p, back);
	if (!f)
		f = &n->firsts[n->n_firsts++ % NATREF_FIRSTS];
	*f = (struct natref_first){
		.family = p->family,
		.proto = p->proto,
		.back = back,
		.id = p->id,
		.place = place,
		.end = c->end,
		.port = c->port,
		.jiffies = n->jiffies,
	};
	memcpy(f->client, c->client, 16);
	memcpy(f->src, p->src, 16);
	memcpy(f->dst, p->dst, 16);
}

/* The place of the connection of a later fragment, or -1. */
static long place_of_later(struct natref *n, const struct natref_packet *p, bool back)
{
	const struct natref_first *f = first_of(n, p, back);

	return f && n->jiffies - f->jiffies < FRAGMENTS_S * n->second && has_place(n, f) ? f->place
											 : -1;
}

// ---- to the backend -----------------------------------------------------------------------------

static uint16_t end_of(const struct natref *n, const struct natref_packet *p)
{
	for (uint16_t e = 1; e < NATREF_ENDS; e++)
		if (n->ends[e].family == p->family && n->ends[e].proto == p->proto &&
		    n->ends[e].port == p->dport && natref_same(p->family, n->ends[e].vip, p->dst))
			return e;
	return 0;
}

static bool is_to_vip(const struct natref *n, const struct natref_packet *p)
{
	for (uint16_t e = 1; e < NATREF_ENDS; e++)
		if (n->ends[e].family == p->family &&
		    natref_same(p->family, n->ends[e].vip, p->dst))
			return true;
	return false;
}

static void name_forward(const struct natref *n, const struct natref_packet *p,
			 struct natref_answer *a)
{
	const struct natref_conn *c = natref_at(n, p->family, a->place);
	const struct natref_backend *b = &n->backends[c->backend];
	long block = a->place / NATREF_PLACES;
	bool has_source = n->has_source[p->family == 6][block];

	memcpy(a->src, has_source ? n->source[p->family == 6][block] : p->src, 16);
	a->sport = has_source ? (uint16_t)(a->place % NATREF_PLACES) : p->sport;
	memcpy(a->dst, b->addr, 16);
	a->dport = b->port ? b->port : p->dport;
	a->to = b->hop;
}

/* From here on the place is known. */
static void send_forward(const struct natref *n, const struct natref_packet *p,
			 struct natref_answer *a)
{
	const struct natref_backend *b = &n->backends[natref_at(n, p->family, a->place)->backend];

	a->mtu = b->mtu;
	a->fate = NATREF_SENT;
	if (p->hops <= LAST_HOP)
		expired(p, a);
	else if (p->length > b->mtu)
		too_big(p, a);
	name_forward(n, p, a);
}

static struct natref_answer forward(struct natref *n, const struct natref_packet *p)
{
	struct natref_answer a = {.fate = NATREF_LEFT, .place = -1};
	uint16_t end = end_of(n, p);

	if (!end)
		return a;
	if (p->hops <= LAST_HOP) {
		expired(p, &a);
		return a;
	}
	natref_serve(n, p, end, &a);
	if (a.fate == NATREF_UNKNOWN && gets_reset(n, p))
		a.fate = NATREF_RESET;
	if (a.fate == NATREF_TOO_BIG)
		too_big(p, &a);
	if (a.fate != NATREF_SENT)
		return a;
	send_forward(n, p, &a);
	if (a.fate == NATREF_SENT)
		note_first(n, p, false, a.place);
	return a;
}

static struct natref_answer forward_later(struct natref *n, const struct natref_packet *p)
{
	struct natref_answer a = {.fate = NATREF_LEFT, .place = place_of_later(n, p, false)};

	if (!is_to_vip(n, p))
		return a;
	a.fate = NATREF_FRAGMENT;
	if (a.place >= 0)
		send_forward(n, p, &a);
	return a;
}

// ---- to the client ------------------------------------------------------------------------------

/* The place that the destination names, if it is a source; else it is the client's. */
static long answered(const struct natref *n, const struct natref_packet *p)
{
	struct natref_wanted w = {p->family, p->proto, p->dst, p->dport, 0, p->src, p->sport};

	for (long b = 0; b < NATREF_BLOCKS; b++) {
		long at = b * NATREF_PLACES + p->dport;
		const struct natref_conn *c = natref_at(n, p->family, at);

		if (n->has_source[p->family == 6][b] &&
		    natref_same(p->family, n->source[p->family == 6][b], p->dst) && c->taken &&
		    natref_is_with(n, c, &w))
			return at;
	}
	return natref_search(n, &w, false);
}

/* No route of this host leads to a client without a peer. */
static void send_back(const struct natref *n, const struct natref_packet *p,
		      struct natref_answer *a)
{
	const struct natref_conn *c = natref_at(n, p->family, a->place);

	memcpy(a->src, n->ends[c->end].vip, 16);
	a->sport = n->ends[c->end].port;
	memcpy(a->dst, c->client, 16);
	a->dport = c->port;
	a->to = c->peer;
	a->fate = c->has_peer ? NATREF_ANSWERED : NATREF_NO_PEER;
	if (p->hops <= LAST_HOP)
		expired(p, a);
}

static struct natref_answer back(struct natref *n, const struct natref_packet *p)
{
	struct natref_answer a = {.fate = NATREF_LEFT};

	a.place = p->part == NATREF_LATER ? place_of_later(n, p, true) : answered(n, p);
	if (a.place < 0)
		return a;
	if (p->part != NATREF_LATER && p->hops > LAST_HOP)
		natref_heard_back(n, p, a.place);
	send_back(n, p, &a);
	if (a.fate == NATREF_ANSWERED)
		note_first(n, p, true, a.place);
	return a;
}

// ---- errors -------------------------------------------------------------------------------------

/* The quote has the names of the answer, exchanged: it is of a packet in the other direction. */
static void turn(struct natref_answer *a)
{
	memcpy(a->quote.src, a->dst, 16);
	memcpy(a->quote.dst, a->src, 16);
	a->quote.sport = a->dport;
	a->quote.dport = a->sport;
}

/* The quoted packet's receiver has sent it: so it would answer. */
static struct natref_packet as_if(const struct natref_packet *p)
{
	struct natref_packet other = *p;

	memcpy(other.src, p->quote.dst, 16);
	memcpy(other.dst, p->quote.src, 16);
	other.sport = p->quote.dport;
	other.dport = p->quote.sport;
	return other;
}

/* About an answer: to the backend. In nat its sender stays. */
static struct natref_answer error_forward(const struct natref *n, const struct natref_packet *p)
{
	struct natref_packet other = as_if(p);
	uint16_t end = end_of(n, &other);
	struct natref_answer a = {.fate = NATREF_LEFT, .place = -1};
	struct natref_wanted w = natref_wanted_of(&other, end);

	if (!end)
		return a;
	a.place = natref_search(n, &w, n->ends[end].fullnat);
	if (a.place < 0)
		a.place = natref_search(n, &w, !n->ends[end].fullnat);
	if (a.place < 0)
		return a;
	send_forward(n, &other, &a);
	turn(&a);
	if (!n->has_source[p->family == 6][a.place / NATREF_PLACES])
		memcpy(a.src, p->src, 16);
	return a;
}

/* About a packet to a backend: to the client, from the VIP. */
static struct natref_answer error_back(const struct natref *n, const struct natref_packet *p)
{
	struct natref_packet other = as_if(p);
	struct natref_answer a = {.fate = NATREF_LEFT, .place = answered(n, &other)};

	if (a.place < 0)
		return a;
	send_back(n, &other, &a);
	turn(&a);
	return a;
}

// ---- all ----------------------------------------------------------------------------------------

struct natref_answer natref_packet(struct natref *n, const struct natref_packet *p)
{
	struct natref_answer a = p->error ? error_back(n, p) : back(n, p);

	if (a.fate != NATREF_LEFT)
		return a;
	if (p->part == NATREF_LATER)
		return forward_later(n, p);
	return p->error ? error_forward(n, p) : forward(n, p);
}
