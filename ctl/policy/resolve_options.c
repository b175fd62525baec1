// SPDX-License-Identifier: GPL-2.0-only
// Resolves the options of a service, with their defaults, and its backends.

#include <string.h>

#include "common/limits-policy.h"
#include "common/limits-service.h"
#include "ctl/base/addr_explain.h"
#include "ctl/base/num.h"
#include "ctl/policy/names.h"
#include "ctl/policy/resolver.h"

#define LOST_MS     30000
#define IDLE_TCP_MS (15 * 60 * 1000)
#define IDLE_UDP_MS (60 * 1000)

struct service_work {
	struct resolver *r;
	const struct ast_service *ast;
	struct resolved_service *ret;
	bool ok;
};

static void fail(struct service_work *k, struct diag_at at, const char *hint, const char *what)
{
	diag_error(k->r->diag, at, hint, "service '%s': %s", k->ast->name, what);
	k->ok = false;
}

// ---- options ------------------------------------------------------------------------------------

static void read_protos(struct service_work *k)
{
	struct value v = resolve_value(k->r, k->ast->option_at[AST_SERVICE_PROTO]);
	struct resolved_bits *proto = &k->ret->proto;

	proto->given = true;
	if (!k->ast->proto.given) {
		bits_set(proto->bits, PROTO_TCP);
		return;
	}
	if (value_bits(&v, &domain_proto, &k->ast->proto, proto->bits) < 0) {
		k->ok = false;
		return;
	}
	for (unsigned n = 0; n < 256; n++)
		if (bits_has(proto->bits, n) && n != PROTO_TCP && n != PROTO_UDP &&
		    n != PROTO_SCTP) {
			fail(k, k->ast->proto.at, NULL, "the protocol must be tcp, udp or sctp");
			return;
		}
}

static void read_ring(struct service_work *k)
{
	uint32_t next = k->ast->ring;

	k->ret->ring = k->ast->ring ? k->ast->ring : POLICY_RING_DEFAULT;
	if (num_is_prime(k->ret->ring))
		return;
	while (!num_is_prime(next))
		next++;
	fail(k, k->ast->option_at[AST_RING],
	     arena_printf(&k->r->scratch, "the next prime is %u", next), "ring size must be prime");
}

// A power of two, so that one additional service seldom changes the tables of the others.
static uint64_t default_pins(size_t services)
{
	uint64_t pins = POLICY_PINS_DEFAULT;

	while (pins > POLICY_PINS_MIN && pins * services > POLICY_PINS_SHARED)
		pins /= 2;
	return pins;
}

// The same for connections of nat.
static uint64_t default_connections(const struct ast *ast)
{
	uint64_t connections = POLICY_NAT_DEFAULT, services = 0;

	vec_each (&ast->services, s)
		services += s->mode == SERVICE_NAT;
	while (connections > POLICY_NAT_MIN && connections * services > POLICY_NAT_SHARED)
		connections /= 2;
	return connections;
}

// The places of fullnat are the ports of its sources.
static void read_connections(struct service_work *k)
{
	const struct ast_service *a = k->ast;

	if (a->mode == SERVICE_NAT)
		k->ret->connections =
			a->connections ? a->connections : default_connections(k->r->ast);
}

static void read_options(struct service_work *k)
{
	const struct ast_service *a = k->ast;
	struct resolved_service *r = k->ret;

	r->any_port = a->any_port;
	r->mode = a->mode;
	r->idle_tcp_ms = a->idle_ms ? a->idle_ms : IDLE_TCP_MS;
	r->idle_udp_ms = a->idle_ms ? a->idle_ms : IDLE_UDP_MS;
	r->lost_ms = a->lost_ms ? a->lost_ms : LOST_MS;
	r->ramp_ms = a->ramp_ms;
	r->keep = a->keep;
	r->udp_move = a->udp_move;
	r->hash_source = a->hash_source;
	if (service_mode_does(a->mode) & MODE_NAT) {
		read_connections(k);
		return;
	}
	r->pins = a->pins ? a->pins : default_pins(k->r->ast->services.n);
	r->pins_given = a->pins != 0;
}

// ---- backends -----------------------------------------------------------------------------------

static void read_backend(struct service_work *k, const struct ast_backend *a,
			 struct resolved_backend *r)
{
	bool mapped = false;
	struct err err = {0};
	struct prefix p;

	*r = (struct resolved_backend){
		.at = a->at,
		.place = resolve_at(k->r, a->at, a->line),
		.here = !a->word,
		.port = a->port,
		.weight = a->weight,
		.backup = a->backup,
	};
	if (r->here)
		return;
	if (prefix_parse(a->word, strlen(a->word), &p, &mapped, &err) < 0)
		fail(k, a->at, err.hint[0] ? err.hint : NULL, err.text);
	else if (!prefix_is_host(&p))
		fail(k, a->at, NULL, "a backend must be a single address");
	else if (!addr_is_remote(&p.addr))
		fail(k, a->at, "the address of a host", "no other host can have this address");
	else
		r->addr = p.addr;
}

// Ports are not compared: commands name a backend by its address.
static bool same_backend(const struct resolved_backend *a, const struct resolved_backend *b)
{
	return a->here == b->here && (a->here || !addr_compare(&a->addr, &b->addr));
}

static void read_backends(struct service_work *k)
{
	size_t n = k->ast->backends.n;
	struct resolved_backend *r = arena_zalloc(&k->r->r->memory, n, sizeof(*r));

	k->ret->backends = r;
	k->ret->n_backends = n;
	for (size_t i = 0; i < n; i++)
		read_backend(k, &k->ast->backends.at[i], &r[i]);
	for (size_t i = 0; i < n && k->ok; i++)
		for (size_t j = 0; j < i; j++)
			if (same_backend(&r[i], &r[j])) {
				fail(k, r[i].at,
				     r[i].port == r[j].port ? NULL : "an address for each port",
				     "duplicate backend");
				break;
			}
}

bool resolve_options(struct resolver *r, const struct ast_service *ast,
		     struct resolved_service *ret)
{
	struct service_work k = {.r = r, .ast = ast, .ret = ret, .ok = true};

	read_protos(&k);
	read_options(&k);
	read_ring(&k);
	read_backends(&k);
	return k.ok;
}
