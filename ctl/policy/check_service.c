// SPDX-License-Identifier: GPL-2.0-only
// Checks services: required options, and options that exclude each other.
#include "common/limits-service.h"
#include "ctl/base/mem.h"
#include "ctl/policy/checker.h"

struct service_check {
	struct checker *c;
	struct ast_service *ast;
	bool ok;
};

static void fail(struct service_check *k, struct diag_at at, const char *hint, const char *what)
{
	diag_error(k->c->diag, at, hint, "service '%s': %s", k->ast->name, what);
	k->ok = false;
}

static bool has(const struct service_check *k, enum ast_option option)
{
	return k->ast->option_at[option].file;
}

static void check_needed(struct service_check *k)
{
	static const struct {
		enum ast_option option;
		const char *what, *hint;
	} needed[] = {
		{AST_VIP, "no vip", "vip ADDRESS"},
		{AST_SERVICE_PORT, "no port", "port 80, port 1000-1999, port any"},
		{AST_MODE, "no mode", "mode dr (same link), ipip or gue (through routers)"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!has(k, needed[i].option))
			fail(k, k->ast->at, needed[i].hint, needed[i].what);
	if (!k->ast->backends.n)
		fail(k, k->ast->at, "backend ADDRESS", "no backend");
}

static void check_options(struct service_check *k)
{
	const struct ast_service *a = k->ast;

	if (a->idle_ms > SERVICE_IDLE_MAX_MS)
		fail(k, a->option_at[AST_IDLE], NULL, "'idle' must be at most 8h");
	if (a->vip.given && !check_addresses(k->c, &a->vip, SIDE_VIP))
		k->ok = false;
	if (a->source.given && !check_addresses(k->c, &a->source, SIDE_SOURCE))
		k->ok = false;
	if (a->source.given && (a->mode == SERVICE_DR || a->mode == SERVICE_NAT) &&
	    has(k, AST_MODE))
		fail(k, a->option_at[AST_SOURCE], NULL, "'source' needs mode ipip, gue or fullnat");
	vec_each (&a->backends, backend) {
		if (backend->has_port && has(k, AST_MODE) && a->mode < SERVICE_NAT)
			fail(k, backend->at, "nat and fullnat can change the port",
			     "in this mode backends receive the packet's own port");
	}
}

void check_service(struct checker *c, struct ast_service *a)
{
	struct service_check k = {.c = c, .ast = a, .ok = !a->broken};

	if (!k.ok)
		return;
	check_needed(&k);
	check_options(&k);
	a->broken = !k.ok;
}
