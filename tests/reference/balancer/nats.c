// SPDX-License-Identifier: GPL-2.0-only
// Random histories of connections of nat and fullnat, played by the datapath and by the model: the
// same fate, frame, place and state for every packet, and the same table at the end.
//
// usage: nats [PACKETS [SEED]]
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/datapath/counters.h"
#include "ctl/table/nat_near.h"
#include "ctl/table/nat_walk.h"
#include "tests/datapath/nat_packet.h"
#include "tests/reference/balancer/nats.h"

#define CLIENTS 3000
#define RECENT  4096 // packets to backends that are answered
#define PENDING 24   // fragments on their way
#define LAST    2048 // a piece to the end of its packet
#define PACKETS 60000
#define COUNTED 1000 // packets between two looks at the counters
#define HISTORY 5000 // packets of a history
#define WALKED  1000 // packets between two walks

struct client {
	struct nat_names_of_frame names; // only the source
	uint8_t proto;
};

// A packet that was sent to a backend, with its names on both sides.
struct recent {
	struct nat_names_of_frame came, went;
	uint8_t proto;
};

static struct play {
	struct client clients[CLIENTS];
	struct recent recent[RECENT];
	size_t n_recent;
	struct nat_sent pending[PENDING];
	size_t n_pending;
	uint64_t fates[NATREF_LEFT + 1];
	uint64_t errors, later; // that were translated
	uint64_t swept, names;  // places and names of blocks that walks have freed
	bool walks;             // in this history: its table has few connections
	struct nat_unused unused;
} all;

static uint64_t draw(uint64_t below)
{
	return nats_draw(below);
}

static bool once_in(uint64_t n)
{
	return !draw(n);
}

// ---- packets ------------------------------------------------------------------------------------

static void make_clients(void)
{
	for (size_t c = 0; c < CLIENTS; c++) {
		struct client *client = &all.clients[c];

		client->names.family = draw(2) ? 6 : 4;
		client->names.sport = (uint16_t)(1024 + draw(60000));
		client->proto = draw(4) ? IPPROTO_TCP : IPPROTO_UDP;
		nats_address(client->names.family, NATS_CLIENT, (uint32_t)draw(500),
			     client->names.src);
	}
}

// From a neighbour.
static void draw_link(struct nat_sent *s)
{
	struct natref_hop hop;

	nats_hop((uint32_t)draw(8), &hop);
	memcpy(s->mac, hop.mac, 6);
	memcpy(s->mac_own, hop.own, 6);
	s->extra |= hop.vlan ? NAT_TAGGED : 0;
	s->ttl = once_in(100) ? 1 : once_in(100) ? 2 : 65;
}

static unsigned int draw_extra(uint8_t proto)
{
	unsigned int extra = once_in(8) ? NAT_OPTIONS : 0;

	if (once_in(100))
		extra |= NAT_ROUTED;
	if (once_in(200))
		extra |= NAT_TAGGED_TWICE;
	if (proto == IPPROTO_UDP && once_in(5))
		extra |= NAT_NO_SUM;
	else if (once_in(20))
		extra |= NAT_PARTIAL;
	return extra;
}

static struct nat_sent draw_sent(const struct nat_names_of_frame *names, uint8_t proto,
				 uint8_t flags)
{
	struct nat_sent s = {
		.names = *names,
		.proto = proto,
		.flags = flags,
		.extra = draw_extra(proto),
		.payload = draw(once_in(50) ? 1450 : 100),
		.id = (uint16_t)draw(65536),
		.tail = once_in(50) ? draw(60) : 0,
	};

	draw_link(&s);
	return s;
}

// Two or three pieces of the packet begin their way, in any order, and one of them now; or it is
// whole and has the header of a fragment.
static struct nat_sent draw_pieces(struct nat_sent s)
{
	const size_t cuts[] = {0, 64, 64 + 8 * (1 + draw(20))};
	size_t pieces = 1 + draw(3), now = draw(pieces);
	struct nat_sent first = s;

