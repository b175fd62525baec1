// SPDX-License-Identifier: GPL-2.0-only
// Leaves protected addresses out of an answer before drop and reject rules get it.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/environment.h"

// Whether the login can be found is for control/lockout.
static int collect(struct environment *w, struct err *err)
{
	struct session login = w->session ? *w->session : (struct session){0};
	int code;

	login.error = 0;
	if ((code = guard_collect(w->session ? &login : NULL, &w->dns, &w->guard, err)))
		return code;
	return guard_add_logins(&w->guard, GUARD_NAME, err);
}

int environment_guard(struct environment *w, const struct guard **ret, struct err *err)
{
	struct err why = {0};
	int code = w->guard_collected ? 0 : collect(w, &why);

	*ret = &w->guard;
	if (code && w->must_guard) {
		*err = why;
		err_prefix(err, "cannot tell what must not be dropped by name");
		return code;
	}
	w->guard_collected = true;
	return 0;
}

bool environment_refuses(enum policy_use use, const struct dns_answer *answer,
			 const struct guard *g)
{
	for (size_t n = 0; n < answer->n; n++) {
		const struct addr *a = &answer->addrs[n];

		if (use == POLICY_DROPPED ? !guard_answer_problem(g, a, false)
					  : !addr_is_unspecified(a) && !addr_is_loopback(a))
			return false;
	}
	return true;
}

static int compare_addrs(const void *a, const void *b)
{
	return addr_compare(a, b);
}

static bool has(const struct environment_addrs *addrs, const struct addr *a)
{
	return addrs->n && bsearch(a, addrs->at, addrs->n, sizeof(*addrs->at), compare_addrs);
}

bool environment_leaves_out(const struct environment_name *name, const struct addr *a)
{
	return has(&name->left_out, a);
}

// An address that leaves stays excluded if it was before: it may have exceeded the limit.
static struct environment_addrs find_left_out(const struct environment_name *name,
					      const struct guard *g)
{
	struct guard_sieve sieve = {.guard = g};
	struct environment_addrs found = {0};

	for (size_t n = 0; n < name->n; n++)
		if (guard_sift(&sieve, &name->addrs[n]))
			vec_push(&found, name->addrs[n]);
	vec_each (&name->leaving, one)
		if (has(&name->left_out, &one->addr) || guard_answer_problem(g, &one->addr, false))
			vec_push(&found, one->addr);
	if (found.n)
		qsort(found.at, found.n, sizeof(*found.at), compare_addrs);
	return found;
}

size_t environment_protect(struct environment_name *name, const struct guard *g)
{
	struct environment_addrs found = find_left_out(name, g);
	size_t changed = 0;

	vec_each (&found, a)
		changed += !has(&name->left_out, a);
	vec_each (&name->left_out, a)
		changed += !has(&found, a);
	vec_free(&name->left_out);
	name->left_out = found;
	return changed;
}

void environment_give_left_out(const struct environment_name *name, const struct guard *g,
			       struct policy_answer *answer)
{
	answer->left_out = mem_zalloc(name->left_out.n, sizeof(*answer->left_out));
	vec_each (&name->left_out, a) {
		const char *why = g ? guard_answer_problem(g, a, false) : "";
		struct policy_left_out *one = &answer->left_out[answer->n_left_out++];

		one->addr = *a;
		snprintf(one->why, sizeof(one->why), "%s",
			 why ? why : "more than 256 addresses for one name");
	}
}
