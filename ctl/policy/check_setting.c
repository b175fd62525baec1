// SPDX-License-Identifier: GPL-2.0-only
// Checks interfaces, defaults, fragments, settings that are allowed once, and sets.
#include <errno.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/policy/checker.h"

// ---- interfaces ---------------------------------------------------------------------------------

static struct resolved_interface *find_interface(struct checker *c, const char *name)
{
	for (size_t i = 0; i < c->r->n_interfaces; i++)
		if (!strcmp(c->r->interfaces[i].name, name))
			return &c->r->interfaces[i];
	return NULL;
}

// Named again: a union, unless the two say different things.
static void merge_interface(struct checker *c, const struct ast_interface *iface,
			    struct resolved_interface *known)
{
	if (iface->mode != known->mode)
		diag_error(c->diag, iface->at, NULL, "'%s' has another mode already (%s)",
			   iface->name, diag_place(c->diag, known->at, false));
	known->optional = known->optional && iface->optional;
}

static void add_interface(struct checker *c, const struct ast_interface *iface)
{
	struct resolved_interface *known = find_interface(c, iface->name);

	if (known) {
		merge_interface(c, iface, known);
		return;
	}
	if (c->r->n_interfaces == POLICY_INTERFACES) {
		diag_error(c->diag, iface->at, NULL, "more than %d interfaces", POLICY_INTERFACES);
		return;
	}
	c->r->interfaces[c->r->n_interfaces++] = (struct resolved_interface){
		.name = arena_strdup(&c->r->memory, iface->name),
		.at = iface->at,
		.place = check_place(c, iface->at, iface->line),
		.mode = iface->mode,
		.pattern = strchr(iface->name, '*'),
		.optional = iface->optional,
	};
}

static void set_default(struct checker *c, struct resolved_interface *iface,
			const struct ast_default *d)
{
	iface->default_drop = d->drop;
	iface->default_at = d->at;
	iface->default_place = check_place(c, d->at, d->line);
}

// "default … on a, b"
static void add_named_default(struct checker *c, const struct ast_default *d)
{
	vec_each (&d->on.items, item) {
		struct resolved_interface *iface = find_interface(c, item->word);

		if (!iface)
			diag_error(c->diag, item->at, "'interface' lists them",
				   "'%s' is not an interface of this policy", item->word);
		else if (iface->default_at.file)
			diag_error(c->diag, item->at, NULL, "'%s' has a default already (%s)",
				   item->word, diag_place(c->diag, iface->default_at, false));
		else
			set_default(c, iface, d);
	}
}

static void check_defaults(struct checker *c)
{
	const struct ast_default *rest = NULL;

	vec_each (&c->ast->defaults, d) {
		if (d->on.given) {
			add_named_default(c, d);
			continue;
		}
		if (rest)
			diag_error(c->diag, d->at, NULL, "the default is there already (%s)",
				   diag_place(c->diag, rest->at, false));
		rest = rest ? rest : d;
	}
	if (!rest)
		return;
	c->r->default_drop = rest->drop;
	c->r->default_at = rest->at;
	for (size_t i = 0; i < c->r->n_interfaces; i++)
		if (!c->r->interfaces[i].default_at.file)
			set_default(c, &c->r->interfaces[i], rest);
}

void check_interfaces(struct checker *c)
{
	size_t n =
		c->ast->interfaces.n < POLICY_INTERFACES ? c->ast->interfaces.n : POLICY_INTERFACES;

	c->r->interfaces = arena_zalloc(&c->r->memory, n, sizeof(*c->r->interfaces));
	vec_each (&c->ast->interfaces, iface)
		add_interface(c, iface);
	check_defaults(c);
}

// ---- fragments and the rest ---------------------------------------------------------------------

static void add_fragments(struct checker *c, const struct ast_fragments *f,
			  const struct ast_fragments *owners[256])
{
	struct value v = check_value(c, f->at);
	uint64_t bits[4] = {0};
	bool said = false;

	if (value_bits(&v, &domain_proto, &f->proto, bits) < 0)
		return;
	for (unsigned proto = 0; proto < 256; proto++) {
		if (!bits_has(bits, proto))
			continue;
		if (owners[proto] && !said)
			diag_error(c->diag, f->at, NULL,
				   "'fragments' is there already for one of these protocols (%s)",
				   diag_place(c->diag, owners[proto]->at, false));
		said = said || owners[proto];
		owners[proto] = f;
	}
}

static void check_fragments(struct checker *c)
{
	const struct ast_fragments *owners[256] = {0}, *rest = NULL;

	vec_each (&c->ast->fragments, f) {
		if (f->proto.given)
			add_fragments(c, f, owners);
		else if (rest)
			diag_error(c->diag, f->at, NULL, "'fragments' is there already (%s)",
				   diag_place(c->diag, rest->at, false));
		else
			rest = f;
	}
	for (unsigned proto = 0; proto < 256; proto++) {
		const struct ast_fragments *f = owners[proto] ? owners[proto] : rest;

		if (!f)
			continue;
		c->r->fragments[proto] = f->treatment;
		c->r->fragments_place[proto] = check_place(c, f->at, f->line);
	}
}

void check_settings(struct checker *c)
{
	const struct ast *ast = c->ast;

	c->r->malformed_pass = ast->malformed.given && !ast->malformed.on;
	c->r->essentials_filter = ast->essentials.given && !ast->essentials.on;
	c->r->seed = arena_strdup(&c->r->memory, ast->seed.text);
	check_fragments(c);
}

// ---- sets ---------------------------------------------------------------------------------------

static void add_dynamic(struct checker *c, const struct ast_set *set)
{
	if (c->r->n_dynamics == POLICY_DYNAMIC) {
		diag_error(c->diag, set->at, NULL, "more than %d dynamic sets", POLICY_DYNAMIC);
		return;
	}
	c->r->dynamics[c->r->n_dynamics++] = (struct resolved_dynamic){
		.name = arena_strdup(&c->r->memory, set->name),
		.at = set->at,
		.place = check_place(c, set->at, set->line),
		.max = set->has_max ? set->max : POLICY_RATE_DEFAULT,
		.expire_ms = set->expire_ms,
		.mask4 = set->has_mask ? set->mask4 : 32,
		.mask6 = set->has_mask ? set->mask6 : 128,
	};
}

void check_sets(struct checker *c)
{
	c->r->dynamics = arena_zalloc(&c->r->memory, POLICY_DYNAMIC, sizeof(*c->r->dynamics));
	vec_each (&c->ast->sets, set) {
		if (set->dynamic)
			add_dynamic(c, set);
		else
			check_addresses(c, &set->elements, SIDE_SET);
	}
}
