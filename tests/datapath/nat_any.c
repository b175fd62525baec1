// SPDX-License-Identifier: GPL-2.0-only
// Packets of nat and fullnat that are not common, through all programs of a policy: each output
// frame is compared with one that was built with the new names.
#include <linux/bpf.h>
#include <netinet/in.h>
#include <string.h>

#include "common/abi.h"
#include "ctl/datapath/parts.h"
#include "tests/datapath/nat_packet.h"
#include "tests/datapath/nat_world.h"
#include "tests/datapath/suite.h"

#define SYN      0x02
#define ACK      0x10
#define RST      0x04
#define SYN_ACK  0x12
#define FLOOD    20000
#define INIT     1 // chunks of SCTP
#define INIT_ACK 2
#define ABORT    6

static const uint8_t router[6] = {2, 0, 0, 0, 0, 2}, own[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t next_hop[6] = {2, 0, 0, 0, 0, 9};

static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP};

static uint16_t port_of(uint8_t proto)
{
	return proto == IPPROTO_TCP ? 80 : proto == IPPROTO_UDP ? 53 : 9;
}

static uint8_t opening(uint8_t proto)
{
	return proto == IPPROTO_SCTP ? INIT : SYN;
}

// ---- packets and their translations -------------------------------------------------------------

// From the client to a VIP.
static struct nat_sent asked(uint8_t family, bool fullnat, uint8_t proto, unsigned int extra)
{
	struct nat_sent p = {
		.names = nat_world_names(family, CLIENT, fullnat ? VIP_FULLNAT : VIP_NAT),
		.proto = proto,
		.flags = opening(proto),
		.ttl = 64,
		.extra = extra,
		.payload = 100,
		.id = 0x1234,
	};

	p.names.dport = port_of(proto);
	memcpy(p.mac, router, 6);
	memcpy(p.mac_own, own, 6);
	return p;
}

static void set_link(struct nat_sent *p, const uint8_t to[6])
{
	p->extra &= ~(unsigned int)(NAT_TAGGED | NAT_TAGGED_TWICE);
	memcpy(p->mac, own, 6);
	memcpy(p->mac_own, to, 6);
}

// The same at the backend. sport: the place in fullnat.
static struct nat_sent at_backend(struct nat_sent p, bool fullnat, uint16_t sport)
{
	struct nat_names_of_frame n = nat_world_names(p.names.family, SOURCE, BACKEND);

	memcpy(p.names.dst, n.dst, 16);
	if (fullnat) {
		memcpy(p.names.src, n.src, 16);
		p.names.sport = sport;
	}
	if (p.proto != IPPROTO_SCTP)
		p.names.dport = NAT_WORLD_PORT;
	p.tail = 0;
	p.ttl--;
	p.extra &= ~(unsigned int)NAT_PARTIAL;
	set_link(&p, next_hop);
	return p;
}

// The answer of the backend to `went`, as it is sent.
static struct nat_sent answered(const struct nat_sent *went, unsigned int extra)
{
	struct nat_sent p = *went;

	p.names = nat_world_turned(&went->names);
	p.flags = p.proto == IPPROTO_SCTP ? INIT_ACK : SYN_ACK;
	p.ttl = 50;
	p.extra = extra;
	p.payload = 60;
	memcpy(p.mac, next_hop, 6);
	memcpy(p.mac_own, own, 6);
	return p;
}

// As the client gets it; came: what it has sent.
static struct nat_sent at_client(struct nat_sent p, const struct nat_sent *came)
{
	p.names = nat_world_turned(&came->names);
	p.ttl--;
	p.extra &= ~(unsigned int)NAT_PARTIAL;
	set_link(&p, router);
	p.extra |= came->extra & NAT_TAGGED;
	p.tail = 0;
	return p;
}

// ---- sending ------------------------------------------------------------------------------------

// Sends it: the verdict and the reason.
static struct outcome counted(struct test *t, const struct nat_rig *r, const struct nat_sent *p,
			      uint32_t verdict, enum weir_reason reason, const char *what)
{
	struct outcome o = nat_send(r, p);

	CHECK(t, o.verdict == verdict, "%s: verdict %u", what, o.verdict);
	CHECK(t, o.moved_n == 1 && o.moved[0].reason == reason, "%s: %s", what,
	      o.moved_n ? reason_name(o.moved[0].reason) : "not counted");
	return o;
}

