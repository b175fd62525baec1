// SPDX-License-Identifier: GPL-2.0-only
// The order in which values are found: names and files, sets, services, rules, expectations.
#include "ctl/policy/resolve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/check.h"
#include "ctl/policy/parse.h"
#include "ctl/policy/resolver.h"
#include "ctl/policy/shadow.h"

static void add_policy_files(struct resolver *r)
{
	vec_each (&r->ast->files, file)
		vec_push(&r->files, ((struct resolved_file){
					    .name = arena_strdup(&r->r->memory, (*file)->name)}));
}

static void keep_names(struct resolver *r)
{
	struct resolved *to = r->r;

	to->n_names = r->hosts.n;
	to->names = arena_zalloc(&to->memory, r->hosts.n, sizeof(*to->names));
	for (size_t i = 0; i < r->hosts.n; i++) {
		const struct host *h = &r->hosts.at[i];

		to->names[i] = (struct resolved_name){
			.name = arena_strdup(&to->memory, h->name),
			.place = h->place,
			.addrs = arena_copy(&to->memory, h->addrs, h->n, sizeof(*h->addrs)),
			.n = h->n,
			.ttl_s = h->ttl_s,
			.stale = h->stale,
		};
	}
}

static void keep_lists(struct resolver *r)
{
	struct resolved *to = r->r;

	to->n_files = r->files.n;
	to->files = arena_copy(&to->memory, r->files.at, r->files.n, sizeof(*to->files));
	to->n_addresses = r->addresses.n;
	to->addresses =
		arena_copy(&to->memory, r->addresses.at, r->addresses.n, sizeof(*to->addresses));
	to->n_pairs = r->pairs.n;
	to->pairs = arena_copy(&to->memory, r->pairs.at, r->pairs.n, sizeof(*to->pairs));
	to->n_macs = r->macs.n;
	to->macs = arena_copy(&to->memory, r->macs.at, r->macs.n, sizeof(*to->macs));
}

static void free_resolver(struct resolver *r)
{
	vec_each (&r->lists, file)
		list_free(&file->list);
	vec_each (&r->hosts, host) {
		free(host->addrs);
		free(host->open);
	}
	vec_each (&r->geos, geo)
		free(geo->prefixes);
	free(r->own);
	for (size_t i = 0; r->sets && i < r->ast->sets.n; i++) {
		cidr_free(&r->sets[i].whole);
		cidr_free(&r->sets[i].open);
	}
	free(r->sets);
	vec_free(&r->lists);
	vec_free(&r->hosts);
	vec_free(&r->geos);
	vec_free(&r->addresses);
	vec_free(&r->macs);
	vec_free(&r->pairs);
	vec_free(&r->facts);
	vec_free(&r->files);
	vec_free(&r->items);
	index_free(&r->item_index);
	index_free(&r->list_index);
	index_free(&r->host_index);
	index_free(&r->address_index);
	services_free(&r->services);
	expander_free(&r->expander);
	arena_free(&r->scratch);
}

static struct resolved *resolve(struct ast *ast, const struct policy_env *env, struct diag *diag)
{
	CLEANUP_RESOLVED struct resolved *ret = mem_new(struct resolved);
	struct resolver r = {.ast = ast, .env = env, .diag = diag, .r = ret, .expander.ast = ast};

	add_policy_files(&r);
	resolve_settings(&r);
	resolve_urls(&r);
	resolve_collect(&r);
	resolve_uses(&r);
	resolve_hosts(&r);
	resolve_geos(&r);
	resolve_sets(&r);
	resolve_services(&r);
	resolve_rules(&r);
	resolve_expects(&r);
	keep_names(&r);
	keep_lists(&r);
	free_resolver(&r);
	if (!env->known)
		shadow_warn(ret, diag);
	return diag_errors(diag) ? NULL : TAKE_PTR(ret);
}

struct resolved *policy_load(const char *path, const struct policy_env *env,
			     const char *const *ifaces, size_t n_ifaces, struct diag *diag)
{
	CLEANUP_AST struct ast *ast =
		policy_parse(path, env->files ? env->files : &source_system, diag);

	policy_parse_quick(ast, env->quick, env->n_quick, diag);
	if (n_ifaces)
		ast_replace_interfaces(ast, ifaces, n_ifaces);
	policy_check(ast, env->may_be_empty, diag);
	return resolve(ast, env, diag);
}

void resolved_free(struct resolved *r)
{
	if (!r)
		return;
	arena_free(&r->memory);
	free(r);
}

void resolved_cleanup(struct resolved **r)
{
	resolved_free(*r);
}
