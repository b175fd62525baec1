// SPDX-License-Identifier: GPL-2.0-only
// Turns expect lines into packets: pairs of addresses, and defaults for what a line omits.

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/names.h"
#include "ctl/policy/resolver.h"

struct packet_work {
	struct resolver *r;
	const struct ast_expect *ast;
	struct resolved_packet *packet;
	bool ok;
};

#define fail(k, at, hint, ...) (diag_error((k)->r->diag, at, hint, __VA_ARGS__), (k)->ok = false)

// The interface that a device of this name is: the exact one, else the longest pattern.
static void read_on(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	const struct resolved *r = k->r->r;
	size_t best = 0;
	bool found = false;

	for (size_t i = 0; a->on && i < r->n_interfaces; i++) {
		const char *name = r->interfaces[i].name;

		if (strcmp(name, a->on) != 0 && fnmatch(name, a->on, FNM_NOESCAPE) != 0)
			continue;
		if (found && strlen(name) < best && strcmp(name, a->on) != 0)
			continue;
		best = strcmp(name, a->on) != 0 ? strlen(name) : SIZE_MAX;
		k->packet->iface = (uint32_t)i;
		found = true;
	}
	if (a->on && !found)
		fail(k, a->on_at, "'interface' lists them",
		     "'%s' is not an interface of this policy", a->on);
}

static void read_frame(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	uint16_t values[2] = {0};
	uint32_t hex;
	size_t n = 0;

	if (!names_ethertype(a->ethertype, values, &n) && n)
		k->packet->ethertype = values[0];
	else if (!num_parse_hex32(a->ethertype, strlen(a->ethertype), &hex) && hex >= 0x600 &&
		 hex <= UINT16_MAX)
		k->packet->ethertype = (uint16_t)hex;
	else
		fail(k, a->ethertype_at, NULL, "'%s' is not %s ethertype", a->ethertype,
		     strcmp(a->ethertype, "any") ? "an" : "a single");
	if (k->packet->ethertype == 0x0800 || k->packet->ethertype == 0x86dd)
		fail(k, a->ethertype_at, "write from ADDRESS to ADDRESS",
		     "an IP packet needs 'from' and 'to'");
}

static bool is_icmp(uint8_t proto)
{
	return proto == PROTO_ICMP || proto == PROTO_ICMP6;
}

static void read_proto(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	const char *near;

	k->packet->proto = a->type.given ? 0 : PROTO_TCP; // 0 with a type: as the family has it
	if (!a->proto || !names_proto(a->proto, &k->packet->proto))
		return;
	near = names_nearest(NAMES_PROTOS, a->proto);
	if (near)
		fail(k, a->proto_at, NULL, "'%s' is not a protocol, did you mean '%s'?", a->proto,
		     near);
	else
		fail(k, a->proto_at, NULL, "'%s' is not a protocol", a->proto);
}

static void read_type(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	const char *word = a->type.given ? a->type.items.at[0].word : NULL;
	bool number;
	uint8_t type;

	if (!word)
		return;
	number = !num_parse_u32(word, strlen(word), 0, 255, &(uint32_t){0});
	if (a->proto && !is_icmp(k->packet->proto))
		fail(k, a->type.at, NULL, "'type' needs icmp or icmp6");
	else if (number && !a->proto)
		fail(k, a->type.at, "write icmp or icmp6",
		     "type number '%s' differs between ICMP and ICMPv6", word);
	else if (!number && (names_icmp(word, 4, &type) < 0 || k->packet->proto == PROTO_ICMP6) &&
		 (names_icmp(word, 6, &type) < 0 || k->packet->proto == PROTO_ICMP))
		fail(k, a->type.at, NULL, "'%.60s' is not an ICMP type%s", word,
		     a->proto ? " of this family" : "");
	k->packet->code = (uint8_t)a->code.value;
}

static void read_ports(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	struct diag_at at = a->sport.given ? a->sport.at : a->dport.at;
	uint8_t proto = k->packet->proto;
	bool ports = proto == PROTO_TCP || proto == PROTO_UDP || proto == PROTO_SCTP;

	if ((a->sport.given || a->dport.given) && (!ports || a->type.given))
		fail(k, at, NULL, "this protocol has no ports");
	else if ((a->sport.given || a->dport.given) && a->fragment)
		fail(k, at, NULL, "a later fragment has no ports");
	k->packet->sport = (uint16_t)a->sport.value;
	k->packet->dport = (uint16_t)a->dport.value;
}