#define DROPS(t, r, p, reason, what)  counted(t, r, p, XDP_DROP, REASON_DROP_##reason, what)
#define PASSES(t, r, p, reason, what) counted(t, r, p, XDP_PASS, REASON_PASS_##reason, what)
// Sends `in`; `out` must arrive from byte `first` on, but bytes after the packet do not matter.
static bool arrives(struct test *t, const struct nat_rig *r, const struct nat_sent *in,
		    const struct nat_sent *out, size_t first, uint32_t verdict,
		    enum weir_reason reason, const char *what)
{
	static struct frame wanted;
	struct outcome o = counted(t, r, in, verdict, reason, what);

	nat_build(out, &wanted);
	if (o.out && o.out->len >= wanted.len &&
	    !memcmp(o.out->at + first, wanted.at + first, wanted.len - first))
		return true;
	test_fail(t, __FILE__, __LINE__, "%s: another frame than", what);
	print_hex(wanted.at, wanted.len);
	if (o.out)
		print_hex(o.out->at, o.out->len);
	return false;
}

// The source port of the connection that a common SYN opens.
static uint16_t opened(const struct nat_rig *r, struct nat_sent p)
{
	struct outcome o;

	p.extra = 0;
	p.from = p.to = 0;
	p.about = NULL;
	o = nat_send(r, &p);
	return o.verdict == XDP_TX && o.out ? nat_world_read(o.out->at).sport : 0;
}

static bool goes(struct test *t, const struct nat_rig *r, const struct nat_sent *in,
		 const struct nat_sent *out, const char *what)
{
	return arrives(t, r, in, out, 0, XDP_TX, REASON_PASS_SERVICE, what);
}

static bool returns(struct test *t, const struct nat_rig *r, const struct nat_sent *in,
		    const struct nat_sent *out, const char *what)
{
	return arrives(t, r, in, out, 0, XDP_TX, REASON_PASS_ANSWER_NAT, what);
}

// ---- there and back -----------------------------------------------------------------------------

// A packet and its answer, both with these extras.
static void there_and_back(struct test *t, const struct nat_rig *r, struct nat_sent in,
			   bool fullnat, const char *what)
{
	uint16_t sport = opened(r, in);
	struct nat_sent out = at_backend(in, fullnat, sport);
	struct nat_sent answer = answered(&out, in.extra), back;

	CHECK(t, sport, "%s: nothing was opened", what);
	in.flags = in.proto == IPPROTO_SCTP ? INIT : ACK;
	out.flags = in.flags;
	goes(t, r, &in, &out, what);
	answer.tail = in.tail;
	back = at_client(answer, &in);
	returns(t, r, &answer, &back, what);
}

static void each_way(struct test *t, unsigned int extra, size_t tail, const char *what)
{
	struct nat_rig *r = nat_world_new(false);

	for (uint8_t family = 4; family <= 6; family += 2)
		for (int fullnat = 0; fullnat < 2; fullnat++)
			for (size_t p = 0; p < 2; p++) {
				struct nat_sent in = asked(family, fullnat, protos[p], extra);

				in.tail = tail;
				there_and_back(t, r, in, fullnat, what);
			}
	nat_rig_free(r);
}

static void test_options(struct test *t)
{
	each_way(t, NAT_OPTIONS, 0, "options");
	each_way(t, NAT_OPTIONS | NAT_TAGGED, 0, "options and a tag");
}

static void test_partial(struct test *t)
{
	each_way(t, NAT_PARTIAL, 0, "a partial checksum");
}

static void test_no_sum(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	struct nat_sent in = asked(4, true, IPPROTO_UDP, NAT_OPTIONS | NAT_NO_SUM);

	there_and_back(t, r, in, true, "UDP without a checksum");
	nat_rig_free(r);
}

static void test_tail(struct test *t)
{
	each_way(t, 0, 40, "bytes after the packet");
	each_way(t, NAT_OPTIONS, 40, "options and bytes after the packet");
}

// In generic mode the kernel completes the checksum: the sum of the new pseudo-header remains.
static void test_generic(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);

	r->rig->instance->knobs->generic = ~0ull;
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct nat_sent in = asked(family, true, IPPROTO_TCP, NAT_PARTIAL), out, answer;
		struct nat_sent back;

		out = at_backend(in, true, opened(r, in));
		out.extra |= NAT_PARTIAL;
		goes(t, r, &in, &out, "a partial checksum in generic mode");
		answer = answered(&out, NAT_PARTIAL);
		back = at_client(answer, &in);
		back.extra |= NAT_PARTIAL;
		returns(t, r, &answer, &back, "its answer");
	}
	nat_rig_free(r);
}

