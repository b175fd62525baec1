// SPDX-License-Identifier: GPL-2.0-only
// Resolves ports; the file with their names is read when the first name is met.
#include <errno.h>
#include <stdlib.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/policy/resolver.h"

#define SERVICES_BYTES (4u << 20)

static bool has_names(struct resolver *r, const struct ast_list *list)
{
	struct leaves leaves = {0};
	bool found = false;

	expand(&r->expander, list, POLICY_LIST_ITEMS, NULL, &leaves);
	vec_each (&leaves.all, leaf)
		found = found || leaf->item->word[0] < '0' || leaf->item->word[0] > '9';
	leaves_free(&leaves);
	return found;
}

static void read_services(struct resolver *r, struct diag_at at)
{
	const struct source_reader *files = r->env->files ? r->env->files : &source_system;
	CLEANUP_FREE char *text = NULL;
	struct err err = {0};
	size_t len = 0;

	if (r->services_read)
		return;
	r->services_read = true;
	r->services.path = r->env->services ? r->env->services : "/etc/services";
	if (files->read(files->ctx, r->services.path, SERVICES_BYTES, &text, &len, &err) < 0) {
		diag_error(r->diag, at, err.hint[0] ? err.hint : NULL, "%s", err.text);
		r->services_failed = true;
		return;
	}
	services_read(&r->services, text, len);
}

int resolve_ports(struct resolver *r, const struct ast_list *list, struct diag_at use,
		  const uint64_t protos[4], struct resolved_ranges *ret)
{
	struct value v = {.diag = r->diag,
			  .expander = &r->expander,
			  .r = r->r,
			  .use = use,
			  .protos = protos,
			  .services = &r->services};
	struct ranges ranges = {0};
	int code;

	if (has_names(r, list))
		read_services(r, list->at);
	if (r->services_failed)
		return -EINVAL;
	code = value_ranges(&v, &domain_port, list, &ranges);
	ret->given = true;
	ret->n = ranges.n;
	ret->at = arena_copy(&r->r->memory, ranges.at, ranges.n, sizeof(*ranges.at));
	ranges_free(&ranges);
	return code;
}