static void read_flags(struct packet_work *k)
{
	const struct ast_packet *a = &k->ast->packet;
	struct value v = resolve_value(k->r, a->at);
	const struct ast_list none = {0};
	uint8_t mask;

	k->packet->flags = FLAG_SYN;
	if (!a->flags.given)
		return;
	k->packet->flags = 0;
	if (k->packet->proto != PROTO_TCP)
		fail(k, a->flags.at, NULL, "'flags' needs tcp");
	if (value_flags(&v, &a->flags, &none, &k->packet->flags, &mask) < 0)
		k->ok = false;
}

static bool resolve_packet(struct resolver *r, const struct ast_expect *ast,
			   struct resolved_packet *ret)
{
	const struct ast_packet *a = &ast->packet;
	struct packet_work k = {.r = r, .ast = ast, .packet = ret, .ok = true};

	read_on(&k);
	ret->vlan = (uint16_t)a->vlan.value;
	ret->mac_given = a->mac_given;
	ret->mac = a->mac;
	ret->length = a->length.value;
	ret->over = a->over;
	if (a->ethertype) {
		read_frame(&k);
		return k.ok;
	}
	ret->ip = true;
	ret->ttl = (uint8_t)a->ttl.value;
	ret->fragment = a->fragment;
	ret->established = a->established;
	ret->unroutable = a->unroutable;
	read_proto(&k);
	read_type(&k);
	read_ports(&k);
	read_flags(&k);
	if (a->established && ret->proto != PROTO_TCP && ret->proto != PROTO_UDP)
		fail(&k, a->at, NULL, "'established' needs tcp or udp");
	return k.ok;
}

#define TTL    64
#define ND_TTL 255 // RFC 4861 section 6.1

struct expect_side { // up to so many addresses of a list, one family each
	struct addr v4[POLICY_EXPECT_PAIRS], v6[POLICY_EXPECT_PAIRS];
	size_t n4, n6;
	const struct resolved_service *service; // of "to SERVICE"
	bool broken;                            // an error was found in it
	bool filtered;                          // addresses of its names are left out
	bool self;                              // it has the addresses of this host
};

struct expect_work {
	struct resolver *r;
	const struct ast_expect *ast;
	struct resolved_expect *to;
	struct resolved_packet common;
	VEC(struct resolved_packet) packets;
};

// ---- addresses ----------------------------------------------------------------------------------

// First and last address of each interval. Of too many intervals some are taken, evenly spread.
static size_t pick(const struct intervals *v, uint8_t family, struct addr *ret)
{
	size_t n = 0, max = POLICY_EXPECT_PAIRS;
	bool few = v->n <= max / 2;

	for (size_t i = 0; i < (few || v->n < max ? v->n : max); i++) {
		const struct interval *at = &v->at[v->n <= max ? i : i * v->n / max];

		ret[n++] = interval_addr(at->first, family);
		if (few && at->last != at->first)
			ret[n++] = interval_addr(at->last, family);
	}
	return n;
}

static void pick_both(const struct resolved_addresses *s, struct expect_side *ret)
{
	struct intervals v4 = {0}, v6 = {0};

	intervals_of(s, 4, &v4);
	intervals_of(s, 6, &v6);
	ret->n4 = pick(&v4, 4, ret->v4);
	ret->n6 = pick(&v6, 6, ret->v6);
	intervals_free(&v4);
	intervals_free(&v6);
}

static const struct resolved_service *service_of(struct resolver *r, const struct leaves *leaves)
{
	const struct ast_item *item = leaves->all.n == 1 ? leaves->all.at[0].item : NULL;
	uint32_t number = INDEX_NONE;

	if (item && item->kind == AST_WORD && item->as_address == AST_LABEL)
		number = index_find(&r->ast->service_index, item->word);
	if (number == INDEX_NONE || r->ast->services.at[number].broken)
		return NULL;
	return &r->r->services[number];
}

// The addresses of a set that is the only item, or NULL.
static const struct resolved_addresses *lone_set(struct resolver *r, const struct leaves *leaves,
						 enum policy_use use, bool *ret_broken)
{
	const struct leaf *leaf = leaves->all.n == 1 ? &leaves->all.at[0] : NULL;
	uint32_t number = INDEX_NONE;

	if (leaf && leaf->item->kind == AST_SET && !leaves->negated && !leaf->negated)
		number = index_find(&r->ast->set_index, leaf->item->word);
	if (number == INDEX_NONE || !ast_set_is_addresses(&r->ast->sets.at[number]))
		return NULL;
	if (use != POLICY_WHOLE && r->sets[number].split)
		return NULL; // its value is the whole
	*ret_broken = r->sets[number].broken;
	return &r->addresses.at[r->sets[number].address];
}

