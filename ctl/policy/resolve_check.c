// SPDX-License-Identifier: GPL-2.0-only
// Resolves the check of a service, with the defaults of its times.

#include "common/limits-policy.h"
#include "ctl/policy/resolver.h"

#define EVERY_MS   2000
#define TIMEOUT_MS 1000
#define RISE       2
#define FALL       3
#define FALL_OF    10
#define TYPE_A     1

static void read_statuses(struct resolver *r, const struct ast_check *a, struct resolved_check *ret)
{
	static const struct range16 fine[] = {{200, 299}};
	struct range16 *statuses;

	if (!a->n_statuses) {
		ret->statuses = fine;
		ret->n_statuses = 1;
		return;
	}
	statuses = arena_zalloc(&r->r->memory, a->n_statuses, sizeof(*statuses));
	for (size_t i = 0; i < a->n_statuses; i++)
		statuses[i] = (struct range16){(uint16_t)a->statuses[i].first,
					       (uint16_t)a->statuses[i].last};
	ret->statuses = statuses;
	ret->n_statuses = a->n_statuses;
}

static void read_arguments(struct resolver *r, const struct ast_check *a,
			   struct resolved_check *ret)
{
	const char **arguments =
		arena_zalloc(&r->r->memory, a->n_arguments + 1, sizeof(*arguments));

	for (size_t i = 0; i < a->n_arguments; i++)
		arguments[i] = arena_strdup(&r->r->memory, a->arguments[i]);
	ret->arguments = arguments;
}

static void read_times(const struct ast_check *a, struct resolved_check *ret)
{
	ret->every_ms = a->every_ms ? a->every_ms : EVERY_MS;
	ret->timeout_ms = a->timeout_ms                ? a->timeout_ms
			  : ret->every_ms < TIMEOUT_MS ? ret->every_ms
						       : TIMEOUT_MS;
	ret->rise = a->rise ? a->rise : RISE;
	ret->fall = a->fall ? a->fall : FALL;
	ret->of = a->fall ? a->of : FALL_OF;
}

static bool fail(struct resolver *r, const struct ast_service *a, struct diag_at at,
		 const char *hint, const char *what)
{
	diag_error(r->diag, at, hint, "service '%s': %s", a->name, what);
	return false;
}

static bool check_times(struct resolver *r, const struct ast_service *a,
			const struct resolved_check *c)
{
	if (c->every_ms < POLICY_EVERY_MIN_MS || c->every_ms > POLICY_EVERY_MAX_MS)
		return fail(r, a, a->check.every_at, NULL, "'every' must be 100ms to 1h");
	if (c->timeout_ms > c->every_ms)
		return fail(r, a, a->check.at, NULL, "'timeout' is longer than 'every'");
	return true;
}

bool resolve_check(struct resolver *r, const struct ast_service *service,
		   struct resolved_check *ret)
{
	const struct ast_check *a = &service->check;
	struct arena *memory = &r->r->memory;

	*ret = (struct resolved_check){
		.at = a->at,
		.kind = a->kind,
		.path = arena_strdup(memory, a->path),
		.host = arena_strdup(memory, a->host),
		.sni = arena_strdup(memory, a->sni),
		.ca = arena_strdup(memory, a->ca),
		.body = arena_strdup(memory, a->body),
		.insecure = a->insecure,
		.name = arena_strdup(memory, a->name),
		.type = a->type ? a->type : TYPE_A,
		.port = a->port,
		.via_path = a->via_path,
	};
	read_times(a, ret);
	if (a->path)
		read_statuses(r, a, ret);
	if (a->n_arguments)
		read_arguments(r, a, ret);
	return !a->given || check_times(r, service, ret);
}