	s.payload = once_in(10) ? 1500 : 300;
	s.extra &= ~(unsigned int)(NAT_PARTIAL | NAT_ROUTED);
	for (size_t p = 0; p < pieces; p++) {
		s.from = cuts[p];
		s.to = p + 1 < pieces ? cuts[p + 1] : LAST;
		draw_link(&s);
		if (p == now)
			first = s;
		else
			all.pending[all.n_pending++ % PENDING] = s;
	}
	return first;
}

static struct nat_sent draw_pending(void)
{
	size_t n = all.n_pending < PENDING ? all.n_pending : PENDING;

	return all.pending[draw(n)];
}

static struct nat_sent draw_forward(void)
{
	static const uint8_t flags[] = {2, 2, 2, 0xc2, 16, 16, 16, 24, 17, 4, 20, 18};
	const struct client *c = &all.clients[draw(once_in(3) ? CLIENTS : CLIENTS / 30)];
	struct nat_names_of_frame names = c->names;
	const struct natref_end *e;

	do
		e = &nats_model.ends[1 + draw(12)];
	while (e->family != names.family || e->proto != c->proto);
	memcpy(names.dst, e->vip, 16);
	names.dport = once_in(100) ? 81 : e->port;
	return draw_sent(&names, c->proto, flags[draw(sizeof(flags))]);
}

static const struct recent *draw_recent(void)
{
	return &all.recent[draw(all.n_recent < RECENT ? all.n_recent : RECENT)];
}

// Some answers are from a port that has not been asked.
static struct nat_sent draw_answer(void)
{
	static const uint8_t flags[] = {18, 18, 16, 16, 24, 17, 4, 20, 2};
	const struct recent *r = draw_recent();
	struct nat_names_of_frame names = nat_world_turned(&r->went);

	names.sport ^= once_in(30);
	names.dport ^= once_in(30);
	return draw_sent(&names, r->proto, flags[draw(sizeof(flags))]);
}

// An ICMP error about a packet that has gone to a backend or to a client, from its receiver or from
// a router.
static struct nat_sent draw_error(void)
{
	static const uint8_t types[2][4] = {{3, 11, 12, 5}, {1, 2, 3, 4}};
	static struct nat_sent about;
	const struct recent *r = draw_recent();
	struct nat_names_of_frame quoted = draw(2) ? r->went : nat_world_turned(&r->came), names;
	struct nat_sent s;

	quoted.dport ^= once_in(20);
	about = draw_sent(&quoted, r->proto, 16);
	about.payload = 40;
	about.extra &= once_in(6) ? NAT_OPTIONS : 0;
	if (once_in(20)) {
		about.from = 24 * draw(2);
		about.to = about.from + 40;
	}
	names = nat_world_turned(&quoted);
	if (draw(2))
		nats_address(names.family, NATS_CLIENT, 999, names.src);
	s = draw_sent(&names, r->proto, types[names.family == 6][draw(4)]);
	s.extra &= NAT_OPTIONS | NAT_TAGGED | NAT_TAGGED_TWICE;
	s.about = &about;
	s.quoted = once_in(20) ? draw(8) : 8 + draw(2) * draw(20);
	return s;
}

static struct nat_sent draw_packet(void)
{
	struct nat_sent s;

	if (all.n_pending && once_in(6))
		return draw_pending();
	if (all.n_recent && once_in(10))
		return draw_error();
	s = all.n_recent && draw(2) ? draw_answer() : draw_forward();
	return once_in(12) ? draw_pieces(s) : s;
}

// ---- one packet ---------------------------------------------------------------------------------

// By fate.
static const enum weir_reason reasons[] = {
	[NATREF_SENT] = REASON_PASS_SERVICE,
	[NATREF_ANSWERED] = REASON_PASS_ANSWER_NAT,
	[NATREF_RESET] = REASON_PASS_NAT_RESET,
	[NATREF_TOO_BIG] = REASON_PASS_TOO_BIG,
	[NATREF_EXPIRED] = REASON_PASS_TTL,
	[NATREF_TOO_BIG_SILENT] = REASON_DROP_TOO_BIG,
	[NATREF_EXPIRED_SILENT] = REASON_DROP_TTL,
	[NATREF_NO_PEER] = REASON_DROP_NAT_NO_PEER,
	[NATREF_FULL] = REASON_DROP_NAT_FULL,
	[NATREF_BUSY] = REASON_DROP_NAT_BUSY,
	[NATREF_CLASH] = REASON_DROP_NAT_CLASH,
	[NATREF_UNKNOWN] = REASON_DROP_NAT_UNKNOWN,
	[NATREF_FRAGMENT] = REASON_DROP_SERVICE_FRAGMENT,
	[NATREF_NO_BACKEND] = REASON_DROP_NO_BACKEND,
	[NATREF_NO_NEXT_HOP] = REASON_DROP_NO_NEXT_HOP,
	[NATREF_FAILED] = REASON_DROP_FORWARD,
	[NATREF_LEFT] = REASON_PASS_DEFAULT,
};