static void pick_leaves(struct expect_work *w, const struct leaves *leaves, enum policy_use use,
			struct expect_side *ret)
{
	struct resolved_addresses set = {0};
	struct arena arena = {0};
	struct leaves_about about;
	struct cidr_set value = resolve_leaves(w->r, leaves, use, &about);

	ret->broken = about.broken;
	if (w->r->env->known && about.listed)
		diag_error(w->r->diag, w->ast->at, NULL,
			   "the addresses of this line are not known");
	cidr_resolve(&value, leaves->negated && !cidr_is_empty(&value), &arena, &set);
	pick_both(&set, ret);
	cidr_free(&value);
	arena_free(&arena);
}

static bool has_self(const struct leaves *leaves)
{
	vec_each (&leaves->all, leaf)
		if (leaf->item->kind == AST_WORD && leaf->item->as_address == AST_SELF)
			return true;
	return false;
}

// Has the other side a family that this host lacks?
static bool lacks_family(const struct expect_side *own, const struct expect_side *other)
{
	return own->self && ((!own->n4 && other->n4) || (!own->n6 && other->n6));
}

// Other answers or addresses of this host may leave a line without addresses; the policy is not
// refused for that.
static void report_empty(struct resolver *r, struct diag_at at, const struct expect_side *from,
			 const struct expect_side *to, const char *what)
{
	if (from->filtered || to->filtered)
		diag_warning(r->diag, at, NULL, "no packet remains without protected addresses");
	else if (lacks_family(from, to) || lacks_family(to, from))
		diag_warning(r->diag, at, NULL,
			     "no packet remains with the present addresses of this host");
	else
		diag_error(r->diag, at, NULL, "%s", what);
}

// `expect drop` and `expect reject` leave out what drop rules leave out.
static void pick_side(struct expect_work *w, const struct ast_list *list, struct expect_side *ret)
{
	enum policy_use use = resolve_use_of_expect(w->ast);
	static const struct expect_side any = {.n4 = 1, .n6 = 1};
	const struct resolved_addresses *set;
	struct leaves leaves = {0};

	expand(&w->r->expander, list, POLICY_LIST_ITEMS, NULL, &leaves);
	use = leaves.negated ? POLICY_WHOLE : use;
	ret->service = service_of(w->r, &leaves);
	set = ret->service ? &w->r->addresses.at[ret->service->vip]
			   : lone_set(w->r, &leaves, use, &ret->broken);
	if (set)
		pick_both(set, ret);
	else
		pick_leaves(w, &leaves, use, ret);
	ret->filtered = use != POLICY_WHOLE && resolve_splits(w->r, &leaves);
	ret->self = has_self(&leaves);
	leaves_free(&leaves);
	if (!ret->n4 && !ret->n6 && !ret->broken)
		report_empty(w->r, list->at, ret, &any, "no address remains");
}

// ---- packets ------------------------------------------------------------------------------------

// False: the family does not have this protocol or type.
static bool set_icmp(const struct expect_work *w, uint8_t family, struct resolved_packet *p)
{
	const struct ast_packet *a = &w->ast->packet;
	const char *word = a->type.given ? a->type.items.at[0].word : "echo-request";
	uint8_t own = family == 4 ? PROTO_ICMP : PROTO_ICMP6;
	uint32_t number;

	if (p->proto != own && p->proto)
		return false;
	p->proto = own;
	if (!num_parse_u32(word, strlen(word), 0, 255, &number))
		p->type = (uint8_t)number;
	else if (names_icmp(word, family, &p->type) < 0)
		return false;
	if (!a->ttl.given && family == 6 && names_is_neighbour_discovery(p->type))
		p->ttl = ND_TTL;
	return true;
}

static void set_ports(const struct expect_work *w, const struct expect_side *to,
		      struct resolved_packet *p)
{
	const struct ast_packet *a = &w->ast->packet;

	if (a->fragment)
		return;
	if (!a->sport.given)
		p->sport = POLICY_EXPECT_SPORT;
	if (a->dport.given)
		return;
	p->dport = POLICY_EXPECT_DPORT;
	if (to->service && to->service->ports.n)
		p->dport = to->service->ports.at[0].first;
}

// The protocol of "to SERVICE" without one: the first that the service has.
static uint8_t proto_of(const struct expect_work *w, const struct expect_side *to)
{
	static const uint8_t protos[] = {PROTO_TCP, PROTO_UDP, PROTO_SCTP};

	for (size_t i = 0; !w->ast->packet.proto && !w->ast->packet.type.given && to->service &&
			   i < ARRAY_SIZE(protos);
	     i++)
		if (bits_has(to->service->proto.bits, protos[i]))
			return protos[i];
	return w->common.proto;
}

