// SPDX-License-Identifier: GPL-2.0-only
// Compares the sizes of two policies.
#include "ctl/control/shrink.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"

struct policy_size policy_size(const struct resolved *r)
{
	struct policy_size size = {
		.rules = r->n_rules - r->n_quick,
		.services = r->n_services,
		.drops = !r->n_interfaces && r->default_drop,
	};

	for (size_t n = 0; n < r->n_interfaces; n++)
		size.drops |= r->interfaces[n].default_drop;
	return size;
}

enum shrink shrink_of(const struct policy_size *before, const struct policy_size *now)
{
	if (before->rules >= SHRINK_RULES_MIN && now->rules <= before->rules / 2)
		return SHRINK_RULES;
	if (before->services && !now->services)
		return SHRINK_SERVICES;
	return before->drops && !now->drops ? SHRINK_DROPS : SHRINK_NONE;
}

// "3 rules, the active policy 40".
static char *describe(enum shrink lost, const struct policy_size *before,
		      const struct policy_size *now, const char *which)
{
	if (lost == SHRINK_RULES)
		return mem_printf("%zu %s, the %s policy %zu", now->rules,
				  num_plural(now->rules, "rule", "rules"), which, before->rules);
	if (lost == SHRINK_SERVICES)
		return mem_printf("no service, the %s policy %zu", which, before->services);
	return mem_printf("no 'default drop', the %s policy has one", which);
}

int shrink_refuse(const struct policy_size *before, const struct policy_size *now, const char *path,
		  const char *which, const char *instance, struct err *err)
{
	enum shrink lost = shrink_of(before, now);
	CLEANUP_FREE char *what = NULL;
	const char *name = strrchr(path, '/');
	bool other = strcmp(instance, "main") != 0;

	if (!lost)
		return 0;
	what = describe(lost, before, now, which);
	return err_refused(err, "%s has %s: 'weir %s%s%sapply %s' applies it",
			   name ? name + 1 : path, what, other ? "-n " : "", other ? instance : "",
			   other ? " " : "", path);
}