static void test_sctp(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);

	for (uint8_t family = 4; family <= 6; family += 2) {
		struct nat_sent in = asked(family, false, IPPROTO_SCTP, 0), out, answer, back;

		out = at_backend(in, false, 0);
		goes(t, r, &in, &out, "INIT");
		answer = answered(&out, 0);
		back = at_client(answer, &in);
		returns(t, r, &answer, &back, "INIT ACK");
		in.names.sport++;
		in.flags = ABORT;
		DROPS(t, r, &in, NAT_UNKNOWN, "ABORT of no association");
		in.flags = INIT;
		nat_rig_backend(r, family == 4 ? SCTP4 : SCTP6)->port = 8080;
		DROPS(t, r, &in, FORWARD, "SCTP whose port would change");
	}
	nat_rig_free(r);
}

// ---- fragments ----------------------------------------------------------------------------------

// Three fragments, the last one first.
static void fragments_of(struct test *t, const struct nat_rig *r, struct nat_sent in, bool fullnat,
			 const char *what)
{
	static const size_t ends[] = {0, 64, 128, 1000};
	struct nat_sent whole = in, out, answer, back;
	uint16_t sport;

	in.payload = whole.payload = 300;
	sport = opened(r, whole);
	in.from = ends[2];
	in.to = ends[3];
	DROPS(t, r, &in, SERVICE_FRAGMENT, "a fragment before its first one");
	for (size_t f = 0; f < 3; f++) {
		in.from = ends[f];
		in.to = ends[f + 1];
		out = at_backend(in, fullnat, sport);
		goes(t, r, &in, &out, what);
	}
	for (size_t f = 0; f < 3; f++) {
		answer = answered(&out, in.extra);
		answer.payload = 300;
		answer.id = 0x4321;
		answer.from = ends[f];
		answer.to = ends[f + 1];
		back = at_client(answer, &in);
		returns(t, r, &answer, &back, "a fragment of an answer");
	}
	answer.id++;
	PASSES(t, r, &answer, DEFAULT, "a fragment from a backend without its first one");
	in.id++;
	DROPS(t, r, &in, SERVICE_FRAGMENT, "a fragment of another packet");
}

static void test_fragments(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);

	for (uint8_t family = 4; family <= 6; family += 2)
		for (int fullnat = 0; fullnat < 2; fullnat++) {
			struct nat_sent in;

			fragments_of(t, r, asked(family, fullnat, IPPROTO_UDP, 0), fullnat,
				     "a fragment");
			in = asked(family, fullnat, IPPROTO_TCP, NAT_OPTIONS);
			in.id += 10;
			fragments_of(t, r, in, fullnat, "a fragment with options");
		}
	nat_rig_free(r);
}

// ---- answers that are sent back -----------------------------------------------------------------

static void test_resets(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);

	r->nat->resets_from = 0;
	for (uint8_t family = 4; family <= 6; family += 2) {
		struct nat_sent in = asked(family, family == 4, IPPROTO_TCP, 0);
		struct nat_sent udp = asked(family, family == 4, IPPROTO_UDP, 0);
		size_t l4 = 14 + (family == 4 ? 20 : 40);
		struct outcome o;

		in.flags = ACK;
		o = counted(t, r, &in, XDP_TX, REASON_PASS_NAT_RESET, "ACK of no connection");
		CHECK(t, o.out && o.out->at[l4 + 13] & RST, "not a reset");
		in.extra = NAT_OPTIONS;
		counted(t, r, &in, XDP_TX, REASON_PASS_NAT_RESET, "the same with options");
		in.flags = RST;
		DROPS(t, r, &in, NAT_UNKNOWN, "a reset");
		in.flags = ACK;
		r->nat->resets_from = rig_after_ms(r->rig, 60000);
		DROPS(t, r, &in, NAT_UNKNOWN, "ACK of no connection, soon after the attach");
		r->nat->resets_from = 0;
		udp.ttl = 1;
		o = counted(t, r, &udp, XDP_TX, REASON_PASS_TTL, "no hop left");
		CHECK(t, o.out && o.out->at[l4] == (family == 4 ? 11 : 3), "not ICMP");
	}
	nat_rig_free(r);
}

