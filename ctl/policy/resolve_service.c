// SPDX-License-Identifier: GPL-2.0-only
// Resolves services: addresses, ports and sources, options, backends and checks; two services must
// not take the same packet.

#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "common/limits-service.h"
#include "ctl/base/addr_explain.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/names.h"
#include "ctl/policy/ranges.h"
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

static bool fail_check(struct resolver *r, const struct ast_service *a, struct diag_at at,
		       const char *hint, const char *what)
{
	diag_error(r->diag, at, hint, "service '%s': %s", a->name, what);
	return false;
}

static bool check_times(struct resolver *r, const struct ast_service *a,
			const struct resolved_check *c)
{
	if (c->every_ms < POLICY_EVERY_MIN_MS || c->every_ms > POLICY_EVERY_MAX_MS)
		return fail_check(r, a, a->check.every_at, NULL, "'every' must be 100ms to 1h");
	if (c->timeout_ms > c->every_ms)
		return fail_check(r, a, a->check.at, NULL, "'timeout' is longer than 'every'");
	return true;
}

static bool resolve_check(struct resolver *r, const struct ast_service *service,
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
	else
		r->addr = p.addr;
}

static bool same_backend(const struct resolved_backend *a, const struct resolved_backend *b)
{
	return a->here == b->here && a->port == b->port &&
	       (a->here || !addr_compare(&a->addr, &b->addr));
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
				fail(k, r[i].at, NULL, "duplicate backend");
				break;
			}
}

static bool resolve_options(struct resolver *r, const struct ast_service *ast,
			    struct resolved_service *ret)
{
	struct service_work k = {.r = r, .ast = ast, .ret = ret, .ok = true};

	read_protos(&k);
	read_options(&k);
	read_ring(&k);
	read_backends(&k);
	return resolve_check(r, ast, &ret->check) && k.ok;
}

static void resolve_vip(struct resolver *r, const struct ast_service *a,
			struct resolved_service *to)
{
	struct resolved_address vip = resolve_address(r, &a->vip, POLICY_WHOLE);

	to->vip = vip.index;
	if (vip.kind != RESOLVED_SET)
		diag_error(r->diag, a->vip.at, NULL, "service '%s': its vip is every address",
			   a->name);
	else if (r->addresses.at[vip.index].empty)
		diag_error(r->diag, a->vip.at, NULL, "service '%s': its vip has no address",
			   a->name);
}

// A service takes the packets of a host that owns its address, unless the host is one of its
// backends.
static void warn_own(struct resolver *r, const struct ast_service *a,
		     const struct resolved_service *s)
{
	const struct addr *own;
	size_t n;

	for (size_t i = 0; i < s->n_backends; i++)
		if (s->backends[i].here)
			return;
	own = resolve_own(r, a->vip.at, &n);
	for (size_t i = 0; i < n; i++) {
		addr_text text;

		if (!resolved_contains(&r->addresses.at[s->vip], &own[i], NULL))
			continue;
		diag_warning(
			r->diag, a->vip.at, "a balancer does not own the addresses of its services",
			"service '%s': %s is an address of this host, which no longer receives "
			"packets of the service",
			a->name, addr_format(&own[i], text));
	}
}

// The prefixes of `source`; check has refused items that are not addresses.
static void resolve_source(struct resolver *r, const struct ast_service *a,
			   struct resolved_service *to)
{
	struct leaves leaves = {0};
	VEC(struct prefix) all = {0};

	expand(&r->expander, &a->source, POLICY_LIST_ITEMS, NULL, &leaves);
	vec_each (&leaves.all, leaf) {
		struct err err = {0};
		struct prefix p;

		if (leaf->negated || leaves.negated)
			diag_error(r->diag, leaf->item->at, NULL, "'source' does not take 'not'");
		else if (prefix_parse(leaf->item->word, strlen(leaf->item->word), &p, NULL, &err) <
			 0)
			diag_error(r->diag, leaf->item->at, err.hint[0] ? err.hint : NULL, "%s",
				   err.text);
		else
			vec_push(&all, p);
	}
	to->n_source = all.n;
	to->source = arena_copy(&r->r->memory, all.at, all.n, sizeof(*all.at));
	vec_free(&all);
	leaves_free(&leaves);
}