static void add_packet(struct expect_work *w, const struct expect_side *to, const struct addr *src,
		       const struct addr *dst)
{
	const struct ast_packet *a = &w->ast->packet;
	struct resolved_packet p = w->common;
	bool icmp;

	p.ethertype = src->family == 4 ? 0x0800 : 0x86dd;
	p.from = *src;
	p.to = *dst;
	p.ttl = (uint8_t)(a->ttl.given ? a->ttl.value : TTL);
	p.proto = proto_of(w, to);
	icmp = a->type.given || p.proto == PROTO_ICMP || p.proto == PROTO_ICMP6;
	if (icmp && !set_icmp(w, src->family, &p))
		return;
	if (w->to->answer)
		resolve_answer(w->r, w->ast, w->to->service, &p);
	else if (p.proto == PROTO_TCP || p.proto == PROTO_UDP || p.proto == PROTO_SCTP)
		set_ports(w, to, &p);
	if (p.proto != PROTO_TCP || p.fragment)
		p.flags = 0;
	vec_push(&w->packets, p);
}

// All pairs, or enough that each address that fits is in one.
static void add_pairs(struct expect_work *w, const struct expect_side *to, const struct addr *src,
		      size_t n_src, const struct addr *dst, size_t n_dst, size_t max)
{
	size_t pairs = n_src * n_dst;

	for (size_t k = 0; k < pairs && k < max; k++) {
		if (pairs <= max)
			add_packet(w, to, &src[k / n_dst], &dst[k % n_dst]);
		else
			add_packet(w, to, &src[k % n_src], &dst[(k + k / n_src) % n_dst]);
	}
}

static void add_ip(struct expect_work *w)
{
	struct expect_side *from = mem_new(struct expect_side), *to = mem_new(struct expect_side);
	size_t max = POLICY_EXPECT_PAIRS, pairs4, pairs6;

	pick_side(w, &w->ast->packet.from, from);
	pick_side(w, &w->ast->packet.to, to);
	pairs4 = from->n4 * to->n4;
	pairs6 = from->n6 * to->n6;
	// One family takes the room that the other does not need.
	if (pairs4 && pairs6)
		max = pairs6 < max / 2 ? max - pairs6 : max / 2;
	add_pairs(w, to, from->v4, from->n4, to->v4, to->n4, max);
	add_pairs(w, to, from->v6, from->n6, to->v6, to->n6, POLICY_EXPECT_PAIRS - w->packets.n);
	if (!w->packets.n && !from->broken && !to->broken && (from->n4 || from->n6) &&
	    (to->n4 || to->n6))
		report_empty(
			w->r, w->ast->packet.at, from, to,
			"no packet is possible: the addresses share no family, or the family lacks this type");
	free(from);
	free(to);
}

static uint32_t *positions(const struct resolved *r)
{
	uint32_t *position = mem_zalloc(r->n_rules, sizeof(*position));

	for (size_t i = 0; i < r->n_rules; i++)
		position[r->rules[i].text_index] = (uint32_t)i;
	return position;
}

// The verdict and the reason of the line.
static void fill_wish(struct resolver *r, const struct ast_expect *a, const uint32_t *position,
		      struct resolved_expect *to)
{
	to->at = a->at;
	to->place = resolve_at(r, a->at, a->line);
	to->verdict = a->verdict;
	to->via = a->via;
	if (a->verdict == EXPECT_REDIRECT)
		to->redirect = arena_strdup(&r->r->memory, a->target);
	if (a->verdict == EXPECT_SERVICE)
		to->service = index_find(&r->ast->service_index, a->target);
	to->answer = a->answer;
	if (a->via == VIA_RULE)
		to->rule = position[ast_find_rule(r->ast, a->rule)];
}

void resolve_expects(struct resolver *r)
{
	CLEANUP_FREE uint32_t *position = positions(r->r);

	r->r->n_expects = r->ast->expects.n;
	r->r->expects = arena_zalloc(&r->r->memory, r->r->n_expects, sizeof(*r->r->expects));
	for (size_t i = 0; i < r->ast->expects.n; i++) {
		struct resolved_expect *to = &r->r->expects[i];
		struct expect_work w = {.r = r, .ast = &r->ast->expects.at[i], .to = to};

		if (w.ast->broken || !resolve_packet(r, w.ast, &w.common))
			continue;
		fill_wish(r, w.ast, position, to);
		if (w.common.ip)
			add_ip(&w);
		else
			vec_push(&w.packets, w.common);
		to->n_packets = w.packets.n;
		to->packets =
			arena_copy(&r->r->memory, w.packets.at, w.packets.n, sizeof(*w.packets.at));
		vec_free(&w.packets);
	}
}
