// SPDX-License-Identifier: GPL-2.0-only
// Resolves services: their addresses, ports and sources; two services must not take the same
// packet.
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/ranges.h"
#include "ctl/policy/resolver.h"

static void resolve_vip(struct resolver *r, const struct ast_service *a,
			struct resolved_service *to)
{
	struct resolved_address vip = resolve_address(r, &a->vip, POLICY_WHOLE);

	to->vip = vip.index;
	if (vip.kind != RESOLVED_SET)
		diag_error(r->diag, a->vip.at, NULL, "service '%s': its vip is every address",
			   a->name);
	else if (r->addresses.at[vip.index].empty)
		diag_error(r->diag, a->vip.at, NULL, "service '%s': its vip has no address",
			   a->name);
}

// A service takes the packets of a host that owns its address, unless the host is one of its
// backends.
static void warn_own(struct resolver *r, const struct ast_service *a,
		     const struct resolved_service *s)
{
	const struct addr *own;
	size_t n;

	for (size_t i = 0; i < s->n_backends; i++)
		if (s->backends[i].here)
			return;
	own = resolve_own(r, a->vip.at, &n);
	for (size_t i = 0; i < n; i++) {
		addr_text text;

		if (!resolved_contains(&r->addresses.at[s->vip], &own[i], NULL))
			continue;
		diag_warning(
			r->diag, a->vip.at, "a balancer does not own the addresses of its services",
			"service '%s': %s is an address of this host, which no longer receives "
			"packets of the service",
			a->name, addr_format(&own[i], text));
	}
}

// The prefixes of `source`; check has refused items that are not addresses.
static void resolve_source(struct resolver *r, const struct ast_service *a,
			   struct resolved_service *to)
{
	struct leaves leaves = {0};
	VEC(struct prefix) all = {0};

	expand(&r->expander, &a->source, POLICY_LIST_ITEMS, NULL, &leaves);
	vec_each (&leaves.all, leaf) {
		struct err err = {0};
		struct prefix p;

		if (leaf->negated || leaves.negated)
			diag_error(r->diag, leaf->item->at, NULL, "'source' does not take 'not'");
		else if (prefix_parse(leaf->item->word, strlen(leaf->item->word), &p, NULL, &err) <
			 0)
			diag_error(r->diag, leaf->item->at, err.hint[0] ? err.hint : NULL, "%s",
				   err.text);
		else
			vec_push(&all, p);
	}
	to->n_source = all.n;
	to->source = arena_copy(&r->r->memory, all.at, all.n, sizeof(*all.at));
	vec_free(&all);
	leaves_free(&leaves);
}

static bool same_ports(const struct resolved_service *a, const struct resolved_service *b)
{
	return a->any_port || b->any_port ||
	       ranges_meet(a->ports.at, a->ports.n, b->ports.at, b->ports.n);
}

static bool same_protos(const struct resolved_service *a, const struct resolved_service *b)
{
	for (unsigned i = 0; i < 4; i++)
		if (a->proto.bits[i] & b->proto.bits[i])
			return true;
	return false;
}

struct vips {
	struct intervals v4, v6;
};

static void vips_of(const struct resolved_addresses *a, struct vips *ret)
{
	intervals_of(a, 4, &ret->v4);
	intervals_of(a, 6, &ret->v6);
}

static void vips_free(struct vips *v)
{
	intervals_free(&v->v4);
	intervals_free(&v->v6);
}

static bool vips_meet(const struct vips *a, const struct vips *b)
{
	return intervals_meet(&a->v4, &b->v4) || intervals_meet(&a->v6, &b->v6);
}

bool resolved_services_meet(const struct resolved *a, const struct resolved_service *s,
			    const struct resolved *b, const struct resolved_service *t)
{
	struct vips of_s = {0}, of_t = {0};
	bool meet;

	if (!same_protos(s, t) || !same_ports(s, t))
		return false;
	vips_of(&a->addresses[s->vip], &of_s);
	vips_of(&b->addresses[t->vip], &of_t);
	meet = vips_meet(&of_s, &of_t);
	vips_free(&of_s);
	vips_free(&of_t);
	return meet;
}

static void find_overlaps(struct resolver *r)
{
	size_t n = r->r->n_services;
	struct vips *vips = mem_zalloc(n, sizeof(*vips));
	const struct resolved_service *s = r->r->services;

	for (size_t i = 0; i < n; i++) {
		vips_of(&r->addresses.at[s[i].vip], &vips[i]);
		for (size_t j = 0; j < i; j++) {
			if (!same_protos(&s[i], &s[j]) || !same_ports(&s[i], &s[j]) ||
			    !vips_meet(&vips[i], &vips[j]))
				continue;
			diag_error(r->diag, s[i].at, NULL,
				   "service '%s' shares an address and port with service '%s' (%s)",
				   s[i].name, s[j].name, diag_place(r->diag, s[j].at, false));
			break;
		}
	}
	for (size_t i = 0; i < n; i++)
		vips_free(&vips[i]);
	free(vips);
}

// False: the service has an error.
static bool resolve_service(struct resolver *r, const struct ast_service *a,
			    struct resolved_service *to)
{
	if (a->broken || !resolve_options(r, a, to))
		return false;
	resolve_vip(r, a, to);
	warn_own(r, a, to);
	resolve_source(r, a, to);
	return a->any_port || resolve_ports(r, &a->port, a->option_at[AST_SERVICE_PORT],
					    to->proto.bits, &to->ports) == 0;
}

void resolve_services(struct resolver *r)
{
	size_t n = r->ast->services.n;
	bool broken = false;

	r->r->n_services = n;
	r->r->services = arena_zalloc(&r->r->memory, n, sizeof(*r->r->services));
	for (size_t i = 0; i < n; i++) {
		struct ast_service *a = &r->ast->services.at[i];
		struct resolved_service *to = &r->r->services[i];

		to->name = arena_strdup(&r->r->memory, a->name);
		to->at = a->at;
		to->place = resolve_at(r, a->at, a->line);
		a->broken = !resolve_service(r, a, to);
		broken = broken || a->broken;
	}
	if (!broken && !diag_errors(r->diag))
		find_overlaps(r);
}