// From many addresses: the budget for all receivers is spent, and the short program drops the rest.
static void test_reset_flood(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	struct nat_sent in = asked(4, true, IPPROTO_TCP, 0);
	uint64_t handed_on = rig_handed_on(r->rig), resets = 0;
	struct frame f;

	r->nat->resets_from = 0;
	in.flags = ACK;
	for (size_t i = 0; i < FLOOD; i++) {
		in.names.src[1] = (uint8_t)(1 + i / 256 % 256);
		in.names.src[2] = (uint8_t)i;
		nat_build(&in, &f);
		resets += rig_try(r->rig, &f, 0).verdict == XDP_TX;
	}
	handed_on = rig_handed_on(r->rig) - handed_on;
	CHECK(t, resets && resets < FLOOD / 2, "%llu resets", (unsigned long long)resets);
	CHECK(t, rig_is_general_only() || (handed_on >= resets && handed_on < FLOOD / 2),
	      "%llu packets were left", (unsigned long long)handed_on);
	nat_rig_free(r);
}

static void check_too_big(struct test *t, const struct nat_rig *r, const struct nat_sent *p,
			  uint16_t mtu, const char *what)
{
	struct outcome o = counted(t, r, p, XDP_TX, REASON_PASS_TOO_BIG, what);
	size_t l4 = 14 + (p->names.family == 4 ? 20 : 40);

	CHECK(t, o.out && o.out->at[l4] == (p->names.family == 4 ? 3 : 2), "%s: not ICMP", what);
	CHECK(t, o.out && (o.out->at[l4 + 6] << 8 | o.out->at[l4 + 7]) == mtu, "%s: another MTU",
	      what);
}

static void test_too_big(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);

	for (uint8_t family = 4; family <= 6; family += 2)
		for (int fullnat = 0; fullnat < 2; fullnat++) {
			struct nat_sent in = asked(family, fullnat, IPPROTO_TCP, 0);

			nat_rig_backend(r,
					(uint32_t)(family == 4 ? NEAR4 : NEAR6) + (uint32_t)fullnat)
				->mtu = 1400;
			in.payload = 1400;
			check_too_big(t, r, &in, 1400, "too big to begin");
			opened(r, asked(family, fullnat, IPPROTO_TCP, 0));
			in.flags = ACK;
			check_too_big(t, r, &in, 1400, "too big");
		}
	nat_rig_free(r);
}

// ---- clients without a peer ---------------------------------------------------------------------

static const uint8_t neighbour[6] = NAT_WORLD_NEIGHBOUR;

// The answer to a packet with two tags, which no peer has.
static struct nat_sent answer_without_peer(struct test *t, const struct nat_rig *r, uint8_t family,
					   struct nat_sent *ret_in)
{
	struct nat_sent out;

	*ret_in = asked(family, true, IPPROTO_TCP, 0);
	out = at_backend(*ret_in, true, opened(r, *ret_in));
	ret_in->extra = NAT_TAGGED_TWICE;
	ret_in->flags = out.flags = ACK;
	goes(t, r, ret_in, &out, "two tags");
	return answered(&out, 0);
}

static void add_device(const struct nat_rig *r, uint32_t ifindex)
{
	struct err err = {0};

	if (parts_add_device(r->policy->c->generation, ifindex, &err))
		test_die(&err);
}

static void test_no_peer(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	uint32_t ifindex = 0;

	for (uint8_t family = 4; family <= 6; family += 2) {
		struct nat_sent in, back, answer = answer_without_peer(t, r, family, &in);

		if (!ifindex) {
			DROPS(t, r, &answer, NAT_NO_PEER, "an answer without a way to the client");
			if (!(ifindex = nat_world_route())) {
				test_skip(t, "no veth devices can be made here");
				break;
			}
			DROPS(t, r, &answer, NAT_NO_PEER, "an answer by a device that is not ours");
			add_device(r, ifindex);
		}
		back = at_client(answer, &in);
		memcpy(back.mac_own, neighbour, 6);
		arrives(t, r, &answer, &back, 12, XDP_REDIRECT, REASON_PASS_ANSWER_NAT,
			"an answer by the routing table");
	}
	if (ifindex)
		nat_world_unroute();
	nat_rig_free(r);
}

// ---- errors -------------------------------------------------------------------------------------

