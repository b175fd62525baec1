// SPDX-License-Identifier: GPL-2.0-only
// Checks the addresses of services that translate: one family, single VIPs, and sources that are no
// end of another connection.

#include "common/limits-policy.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/resolver.h"

struct nat_check {
	struct resolver *r;
	const struct ast_service *ast;
	const struct resolved_service *s;
	uint8_t family; // its VIPs have it
};

static void fail(const struct nat_check *k, struct diag_at at, const char *hint, const char *what)
{
	diag_error(k->r->diag, at, hint, "service '%s': %s", k->s->name, what);
}

static const struct resolved_addresses *vip_of(const struct nat_check *k)
{
	return &k->r->addresses.at[k->s->vip];
}

// ---- VIPs ---------------------------------------------------------------------------------------

static bool is_prefix(const struct ast_item *item)
{
	struct prefix p;

	return item->kind == AST_WORD &&
	       !prefix_parse_quiet(item->word, strlen(item->word), &p, NULL) && !prefix_is_host(&p);
}

static address_number count_vips(const struct resolved_addresses *vip, uint8_t family)
{
	struct intervals all = {0};
	address_number n = 0;

	intervals_of(vip, family, &all);
	for (size_t i = 0; i < all.n && n <= POLICY_NAT_VIPS; i++)
		n += all.at[i].last - all.at[i].first + 1;
	intervals_free(&all);
	return n;
}

static void check_vips(struct nat_check *k)
{
	address_number n4 = count_vips(vip_of(k), 4), n6 = count_vips(vip_of(k), 6);
	struct leaves leaves = {0};

	k->family = n4 ? 4 : 6;
	expand(&k->r->expander, &k->ast->vip, POLICY_LIST_ITEMS, NULL, &leaves);
	vec_each (&leaves.all, leaf)
		if (is_prefix(leaf->item))
			fail(k, leaf->item->at, "write each address",
			     "in this mode a vip is a single address");
	leaves_free(&leaves);
	if (n4 && n6)
		fail(k, k->ast->vip.at, "a service for each family",
		     "in this mode its VIPs must be of one family");
	else if (n4 + n6 > POLICY_NAT_VIPS)
		fail(k, k->ast->vip.at, "divide it into two services", "it has more than 256 VIPs");
}

static bool is_vip(const struct nat_check *k, const struct addr *a)
{
	for (size_t i = 0; i < k->r->r->n_services; i++)
		if (resolved_contains(&k->r->addresses.at[k->r->r->services[i].vip], a, NULL))
			return true;
	return false;
}

// The checksum of SCTP covers the whole packet, so its ports stay as they are.
static bool moves_sctp(const struct nat_check *k, const struct resolved_backend *b)
{
	const struct resolved_ranges *vip = &k->s->ports;

	return bits_has(k->s->proto.bits, PROTO_SCTP) && b->port &&
	       !(vip->n == 1 && vip->at[0].first == b->port && vip->at[0].last == b->port);
}

static void warn_own(const struct nat_check *k, const struct resolved_backend *b)
{
	addr_text text;
	size_t n;
	const struct addr *own = resolve_own(k->r, b->at, &n);

	for (size_t i = 0; i < n; i++)
		if (!addr_compare(&own[i], &b->addr))
			diag_warning(k->r->diag, b->at, "a backend of mode nat is another host",
				     "service '%s': %s is this host: in this mode it cannot be a "
				     "backend",
				     k->s->name, addr_format(&b->addr, text));
}

static void check_backend(const struct nat_check *k, const struct resolved_backend *b)
{
	if (b->here)
		fail(k, b->at, "write mode dr", "in this mode 'here' cannot be a backend");
	else if (b->addr.family != k->family)
		fail(k, b->at, "the same family: this mode does not change it",
		     "a backend and its VIP are of different families");
	else if (is_vip(k, &b->addr))
		fail(k, b->at, "the address of a server", "a VIP cannot be a backend");
	else if (moves_sctp(k, b))
		fail(k, b->at, "leave out 'port', or write a service of its own for sctp",
		     "in sctp a backend cannot have another port");
	else
		warn_own(k, b);
}

static void check_backends(const struct nat_check *k)
{
	for (size_t i = 0; i < k->s->n_backends; i++)
		check_backend(k, &k->s->backends[i]);
}

// ---- sources ------------------------------------------------------------------------------------

// Whether an address of the prefix, which has at most 64, is one of these.
static bool has_vip(const struct prefix *p, const struct resolved_addresses *vip)
{
	struct addr a = p->addr;
	uint8_t *last = &a.bytes[addr_bits(&a) / 8 - 1];

	for (unsigned n = 1u << (addr_bits(&a) - p->len); n; n--, (*last)++)
		if (resolved_contains(vip, &a, NULL))
			return true;
	return false;
}

