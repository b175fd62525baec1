// SPDX-License-Identifier: GPL-2.0-only
// Makes probes of the checks of the active policy.
#include "ctl/agent/health_targets.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/control/active.h"
#include "ctl/net/lookup.h"
#include "ctl/net/route.h"

#define VARIABLES 6

struct health_asked {
	regex_t body;
	bool has_body;
	struct probe_span *statuses;
	char *(*environments)[VARIABLES]; // by backend
	size_t n;
};

struct load {
	const struct resolved *policy;
	struct probes *probes;
	probe_done *done;
	struct health_targets *t;
	struct own_addr *own; // of this host; only if one of them is a VIP
	size_t n_own;
};

// ---- addresses ----------------------------------------------------------------------------------

static bool is_vip(const struct resolved *r, const struct addr *a)
{
	for (size_t i = 0; i < r->n_services; i++)
		if (resolved_contains(&r->addresses[r->services[i].vip], a, NULL))
			return true;
	return false;
}

// The own addresses are needed only where the kernel might choose a VIP: on a host that is a backend itself.
static int find_own(struct load *l, struct err *err)
{
	bool any = false;
	int code = route_own_addrs(&l->own, &l->n_own, err);

	if (code)
		return code;
	for (size_t i = 0; i < l->n_own; i++)
		any = any || is_vip(l->policy, &l->own[i].addr);
	if (!any)
		l->n_own = 0;
	return 0;
}

// An answer to a VIP would be balanced. Another address of the same device is the source then.
static struct addr source_for(const struct load *l, const struct addr *to)
{
	struct addr none = {0};
	struct lookup route;

	if (!l->n_own || lookup_route(to, &route) || !route.source.family ||
	    !is_vip(l->policy, &route.source))
		return none;
	for (size_t i = 0; i < l->n_own; i++)
		if (l->own[i].addr.family == to->family && l->own[i].ifindex == route.ifindex &&
		    !is_vip(l->policy, &l->own[i].addr))
			return l->own[i].addr;
	return none;
}

// The first address of the service.
static struct addr first_vip(const struct resolved *r, const struct resolved_service *s)
{
	const struct resolved_addresses *vip = &r->addresses[s->vip];
	struct addr a = {0};

	if (vip->n4) {
		uint32_t word = vip->v4[0].addr;

		a.family = 4;
		for (int i = 0; i < 4; i++)
			a.bytes[i] = (uint8_t)(word >> (24 - 8 * i));
		return a;
	}
	a.family = 6;
	for (int i = 0; i < 16 && vip->n6; i++)
		a.bytes[i] =
			(uint8_t)((i < 8 ? vip->v6[0].hi : vip->v6[0].lo) >> (56 - 8 * (i % 8)));
	return a;
}

// ---- probes -------------------------------------------------------------------------------------

static uint16_t port_of(const struct resolved_service *s, const struct resolved_backend *b)
{
	if (s->check.port)
		return s->check.port;
	if (b->port)
		return b->port;
	return s->any_port ? 0 : s->ports.at[0].first;
}