// An error about `about`, from `from` to its sender.
static struct nat_sent error_about(const struct nat_sent *about, uint8_t from, unsigned int extra)
{
	struct nat_sent p = *about;
	struct nat_names_of_frame n = nat_world_names(about->names.family, from, 0);

	memcpy(p.names.src, n.src, 16);
	memcpy(p.names.dst, about->names.src, 16);
	p.extra = extra;
	p.ttl = 40;
	p.about = about;
	p.flags = p.names.family == 4 ? 3 : 1; // unreachable: host, or no route
	p.quoted = 8;
	memcpy(p.mac, next_hop, 6);
	memcpy(p.mac_own, own, 6);
	return p;
}

// About a packet that went to the backend. quoted: bytes of its transport.
static void error_back(struct test *t, const struct nat_rig *r, struct nat_sent in, bool fullnat,
		       unsigned int extra, size_t quoted)
{
	struct nat_sent went = at_backend(in, fullnat, opened(r, in)), came = in;
	struct nat_sent error = error_about(&went, 99, extra), told;

	came.ttl = went.ttl;
	error.quoted = quoted;
	told = error;
	told.about = &came;
	memcpy(told.names.src, in.names.dst, 16);
	memcpy(told.names.dst, in.names.src, 16);
	told.ttl--;
	set_link(&told, router);
	returns(t, r, &error, &told, "an error about a packet to the backend");
	memset(went.names.dst + 2, 7, 1);
	PASSES(t, r, &error, DEFAULT, "an error about a packet to another host");
}

// About an answer.
static void error_to(struct test *t, const struct nat_rig *r, struct nat_sent in, bool fullnat,
		     unsigned int extra, size_t quoted)
{
	struct nat_sent out = at_backend(in, fullnat, opened(r, in));
	struct nat_sent answer = answered(&out, in.extra), sent = at_client(answer, &in);
	struct nat_sent error = error_about(&sent, 99, extra), told;

	answer.ttl = sent.ttl;
	error.quoted = quoted;
	told = error;
	told.about = &answer;
	memcpy(told.names.dst, answer.names.src, 16);
	if (fullnat)
		memcpy(told.names.src, out.names.src, 16);
	told.ttl--;
	set_link(&told, next_hop);
	goes(t, r, &error, &told, "an error about an answer");
}

static void test_errors(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);

	for (uint8_t family = 4; family <= 6; family += 2)
		for (int fullnat = 0; fullnat < 2; fullnat++)
			for (size_t p = 0; p < 2; p++) {
				struct nat_sent in = asked(family, fullnat, protos[p], 0);

				error_back(t, r, in, fullnat, NAT_OPTIONS, 8);
				error_back(t, r, in, fullnat, NAT_OPTIONS, 40);
				error_to(t, r, in, fullnat, NAT_OPTIONS, 8);
				error_to(t, r, in, fullnat, NAT_OPTIONS, 40);
				in.extra = family == 4 ? NAT_OPTIONS : 0;
				error_back(t, r, in, fullnat, 0, 28);
				error_to(t, r, in, fullnat, 0, 28);
			}
	nat_rig_free(r);
}

// ---- left alone ---------------------------------------------------------------------------------

static void set_modes(const struct nat_rig *r, enum nat_mode mode)
{
	for (uint32_t e = 0; e < NAT_ENDS; e++)
		if (r->use[e].mode != NAT_USE_NONE)
			r->use[e].mode = (uint8_t)mode;
}

static void test_left(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	struct nat_sent in = asked(4, false, IPPROTO_TCP, NAT_ROUTED), out, answer;

	PASSES(t, r, &in, DEFAULT, "a source route");
	in.extra = 0;
	out = at_backend(in, false, opened(r, in));
	answer = answered(&out, NAT_ROUTED);
	PASSES(t, r, &answer, DEFAULT, "an answer with a source route");
	answer.extra = NAT_OPTIONS;
	answer.names.sport++;
	PASSES(t, r, &answer, DEFAULT, "a packet from another port of the backend");
	answer.names.sport--;
	answer.names.dport++;
	PASSES(t, r, &answer, DEFAULT, "a packet to another port of the client");
	answer.names.dport--;
	set_modes(r, NAT_USE_NONE);
	for (int common = 0; common < 2; common++) {
		counted(t, r, &answer, XDP_TX, REASON_PASS_ANSWER_NAT,
			"an answer of a service that a policy on trial lacks");
		answer.extra = 0;
	}
	nat_rig_free(r);
}

