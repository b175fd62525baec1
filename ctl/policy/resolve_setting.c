// SPDX-License-Identifier: GPL-2.0-only
// Resolves interfaces, defaults, fragments, settings that are allowed once, and sets.
#include <errno.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/policy/resolver.h"

// ---- interfaces ---------------------------------------------------------------------------------

static struct resolved_interface *find_interface(struct resolver *r, const char *name)
{
	for (size_t i = 0; i < r->r->n_interfaces; i++)
		if (!strcmp(r->r->interfaces[i].name, name))
			return &r->r->interfaces[i];
	return NULL;
}

// Named again: a union, unless the two have different modes.
static void merge_interface(struct resolver *r, const struct ast_interface *iface,
			    struct resolved_interface *known)
{
	if (iface->mode != known->mode)
		diag_error(r->diag, iface->at, NULL, "'%s' already has a different mode (%s)",
			   iface->name, diag_place(r->diag, known->at, false));
	known->optional = known->optional && iface->optional;
}

static void add_interface(struct resolver *r, const struct ast_interface *iface)
{
	struct resolved_interface *known = find_interface(r, iface->name);

	if (known) {
		merge_interface(r, iface, known);
		return;
	}
	if (r->r->n_interfaces == POLICY_INTERFACES) {
		diag_error(r->diag, iface->at, NULL, "more than %d interfaces", POLICY_INTERFACES);
		return;
	}
	r->r->interfaces[r->r->n_interfaces++] = (struct resolved_interface){
		.name = arena_strdup(&r->r->memory, iface->name),
		.at = iface->at,
		.place = resolve_at(r, iface->at, iface->line),
		.mode = iface->mode,
		.pattern = strchr(iface->name, '*'),
		.optional = iface->optional,
	};
}

static void set_default(struct resolver *r, struct resolved_interface *iface,
			const struct ast_default *d)
{
	iface->default_drop = d->drop;
	iface->default_at = d->at;
	iface->default_place = resolve_at(r, d->at, d->line);
}

// "default … on a, b"
static void add_named_default(struct resolver *r, const struct ast_default *d)
{
	vec_each (&d->on.items, item) {
		struct resolved_interface *iface = find_interface(r, item->word);

		if (!iface)
			diag_error(r->diag, item->at, "'interface' lists them",
				   "'%s' is not an interface of this policy", item->word);
		else if (iface->default_at.file)
			diag_error(r->diag, item->at, NULL, "'%s' already has a default (%s)",
				   item->word, diag_place(r->diag, iface->default_at, false));
		else
			set_default(r, iface, d);
	}
}

static void read_defaults(struct resolver *r)
{
	const struct ast_default *rest = NULL;

	vec_each (&r->ast->defaults, d) {
		if (d->on.given) {
			add_named_default(r, d);
			continue;
		}
		if (rest)
			diag_error(r->diag, d->at, NULL, "duplicate default (the first is at %s)",
				   diag_place(r->diag, rest->at, false));
		rest = rest ? rest : d;
	}
	if (!rest)
		return;
	r->r->default_drop = rest->drop;
	r->r->default_at = rest->at;
	for (size_t i = 0; i < r->r->n_interfaces; i++)
		if (!r->r->interfaces[i].default_at.file)
			set_default(r, &r->r->interfaces[i], rest);
}

static void read_interfaces(struct resolver *r)
{
	size_t n =
		r->ast->interfaces.n < POLICY_INTERFACES ? r->ast->interfaces.n : POLICY_INTERFACES;

	r->r->interfaces = arena_zalloc(&r->r->memory, n, sizeof(*r->r->interfaces));
	vec_each (&r->ast->interfaces, iface)
		add_interface(r, iface);
	read_defaults(r);
}

// ---- fragments and the rest ---------------------------------------------------------------------

static void add_fragments(struct resolver *r, const struct ast_fragments *f,
			  const struct ast_fragments *owners[256])
{
	struct value v = resolve_value(r, f->at);
	uint64_t bits[4] = {0};
	bool said = false;

	if (value_bits(&v, &domain_proto, &f->proto, bits) < 0)
		return;
	for (unsigned proto = 0; proto < 256; proto++) {
		if (!bits_has(bits, proto))
			continue;
		if (owners[proto] && !said)
			diag_error(
				r->diag, f->at, NULL,
				"duplicate 'fragments' for one of these protocols (the first is at %s)",
				diag_place(r->diag, owners[proto]->at, false));
		said = said || owners[proto];
		owners[proto] = f;
	}
}

static void read_fragments(struct resolver *r)
{
	const struct ast_fragments *owners[256] = {0}, *rest = NULL;

	vec_each (&r->ast->fragments, f) {
		if (f->proto.given)
			add_fragments(r, f, owners);
		else if (rest)
			diag_error(r->diag, f->at, NULL,
				   "duplicate 'fragments' (the first is at %s)",
				   diag_place(r->diag, rest->at, false));
		else
			rest = f;
	}
	for (unsigned proto = 0; proto < 256; proto++) {
		const struct ast_fragments *f = owners[proto] ? owners[proto] : rest;

		if (!f)
			continue;
		r->r->fragments[proto] = f->treatment;
		r->r->fragments_place[proto] = resolve_at(r, f->at, f->line);
	}
}

// ---- sets ---------------------------------------------------------------------------------------

static void add_dynamic(struct resolver *r, const struct ast_set *set)
{
	if (r->r->n_dynamics == POLICY_DYNAMIC) {
		diag_error(r->diag, set->at, NULL, "more than %d dynamic sets", POLICY_DYNAMIC);
		return;
	}
	r->r->dynamics[r->r->n_dynamics++] = (struct resolved_dynamic){
		.name = arena_strdup(&r->r->memory, set->name),
		.at = set->at,
		.place = resolve_at(r, set->at, set->line),
		.max = set->has_max ? set->max : POLICY_RATE_DEFAULT,
		.expire_ms = set->expire_ms,
		.mask4 = set->has_mask ? set->mask4 : 32,
		.mask6 = set->has_mask ? set->mask6 : 128,
		.count = set->count,
	};
}

static void read_dynamics(struct resolver *r)
{
	r->r->dynamics = arena_zalloc(&r->r->memory, POLICY_DYNAMIC, sizeof(*r->r->dynamics));
	vec_each (&r->ast->sets, set)
		if (set->dynamic)
			add_dynamic(r, set);
}

void resolve_settings(struct resolver *r)
{
	const struct ast *ast = r->ast;

	read_interfaces(r);
	r->r->malformed_pass = ast->malformed.given && !ast->malformed.on;
	r->r->essentials_filter = ast->essentials.given && !ast->essentials.on;
	r->r->seed = arena_strdup(&r->r->memory, ast->seed.text);
	read_fragments(r);
	read_dynamics(r);
}
