// SPDX-License-Identifier: GPL-2.0-only
// Resolves countries and autonomous systems: collected over the whole policy, asked for at once.

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/policy/resolver.h"

uint32_t resolve_add_geo(struct resolver *r, const struct ast_item *item, const struct geo *geo)
{
	for (size_t i = 0; i < r->geos.n; i++)
		if (geo_equal(&r->geos.at[i].geo, geo))
			return (uint32_t)i;
	if (r->geos.n == POLICY_GEOS)
		diag_error(r->diag, item->at, NULL,
			   "more than %d countries and autonomous systems in one policy",
			   POLICY_GEOS);
	vec_push(&r->geos, ((struct geo_item){.geo = *geo, .at = item->at}));
	return (uint32_t)r->geos.n - 1;
}

static void take_ranges(struct resolver *r, struct geo_item *to, struct policy_ranges *answer)
{
	enum diag_level level = r->env->names_may_fail ? DIAG_WARNING : DIAG_ERROR;
	geo_text name;

	geo_format(&to->geo, name);
	to->prefixes = TAKE_PTR(answer->prefixes);
	to->n = answer->n;
	to->failed = !answer->n;
	if (to->failed)
		diag_add(r->diag, level, to->at, NULL, "%s", answer->why);
	else if (answer->stale)
		diag_warning(r->diag, to->at, NULL, "%s: the last good answer for '%s' is used",
			     answer->why, name);
}

static void fail_all(struct resolver *r, const char *hint, const char *why)
{
	diag_error(r->diag, r->geos.at[0].at, hint, "%s", why);
	vec_each (&r->geos, geo)
		geo->failed = true;
}

void resolve_geos(struct resolver *r)
{
	size_t n = r->geos.n;
	CLEANUP_FREE struct geo *wanted = mem_zalloc(n, sizeof(*wanted));
	CLEANUP_FREE struct policy_ranges *answers = mem_zalloc(n, sizeof(*answers));
	struct err err = {0};

	if (!n || n > POLICY_GEOS)
		return;
	for (size_t i = 0; i < n; i++)
		wanted[i] = r->geos.at[i].geo;
	if (!r->env->ranges)
		return fail_all(r, NULL, "there is no database of countries here");
	if (r->env->ranges(r->env->ctx, wanted, n, answers, &err))
		return fail_all(r, err.hint[0] ? err.hint : NULL, err.text);
	for (size_t i = 0; i < n; i++)
		take_ranges(r, &r->geos.at[i], &answers[i]);
}
