// SPDX-License-Identifier: GPL-2.0-only
// Resolves services: their addresses, ports and sources.

#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/addr_explain.h"
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
	VEC(struct diag_at) at = {0};

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
		else {
			vec_push(&all, p);
			vec_push(&at, leaf->item->at);
		}
	}
	to->n_source = all.n;
	to->source = arena_copy(&r->r->memory, all.at, all.n, sizeof(*all.at));
	to->source_at = arena_copy(&r->r->memory, at.at, at.n, sizeof(*at.at));
	vec_free(&all);
	vec_free(&at);
	leaves_free(&leaves);
}

// False: the service has an error.
static bool resolve_service(struct resolver *r, const struct ast_service *a,
			    struct resolved_service *to)
{
	bool good;

	if (a->broken)
		return false;
	good = resolve_options(r, a, to);
	if (!resolve_check(r, a, &to->check) || !good)
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
	if (broken || diag_errors(r->diag))
		return;
	resolve_overlaps(r);
	resolve_nat(r);
}