static bool same_ports(const struct resolved_service *a, const struct resolved_service *b)
{
	return a->any_port || b->any_port ||
	       ranges_meet(a->ports.at, a->ports.n, b->ports.at, b->ports.n);
}

static bool same_protos(const struct resolved_service *a, const struct resolved_service *b)
{
	for (unsigned i = 0; i < 4; i++)
		if (a->proto.bits[i] & b->proto.bits[i])
			return true;
	return false;
}

struct vips {
	struct intervals v4, v6;
};

static void vips_of(const struct resolved_addresses *a, struct vips *ret)
{
	intervals_of(a, 4, &ret->v4);
	intervals_of(a, 6, &ret->v6);
}

static void vips_free(struct vips *v)
{
	intervals_free(&v->v4);
	intervals_free(&v->v6);
}

static bool vips_meet(const struct vips *a, const struct vips *b)
{
	return intervals_meet(a->v4.at, a->v4.n, b->v4.at, b->v4.n) ||
	       intervals_meet(a->v6.at, a->v6.n, b->v6.at, b->v6.n);
}

bool resolved_services_meet(const struct resolved *a, const struct resolved_service *s,
			    const struct resolved *b, const struct resolved_service *t)
{
	struct vips of_s = {0}, of_t = {0};
	bool meet;

	if (!same_protos(s, t) || !same_ports(s, t))
		return false;
	vips_of(&a->addresses[s->vip], &of_s);
	vips_of(&b->addresses[t->vip], &of_t);
	meet = vips_meet(&of_s, &of_t);
	vips_free(&of_s);
	vips_free(&of_t);
	return meet;
}

static void find_overlaps(struct resolver *r)
{
	size_t n = r->r->n_services;
	struct vips *vips = mem_zalloc(n, sizeof(*vips));
	const struct resolved_service *s = r->r->services;

	for (size_t i = 0; i < n; i++) {
		vips_of(&r->addresses.at[s[i].vip], &vips[i]);
		for (size_t j = 0; j < i; j++) {
			if (!same_protos(&s[i], &s[j]) || !same_ports(&s[i], &s[j]) ||
			    !vips_meet(&vips[i], &vips[j]))
				continue;
			diag_error(r->diag, s[i].at, NULL,
				   "service '%s' shares an address and port with service '%s' (%s)",
				   s[i].name, s[j].name, diag_place(r->diag, s[j].at, false));
			break;
		}
	}
	for (size_t i = 0; i < n; i++)
		vips_free(&vips[i]);
	free(vips);
}

// False: the service has an error.
static bool resolve_service(struct resolver *r, const struct ast_service *a,
			    struct resolved_service *to)
{
	if (a->broken || !resolve_options(r, a, to))
		return false;
	resolve_vip(r, a, to);
	warn_own(r, a, to);
	resolve_source(r, a, to);
	return a->any_port || resolve_ports(r, &a->port, a->option_at[AST_SERVICE_PORT],
					    to->proto.bits, &to->ports) == 0;
}

void resolve_services(struct resolver *r)
{
	size_t n = r->ast->services.n;
	bool broken = false;

	r->r->n_services = n;
	r->r->services = arena_zalloc(&r->r->memory, n, sizeof(*r->r->services));
	for (size_t i = 0; i < n; i++) {
		struct ast_service *a = &r->ast->services.at[i];
		struct resolved_service *to = &r->r->services[i];

		to->name = arena_strdup(&r->r->memory, a->name);
		to->at = a->at;
		to->place = resolve_at(r, a->at, a->line);
		a->broken = !resolve_service(r, a, to);
		broken = broken || a->broken;
	}
	if (!broken && !diag_errors(r->diag))
		find_overlaps(r);
}