// ---- services in another mode -------------------------------------------------------------------

// The general program opens it: the short one knows the mode of now.
static uint16_t opened_with_options(const struct nat_rig *r, const struct nat_sent *p)
{
	struct outcome o = nat_send(r, p);
	const uint8_t *l4 = o.out ? o.out->at + 14 + (p->names.family == 4 ? 28 : 56) : NULL;

	return l4 ? (uint16_t)(l4[0] << 8 | l4[1]) : 0;
}

// A connection that began in fullnat is still translated; others follow the mode of now.
static void check_former(struct test *t, const struct nat_rig *r, struct nat_sent in,
			 struct nat_sent out)
{
	struct nat_sent answer = answered(&out, in.extra), back = at_client(answer, &in);

	goes(t, r, &in, &out, "a packet of a former connection");
	returns(t, r, &answer, &back, "its answer");
	in.names.sport++;
	out = in;
	out.ttl--;
	set_link(&out, next_hop);
	goes(t, r, &in, &out, "a packet of another connection");
}

static void test_former(struct test *t)
{
	struct nat_rig *r = nat_world_new(true);

	for (uint8_t family = 4; family <= 6; family += 2) {
		struct nat_sent in = asked(family, true, IPPROTO_TCP, NAT_OPTIONS), out;

		set_modes(r, NAT_USE_FULLNAT);
		out = at_backend(in, true, opened_with_options(r, &in));
		set_modes(r, NAT_USE_FORMER);
		in.flags = out.flags = ACK;
		check_former(t, r, in, out);
		in.extra = out.extra = 0;
		check_former(t, r, in, out);
	}
	nat_rig_free(r);
}

// ---- random packets -----------------------------------------------------------------------------

#define RANDOM 3000

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 11) % below;
}

// Some of these are common.
static unsigned int draw_extra(uint64_t *state, uint8_t proto)
{
	unsigned int extra = (draw(state, 2) ? NAT_OPTIONS : 0) | (draw(state, 3) ? 0 : NAT_TAGGED);

	if (draw(state, 3))
		return extra;
	return extra | (proto == IPPROTO_UDP && draw(state, 2) ? NAT_NO_SUM : NAT_PARTIAL);
}

static void test_random(struct test *t)
{
	struct nat_rig *r = nat_world_new(false);
	uint64_t state = 0x9e3779b97f4a7c15ull;

	for (size_t i = 0; i < suite_repeats(RANDOM) && !t->failed; i++) {
		uint8_t family = draw(&state, 2) ? 4 : 6, proto = protos[draw(&state, 2)];
		bool fullnat = draw(&state, 2);
		struct nat_sent in = asked(family, fullnat, proto, draw_extra(&state, proto));

		in.names.sport = (uint16_t)(1024 + draw(&state, 60000));
		in.names.src[family == 4 ? 2 : 14] = (uint8_t)draw(&state, 200);
		in.payload = draw(&state, 1200);
		in.tail = draw(&state, 4) ? 0 : draw(&state, 60);
		in.ttl = (uint8_t)(2 + draw(&state, 254));
		there_and_back(t, r, in, fullnat, "a random packet");
		if (in.extra & NAT_TAGGED)
			continue; // the peer has the tag
		in.tail = 0;
		in.extra &= ~(unsigned int)NAT_PARTIAL;
		in.extra &= family == 4 ? ~0u : ~(unsigned int)NAT_OPTIONS;
		error_back(t, r, in, fullnat, draw_extra(&state, 0) & NAT_OPTIONS,
			   8 + 2 * draw(&state, 20));
	}
	nat_rig_free(r);
}

const struct named_test nat_any_tests[] = {
	{"nat: options and extension headers", test_options},
	{"nat: partial checksums", test_partial},
	{"nat: partial checksums in generic mode", test_generic},
	{"nat: UDP without a checksum", test_no_sum},
	{"nat: bytes after the packet", test_tail},
	{"nat: SCTP", test_sctp},
	{"nat: fragments", test_fragments},
	{"nat: resets, and no hop left", test_resets},
	{"nat: a flood without connections", test_reset_flood},
	{"nat: too big", test_too_big},
	{"nat: clients without a peer", test_no_peer},
	{"nat: ICMP errors with options", test_errors},
	{"nat: packets that are left alone", test_left},
	{"nat: a service that has left it", test_former},
	{"nat: random packets", test_random},
	{0},
};