static const char *const *environment_of(struct health_asked *asked, size_t backend,
					 const struct resolved_service *s,
					 const struct resolved_backend *b,
					 const struct probe_spec *spec)
{
	char **to = asked->environments[backend];
	addr_text address, name = "here";

	if (!b->here)
		addr_format(&b->addr, name);
	to[0] = mem_printf("WEIR_SERVICE=%s", s->name);
	to[1] = mem_printf("WEIR_BACKEND=%s", name);
	to[2] = mem_printf("WEIR_ADDRESS=%s", addr_format(&spec->addr, address));
	to[3] = mem_printf("WEIR_PORT=%u", spec->port);
	to[4] = mem_strdup("PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	return (const char *const *)to;
}

static enum probe_kind kind_of(const struct resolved_check *c)
{
	switch ((enum check_kind)c->kind) {
	case CHECK_HTTP:
	case CHECK_HTTPS:
		return PROBE_HTTP;
	case CHECK_DNS:
		return PROBE_DNS;
	case CHECK_EXEC:
		return PROBE_EXEC;
	case CHECK_NONE:
	case CHECK_TCP:
		break;
	}
	return PROBE_TCP;
}

static struct probe_spec spec_of(const struct load *l, const struct resolved_service *s,
				 size_t backend, struct health_asked *asked)
{
	const struct resolved_backend *b = &s->backends[backend];
	const struct resolved_check *c = &s->check;
	struct probe_spec spec = {
		.kind = kind_of(c),
		.addr = b->here ? first_vip(l->policy, s) : b->addr,
		.port = port_of(s, b),
		.device = b->here ? "lo" : NULL,
		.timeout_ms = (uint32_t)c->timeout_ms,
		.tls = c->kind == CHECK_HTTPS,
		.insecure = c->insecure,
		.path = c->path,
		.host = c->host,
		.sni = c->sni,
		.ca = c->ca,
		.body = asked->has_body ? &asked->body : NULL,
		.statuses = asked->statuses,
		.n_statuses = c->n_statuses,
		.name = c->name,
		.type = c->type,
		.arguments = c->arguments,
	};

	if (!b->here)
		spec.source = source_for(l, &b->addr);
	if (spec.kind == PROBE_EXEC)
		spec.environment = environment_of(asked, backend, s, b, &spec);
	return spec;
}

static void ask_of(const struct resolved_service *s, struct health_asked *asked)
{
	const struct resolved_check *c = &s->check;

	asked->n = s->n_backends;
	asked->environments = mem_zalloc(s->n_backends, sizeof(*asked->environments));
	asked->has_body =
		c->body && !regcomp(&asked->body, c->body, REG_EXTENDED | REG_NOSUB | REG_NEWLINE);
	asked->statuses = mem_zalloc(c->n_statuses, sizeof(*asked->statuses));
	for (size_t i = 0; i < c->n_statuses; i++)
		asked->statuses[i] = (struct probe_span){c->statuses[i].first, c->statuses[i].last};
}

// ---- services -----------------------------------------------------------------------------------

static struct health_rules rules_of(const struct resolved_service *s)
{
	const struct resolved_check *c = &s->check;

	if (c->kind == CHECK_NONE)
		return (struct health_rules){.lost_ms = s->lost_ms, .ramp_ms = s->ramp_ms};
	return (struct health_rules){
		.rise = c->rise,
		.fall = c->fall,
		.every_ms = c->every_ms,
		.timeout_ms = c->timeout_ms,
		.lost_ms = s->lost_ms,
		.ramp_ms = s->ramp_ms,
	};
}

// To the VIP, whose packets the way carries to the backend.
static void take_path(const struct load *l, const struct resolved_service *s,
		      const struct resolved_backend *b, struct health_target *target,
		      struct probe_spec *spec)
{
	struct err err = {0};

	spec->addr = first_vip(l->policy, s);
	spec->source = (struct addr){0};
	spec->open = path_socket;
	if (l->t->path && path_way_new(l->t->path, s->name, &b->addr, target->backend->port,
				       &spec->addr, spec->timeout_ms, &target->way, &err))
		log_warning("service '%s' cannot be checked via path: %s", s->name, err.text);
	spec->open_ctx = target->way;
}

static struct probe *probe_for(const struct load *l, const struct resolved_service *from, size_t n,
			       struct health_asked *asked, struct health_target *target)
{
	struct probe_spec spec = spec_of(l, from, n, asked);

	if (from->check.via_path && !from->backends[n].here)
		take_path(l, from, &from->backends[n], target, &spec);
	return probe_new(l->probes, &spec, l->done, target);
}

static void load_backend(struct load *l, const struct resolved_service *from, size_t n,
			 struct health_service *s, struct health_asked *asked)
{
	const struct resolved_backend *b = &from->backends[n];
	struct health_target *target = &l->t->at[l->t->n++];
	bool has_port = service_mode_does(from->mode) & MODE_PORT;

	s->backends[n].port = has_port ? b->port : 0;
	if (!b->here)
		s->backends[n].addr = b->addr;
	target->service = s;
	target->backend = &s->backends[n];
	if (from->check.kind != CHECK_NONE)
		target->probe = probe_for(l, from, n, asked, target);
}

static void load_service(struct load *l, const struct resolved_service *from,
			 struct health_asked *asked)
{
	struct health_service *s = &l->t->services[l->t->n_services++];

	*s = (struct health_service){
		.name = from->name,
		.rules = rules_of(from),
		.keep = from->keep,
		.backends = mem_zalloc(from->n_backends, sizeof(*s->backends)),
		.n = from->n_backends,
	};
	ask_of(from, asked);
	for (size_t i = 0; i < from->n_backends; i++)
		load_backend(l, from, i, s, asked);
}

static bool goes_path(const struct resolved_service *s)
{
	return s->check.via_path && s->check.kind != CHECK_NONE;
}

// Without it, checks through the path cannot be made; the others can.
static void open_path(struct load *l, struct agent *a, uint32_t generation)
{
	struct err err = {0};
	bool any = false;

	for (size_t i = 0; i < l->policy->n_services; i++)
		any = any || goes_path(&l->policy->services[i]);
	if (any && path_open(a, generation, &l->t->path, &err))
		log_warning("no backend can be checked via path: %s", err.text);
}

static int load_services(struct load *l, struct err *err)
{
	const struct resolved *r = l->policy;
	size_t n = 0;
	int code = find_own(l, err);

	if (code)
		return code;
	for (size_t i = 0; i < r->n_services; i++)
		n += r->services[i].n_backends;
	l->t->services = mem_zalloc(r->n_services, sizeof(*l->t->services));
	l->t->asked = mem_zalloc(r->n_services, sizeof(*l->t->asked));
	l->t->at = mem_zalloc(n, sizeof(*l->t->at));
	for (size_t i = 0; i < r->n_services; i++)
		load_service(l, &r->services[i], &l->t->asked[i]);
	free(l->own);
	return 0;
}

int health_targets_load(struct agent *a, const struct pool *pool, struct probes *probes,
			probe_done *done, struct health_targets *ret, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_HEALTH_TARGETS struct health_targets t = {0};
	struct load l = {.probes = probes, .done = done, .t = &t};
	int code = active_record(pool->instance, c, about, err);

	if (code == -ENOENT)
		return 0;
	if (code)
		return code;
	if (candidate_resolve(c, about->path, NULL, 0))
		return active_broken(about, err);
	l.policy = c->resolved;
	t.policy = TAKE_PTR(c);
	open_path(&l, a, pool->generation);
	if ((code = load_services(&l, err)))
		return code;
	*ret = t;
	t = (struct health_targets){0};
	return 0;
}

static void asked_free(struct health_asked *a)
{
	if (a->has_body)
		regfree(&a->body);
	free(a->statuses);
	for (size_t i = 0; i < a->n; i++)
		for (size_t v = 0; v < VARIABLES; v++)
			free(a->environments[i][v]);
	free(a->environments);
}

void health_targets_free(struct health_targets *t)
{
	for (size_t i = 0; i < t->n; i++) {
		probe_free(t->at[i].probe);
		path_way_free(t->at[i].way);
		if (t->at[i].timer)
			event_free(t->at[i].timer);
	}
	for (size_t i = 0; i < t->n_services; i++) {
		free(t->services[i].backends);
		asked_free(&t->asked[i]);
	}
	path_free(t->path);
	free(t->services);
	free(t->asked);
	free(t->at);
	candidate_free(t->policy);
	*t = (struct health_targets){0};
}

static bool is_target(const struct health_target *t, const char *service, const struct addr *addr,
		      uint16_t port)
{
	return t->backend->port == port && !addr_compare(&t->backend->addr, addr) &&
	       !strcmp(t->service->name, service);
}

struct health_target *health_targets_find(const struct health_targets *t, size_t guess,
					  const char *service, const struct addr *addr,
					  uint16_t port)
{
	if (guess < t->n && is_target(&t->at[guess], service, addr, port))
		return &t->at[guess];
	for (size_t i = 0; i < t->n; i++)
		if (is_target(&t->at[i], service, addr, port))
			return &t->at[i];
	return NULL;
}