static bool has_backend(const struct prefix *p, const struct resolved_service *s)
{
	for (size_t i = 0; i < s->n_backends; i++) {
		struct prefix one;

		if (s->backends[i].here)
			continue;
		one = prefix_of(&s->backends[i].addr, (uint8_t)addr_bits(&s->backends[i].addr));
		if (prefix_contains(p, &one))
			return true;
	}
	return false;
}

static const char *problem_of(const struct nat_check *k, const struct prefix *p)
{
	for (size_t i = 0; i < k->r->r->n_services; i++) {
		const struct resolved_service *other = &k->r->r->services[i];

		if (has_vip(p, &k->r->addresses.at[other->vip]))
			return "a VIP cannot be a source";
		if (has_backend(p, other))
			return "a backend cannot be a source";
	}
	return NULL;
}

static bool is_earlier(const struct resolved_service *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (prefix_overlaps(&s->source[i], &s->source[n]))
			return true;
	return false;
}

static bool is_wide(const struct prefix *p)
{
	return addr_bits(&p->addr) - p->len > POLICY_NAT_SOURCE_BITS;
}

// Whether each address of the prefix is a source of the service.
static bool is_within(const struct prefix *p, const struct resolved_service *s)
{
	struct prefix one = *p;
	uint8_t *last = &one.addr.bytes[addr_bits(&p->addr) / 8 - 1];
	bool within = true;

	one.len = (uint8_t)addr_bits(&p->addr);
	if (is_wide(p))
		return true; // an error already
	for (unsigned n = 1u << (one.len - p->len); n && within; n--, (*last)++) {
		within = false;
		for (size_t i = 0; i < s->n_source; i++)
			within |= prefix_contains(&s->source[i], &one);
	}
	return within;
}

static bool same_sources(const struct resolved_service *a, const struct resolved_service *b)
{
	for (size_t i = 0; i < a->n_source; i++)
		if (!is_within(&a->source[i], b))
			return false;
	for (size_t i = 0; i < b->n_source; i++)
		if (!is_within(&b->source[i], a))
			return false;
	return true;
}

// Connections take their places in the blocks of all sources.
static void check_shared(const struct nat_check *k)
{
	for (const struct resolved_service *s = k->r->r->services; s < k->s; s++) {
		if (!(service_mode_does(s->mode) & MODE_NAT) ||
		    !(service_mode_does(s->mode) & MODE_SOURCE) || !s->n_source ||
		    s->source[0].addr.family != k->family || same_sources(s, k->s))
			continue;
		diag_error(k->r->diag, k->ast->option_at[AST_SOURCE],
			   "the same addresses in each: define them once, and write source $NAME",
			   "service '%s': its sources differ from service '%s': the services "
			   "of mode fullnat in a family share them",
			   k->s->name, s->name);
		return;
	}
}

static void check_sources(const struct nat_check *k)
{
	bool good = true;

	for (size_t i = 0; i < k->s->n_source; i++) {
		const struct prefix *p = &k->s->source[i];
		const char *problem = NULL, *hint = "source ADDRESS, of the family of the vip";

		if (p->addr.family != k->family) {
			problem = "a source must be of the family of its VIP";
		} else if (!addr_is_remote(&p->addr)) {
			problem = "no other host can send to this address";
			hint = "an address of this host for this purpose only";
		} else if (is_wide(p)) {
			problem = "a prefix of sources has at most 64 addresses";
			hint = "a /26 (IPv6: /122) or longer, or several";
		} else if (is_earlier(k->s, i)) {
			problem = "duplicate source";
			hint = "write each address once";
		} else {
			problem = problem_of(k, p);
			hint = "an address of this host for this purpose only";
		}
		if (problem)
			fail(k, k->s->source_at[i], hint, problem);
		good = good && !problem;
	}
	if (good)
		check_shared(k);
}

static void check_protos(const struct nat_check *k)
{
	if (k->s->mode == SERVICE_FULLNAT && bits_has(k->s->proto.bits, PROTO_SCTP))
		fail(k, k->ast->proto.at, "write mode nat, or proto tcp, udp",
		     "mode fullnat is for tcp and udp");
}

void resolve_nat(struct resolver *r)
{
	for (size_t i = 0; i < r->r->n_services; i++) {
		struct nat_check k = {
			.r = r, .ast = &r->ast->services.at[i], .s = &r->r->services[i]};

		if (!(service_mode_does(k.s->mode) & MODE_NAT))
			continue;
		check_vips(&k);
		check_backends(&k);
		check_protos(&k);
		if (service_mode_does(k.s->mode) & MODE_SOURCE)
			check_sources(&k);
	}
}