struct outcome_of_frame {
	uint32_t verdict;
	size_t len;
	uint8_t at[NATREF_FRAME];
};

static void compare_sent(const struct frame *f, const struct natref_answer *a,
			 const struct outcome_of_frame *o)
{
	static uint8_t wanted[NATREF_FRAME];
	size_t len = natref_write(f->at, f->len, a, wanted);

	if (o->verdict != (a->to.number == NATS_OTHER ? XDP_REDIRECT : XDP_TX))
		nats_fail("the verdict differs");
	if (len == o->len && !memcmp(wanted, o->at, len))
		return;
	print_hex(wanted, len);
	nats_fail("the frame differs from the one above");
}

static void compare_reply(const struct frame *f, const struct natref_answer *a,
			  const struct outcome_of_frame *o)
{
	const char *wrong;

	if (o->verdict != XDP_TX)
		nats_fail("a packet was not answered");
	wrong = natref_wrong_reply(f->at, f->len, a, o->at, o->len);
	if (wrong)
		nats_fail(wrong);
	balance_rig_forget_answers(nats_rig->policy);
}

static void compare(const struct frame *f, const struct natref_answer *a,
		    const struct outcome_of_frame *o)
{
	switch (a->fate) {
	case NATREF_SENT:
	case NATREF_ANSWERED:
		compare_sent(f, a, o);
		return;
	case NATREF_RESET:
	case NATREF_TOO_BIG:
	case NATREF_EXPIRED:
		compare_reply(f, a, o);
		return;
	case NATREF_LEFT:
		if (o->verdict != XDP_PASS || o->len != f->len || memcmp(o->at, f->at, f->len))
			nats_fail("a packet was not left");
		return;
	default:
		if (o->verdict != XDP_DROP)
			nats_fail("a packet was not dropped");
	}
}

static void note_sent(const struct nat_sent *s, const struct natref_packet *p,
		      const struct natref_answer *a)
{
	struct recent *r = &all.recent[all.n_recent++ % RECENT];

	*r = (struct recent){.came = s->names, .went = s->names, .proto = p->proto};
	memcpy(r->went.src, a->src, 16);
	memcpy(r->went.dst, a->dst, 16);
	r->went.sport = a->sport;
	r->went.dport = a->dport;
}

static void note(const struct nat_sent *s, const struct natref_packet *p,
		 const struct natref_answer *a)
{
	bool sent = a->fate == NATREF_SENT || a->fate == NATREF_ANSWERED;

	all.fates[a->fate]++;
	all.errors += sent && p->error;
	all.later += sent && p->part == NATREF_LATER;
	if (a->fate == NATREF_SENT && !p->error && p->part != NATREF_LATER)
		note_sent(s, p, a);
}

static void play_packet(void)
{
	static struct frame f;
	static struct outcome_of_frame o;
	struct natref_answer a = {.fate = NATREF_LEFT, .place = -1};
	struct natref_packet p = {0};
	struct nat_sent s = draw_packet();

	nat_build(&s, &f);
	if (natref_read(f.at, f.len, RIG_IFACE, &p))
		a = natref_packet(&nats_model, &p);
	o.len = sizeof(o.at);
	o.verdict = nat_rig_send(nats_rig, f.at, f.len, o.at, &o.len);
	nats_packets++;
	compare(&f, &a, &o);
	if (a.place >= 0)
		nats_compare_place(p.family, a.place);
	note(&s, &p, &a);
}

