// SPDX-License-Identifier: GPL-2.0-only
// Has all feeds of a policy fetched at once.
#include "ctl/policy/resolver.h"
#include "ctl/policy/urls.h"

void resolve_urls(struct resolver *r)
{
	CLEANUP_VEC struct policy_urls urls = {0};
	CLEANUP_VEC VEC(struct policy_url) all = {0};

	policy_urls(r->ast, r->diag, &urls);
	vec_each (&urls, one)
		vec_push(&all, one->url);
	r->feeds_left_out = diag_errors(r->diag);
	if (all.n && r->env->fetch && !r->feeds_left_out)
		r->env->fetch(r->env->ctx, all.at, all.n);
}
