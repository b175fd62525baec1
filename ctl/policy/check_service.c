// SPDX-License-Identifier: GPL-2.0-only
// Checks services: required options, and options that exclude each other.

#include <errno.h>

#include "common/limits-service.h"
#include "common/nat.h"
#include "ctl/base/pattern.h"
#include "ctl/policy/checker.h"
#include "ctl/policy/words.h"

struct service_check {
	struct checker *c;
	struct ast_service *ast;
	bool ok;
};

static void fail_service(struct service_check *k, struct diag_at at, const char *hint,
			 const char *what)
{
	diag_error(k->c->diag, at, hint, "service '%s': %s", k->ast->name, what);
	k->ok = false;
}

static bool has_option(const struct service_check *k, enum ast_option option)
{
	return k->ast->option_at[option].file;
}

// "mode dr (same link), ipip or gue (through routers), nat or fullnat (other addresses)"
static const char *mode_hint(struct service_check *k)
{
	choice_text same_link, routers, nat;

	return arena_printf(&k->c->ast->strings,
			    "mode %s (same link), %s (through routers), %s (other addresses)",
			    choice_modes_that(0, MODE_TUNNEL | MODE_NAT, same_link),
			    choice_modes_that(MODE_TUNNEL, 0, routers),
			    choice_modes_that(MODE_NAT, 0, nat));
}

static void check_needed(struct service_check *k)
{
	static const struct {
		enum ast_option option;
		const char *what, *hint;
	} needed[] = {
		{AST_VIP, "no vip", "vip ADDRESS"},
		{AST_SERVICE_PORT, "no port", "port 80, port 1000-1999, port any"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!has_option(k, needed[i].option))
			fail_service(k, k->ast->at, needed[i].hint, needed[i].what);
	if (!has_option(k, AST_MODE))
		fail_service(k, k->ast->at, mode_hint(k), "no mode");
	if (!k->ast->backends.n)
		fail_service(k, k->ast->at, "backend ADDRESS", "no backend");
}

static void check_options(struct service_check *k)
{
	const struct ast_service *a = k->ast;
	unsigned does = service_mode_does(a->mode);
	choice_text modes;

	if (a->idle_ms > SERVICE_IDLE_MAX_MS)
		fail_service(k, a->option_at[AST_IDLE], "idle 8h", "'idle' must be at most 8h");
	if (a->vip.given && !check_addresses(k->c, &a->vip, SIDE_VIP))
		k->ok = false;
	if (a->source.given && !check_addresses(k->c, &a->source, SIDE_SOURCE))
		k->ok = false;
	if (a->source.given && !(does & MODE_SOURCE) && has_option(k, AST_MODE))
		fail_service(k, a->option_at[AST_SOURCE],
			     does & MODE_NAT ? "leave it out: servers see the client" : NULL,
			     arena_printf(&k->c->ast->strings, "'source' needs mode %s",
					  choice_modes_that(MODE_SOURCE, 0, modes)));
	vec_each (&a->backends, backend) {
		if (backend->has_port && has_option(k, AST_MODE) && !(does & MODE_PORT))
			fail_service(k, backend->at,
				     arena_printf(&k->c->ast->strings,
						  "mode %s can change the port",
						  choice_modes_that(MODE_PORT, 0, modes)),
				     "in this mode backends receive the packet's own port");
	}
}

// Options that a table of connections replaces, and what has no end in it: a number for an address,
// a port and a protocol.
static void check_nat(struct service_check *k)
{
	static const char in_fullnat[] = "write more addresses after 'source'";
	struct ast_service *a = k->ast;
	bool source = service_mode_does(a->mode) & MODE_SOURCE;

	if (a->idle_ms > NAT_IDLE_MAX_MS && a->idle_ms <= SERVICE_IDLE_MAX_MS)
		fail_service(k, a->option_at[AST_IDLE], "idle 3h",
			     "in this mode 'idle' must be at most 3h");
	if (a->hash_source)
		fail_service(k, a->option_at[AST_HASH], "hash tuple",
			     "'hash source' is for modes without a table of connections");
	if (has_option(k, AST_PINS))
		fail_service(k, a->option_at[AST_PINS],
			     source ? in_fullnat : "connections COUNT sets the size of its table",
			     "'pins' is for modes without a table of connections");
	if (has_option(k, AST_UDP))
		fail_service(k, a->option_at[AST_UDP], "each connection keeps its backend",
			     "'udp' is for modes without a table of connections");
	if (a->any_port)
		fail_service(k, a->option_at[AST_SERVICE_PORT], "port 80, port 1000-1099",
			     "this mode does not have 'port any'");
	if (a->check.via_path)
		fail_service(k, a->check.at, "without 'via path': its backends do not have the VIP",
			     "in this mode a check goes to the backend's own address");
	if (source && has_option(k, AST_CONNECTIONS))
		fail_service(k, a->option_at[AST_CONNECTIONS], in_fullnat,
			     "'connections' is for mode nat");
	if (source && !has_option(k, AST_SOURCE))
		fail_service(k, a->option_at[AST_MODE],
			     "source ADDRESS, …: addresses of this host that no socket uses",
			     "mode fullnat needs 'source'");
}

static void check_mode(struct service_check *k)
{
	if (service_mode_does(k->ast->mode) & MODE_NAT)
		check_nat(k);
	else if (has_option(k, AST_CONNECTIONS))
		fail_service(k, k->ast->option_at[AST_CONNECTIONS], "pins COUNT",
			     "'connections' is for mode nat");
}

static void check_body(struct service_check *k)
{
	const struct ast_check *check = &k->ast->check;
	struct pattern *pattern = NULL;
	struct err err = {0};
	int code;

	if (!check->body)
		return;
	code = pattern_new(check->body, &pattern, &err);
	if (code)
		fail_service(k, check->body_at,
			     code == -EINVAL ? "a regular expression of PCRE2, as of grep -P"
					     : NULL,
			     arena_printf(&k->c->ast->strings, "%s", err.text));
	pattern_free(pattern);
}

static void check_health(struct service_check *k)
{
	static const enum ast_option options[] = {AST_LOST, AST_RAMP, AST_KEEP};
	const struct ast_check *check = &k->ast->check;
	bool checks = check->given && check->kind != CHECK_NONE;

	check_body(k);
	if (checks && check->kind != CHECK_EXEC && k->ast->any_port && !check->has_port)
		fail_service(k, check->at, "check tcp port 80",
			     "a check of 'port any' needs a port of its own");
	for (size_t i = 0; i < ARRAY_SIZE(options) && !checks; i++)
		if (has_option(k, options[i]))
			diag_warning(k->c->diag, k->ast->option_at[options[i]], NULL,
				     "service '%s': without 'check' this has no effect",
				     k->ast->name);
}

void check_service(struct checker *c, struct ast_service *a)
{
	struct service_check k = {.c = c, .ast = a, .ok = !a->broken};

	if (!k.ok)
		return;
	check_needed(&k);
	check_options(&k);
	if (has_option(&k, AST_MODE))
		check_mode(&k);
	check_health(&k);
	a->broken = !k.ok;
}