// ---- histories ----------------------------------------------------------------------------------

static void begin_history(void)
{
	all.walks = nats_shuffle();
	make_clients();
	all.n_recent = all.n_pending = 0;
}

static void compare_counts(void)
{
	uint64_t now[WEIR_REASON_COUNT];

	nat_rig_counts(nats_rig, now);
	for (size_t f = 0; f <= NATREF_LEFT; f++)
		if (now[reasons[f]] != all.fates[f]) {
			printf("%s: %llu, model %llu\n", reason_name(reasons[f]),
			       (unsigned long long)now[reasons[f]],
			       (unsigned long long)all.fates[f]);
			nats_fail("a reason differs");
		}
}

// The answers of the backends that are left are found.
static void renew_near(const struct nat_census *census)
{
	uint64_t begin[NAT_NEAR_WORDS] = {0};
	const uint64_t *const needed[] = {census->near, begin};

	nats_add_near(begin);
	nat_near_renew((uint64_t *)nats_rig->nat->near, needed, ARRAY_SIZE(needed));
}

// A walk, as control makes once a minute, and the model's.
static void compare_walk(void)
{
	static struct nat_census census;
	struct natref_rest rest = natref_walk(&nats_model);
	struct nat_tables tables = *nats_rig->tables;

	tables.backends[0].at = nats_rig->policy->backends.at;
	tables.backends[0].n = NATREF_BACKENDS;
	nat_walk(&tables, nats_model.jiffies >> NATS_SHIFT, &all.unused, &census);
	renew_near(&census);
	if (census.living != rest.living || census.opening != rest.opening ||
	    census.expired != rest.expired)
		nats_fail("the census differs");
	all.swept += census.expired;
	all.names += census.names;
	nats_compare_cells();
	nats_compare_tables();
}

static uint64_t draw_pause(void)
{
	uint64_t kind = draw(1000);

	return kind < 990   ? draw(60)
	       : kind < 997 ? draw(8 * NATS_HZ)
			    : draw(kind < 999 ? 80 * NATS_HZ : 500 * NATS_HZ);
}

static void play(uint32_t packets)
{
	uint64_t now = 1000 * NATS_HZ;

	nats_set_time(now);
	while (nats_packets < packets) {
		if (nats_packets % HISTORY == 0)
			begin_history();
		nats_set_time(now += draw_pause());
		play_packet();
		if (nats_packets % COUNTED == 0)
			compare_counts();
		if (nats_packets % WALKED == 0 && all.walks)
			compare_walk();
		if (nats_packets % HISTORY == 0)
			nats_compare_tables();
	}
}

static void print_number(const char *what, uint64_t n)
{
	printf("%s %llu\n", what, (unsigned long long)n);
}

// Each of these must have happened: a history without them proves little.
static void check_complete(void)
{
	static const enum natref_fate never[] = {NATREF_BUSY, NATREF_FAILED};

	for (size_t f = 0; f <= NATREF_LEFT; f++)
		if (!all.fates[f] && f != never[0] && f != never[1])
			nats_fail("a fate has not occurred");
	if (!all.swept || !all.names || !all.errors || !all.later)
		nats_fail("no walk has freed anything, or no error or fragment was translated");
}

int main(int argc, char **argv)
{
	uint32_t packets = PACKETS, seed = 1;

	if ((argc > 1 && num_parse_u32(argv[1], strlen(argv[1]), 1, UINT32_MAX, &packets)) ||
	    (argc > 2 && num_parse_u32(argv[2], strlen(argv[2]), 1, UINT32_MAX, &seed)) ||
	    argc > 3) {
		fprintf(stderr, "usage: nats [PACKETS [SEED]]\n");
		return 2;
	}
	nats_seed(seed);
	nats_begin();
	play(packets);
	for (size_t f = 0; f <= NATREF_LEFT; f++)
		print_number(reason_name(reasons[f]), all.fates[f]);
	print_number("errors", all.errors);
	print_number("later fragments", all.later);
	print_number("swept", all.swept);
	print_number("names", all.names);
	check_complete();
	nats_end();
	printf("%u passed, 0 failed\n", packets);
	return 0;
}
