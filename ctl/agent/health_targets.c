// SPDX-License-Identifier: GPL-2.0-only
// Makes probes of the checks of the active policy.
#include "ctl/agent/health_targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/pattern.h"
#include "ctl/control/active.h"
#include "ctl/net/route.h"

#define VARIABLES 6
#define VIPS_MAX  16  // addresses of each family for checks via path
#define NEAR_MAX  256 // steps into a prefix, to an address that is not excepted

struct health_asked {
	struct pattern *body; // NULL: none
	struct probe_span *statuses;
	char *(*environments)[VARIABLES]; // by backend
	size_t n;
};

struct load {
	const struct resolved *policy;
	struct probes *probes;
	probe_done *done;
	struct health_targets *t;
	struct own_addr *own; // addresses of this host; only if one is a VIP
	size_t n_own;
	struct path_ends ends[2 * VIPS_MAX]; // VIPs of the service, if its checks go via path
	size_t n_ends;
};

// ---- addresses ----------------------------------------------------------------------------------

static bool is_vip(const struct resolved *r, const struct addr *a)
{
	for (size_t i = 0; i < r->n_services; i++)
		if (resolved_contains(&r->addresses[r->services[i].vip], a, NULL))
			return true;
	return false;
}

// The own addresses are needed only where the kernel might choose a VIP: on a host that is a
// backend itself.
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

static struct addr address4(uint32_t word)
{
	struct addr a = {.family = 4};

	for (int i = 0; i < 4; i++)
		a.bytes[i] = (uint8_t)(word >> (24 - 8 * i));
	return a;
}

static struct addr address6(uint64_t hi, uint64_t lo)
{
	struct addr a = {.family = 6};

	for (int i = 0; i < 16; i++)
		a.bytes[i] = (uint8_t)((i < 8 ? hi : lo) >> (56 - 8 * (i % 8)));
	return a;
}

// The n-th prefix of the service, of the IPv4 ones and then of the others. *ret_size: addresses to
// try.
static struct addr prefix_at(const struct resolved_addresses *s, size_t n, uint32_t more,
			     bool *ret_in, uint32_t *ret_size)
{
	uint32_t bits;

	if (n < s->n4) {
		bits = 32u - s->v4[n].len;
		*ret_in = s->v4[n].in;
		*ret_size = bits < 8 ? 1u << bits : NEAR_MAX;
		return address4(s->v4[n].addr + more);
	}
	n -= s->n4;
	bits = 128u - s->v6[n].len;
	*ret_in = s->v6[n].in;
	*ret_size = bits < 8 ? 1u << bits : NEAR_MAX;
	return address6(s->v6[n].hi, s->v6[n].lo + more);
}

// The first address of the n-th prefix that belongs to the service. false: none was found.
static bool first_of(const struct resolved_addresses *s, size_t n, struct addr *ret)
{
	uint32_t size = 1;
	bool in = true;

	for (uint32_t more = 0; in && more < size; more++) {
		*ret = prefix_at(s, n, more, &in, &size);
		if (in && resolved_contains(s, ret, NULL))
			return true;
	}
	return false;
}

// The first address of each of its prefixes: IPv4 and then IPv6. Returns how many.
static size_t vips_of(const struct resolved_addresses *s, struct addr ret[2 * VIPS_MAX])
{
	size_t count[7] = {0}, n = 0;

	for (size_t i = 0; i < s->n4 + s->n6; i++) {
		struct addr a;

		if (first_of(s, i, &a) && count[a.family]++ < VIPS_MAX)
			ret[n++] = a;
	}
	return n;
}

static struct addr first_vip(const struct resolved *r, const struct resolved_service *s)
{
	struct addr vips[2 * VIPS_MAX] = {0};

	vips_of(&r->addresses[s->vip], vips);
	return vips[0];
}

// ---- via path -----------------------------------------------------------------------------------

static bool can_be_source(const struct load *l, const struct addr *a, uint8_t family)
{
	return a->family == family && !is_vip(l->policy, a) && !addr_is_link_local(a) &&
	       !addr_is_loopback(a);
}

// From where this host would send to the VIP, if it did not balance it: the backend answers to it.
// Where the VIP is an address of this host, as the active node of a pair has it: from where it
// would send to a backend. Family 0: from none.
static struct addr source_to(const struct load *l, const struct addr *vip,
			     const struct addr *backend)
{
	struct addr none = {0};
	struct lookup route;

	if (lookup_route(vip, &route) ||
	    (route.kind != LOOKUP_UNICAST && route.kind != LOOKUP_LOCAL))
		return none;
	if (route.kind == LOOKUP_UNICAST && can_be_source(l, &route.source, vip->family))
		return route.source;
	if (lookup_route(backend, &route))
		return none;
	if (can_be_source(l, &route.source, vip->family))
		return route.source;
	for (size_t i = 0; i < l->n_own; i++)
		if (l->own[i].ifindex == route.ifindex &&
		    can_be_source(l, &l->own[i].addr, vip->family))
			return l->own[i].addr;
	return none;
}

static bool goes_path(const struct resolved_service *s)
{
	return s->check.via_path && s->check.kind != CHECK_NONE;
}

// NULL: all backends are this host, which is not checked via path.
static const struct addr *some_backend(const struct resolved_service *s)
{
	for (size_t i = 0; i < s->n_backends; i++)
		if (!s->backends[i].here)
			return &s->backends[i].addr;
	return NULL;
}

static void find_ends(struct load *l, const struct resolved_service *s)
{
	const struct addr *backend = some_backend(s);
	struct addr vips[2 * VIPS_MAX];
	size_t n = vips_of(&l->policy->addresses[s->vip], vips);

	l->n_ends = 0;
	for (size_t i = 0; backend && goes_path(s) && i < n; i++) {
		struct path_ends *e = &l->ends[l->n_ends++];

		*e = (struct path_ends){.vip = vips[i], .source = source_to(l, &vips[i], backend)};
	}
}

static void add_address(struct hash_state *s, const struct addr *a)
{
	uint64_t words[2];

	memcpy(words, a->bytes, sizeof(words));
	hash_add(s, a->family);
	hash_add(s, words[0]);
	hash_add(s, words[1]);
}

static uint64_t digest_of(struct load *l)
{
	static const struct hash_key key;
	struct hash_state s;

	hash_begin(&s, &key);
	for (size_t i = 0; i < l->n_own; i++) {
		hash_add(&s, l->own[i].ifindex);
		add_address(&s, &l->own[i].addr);
	}
	for (size_t i = 0; i < l->policy->n_services; i++) {
		find_ends(l, &l->policy->services[i]);
		for (size_t n = 0; n < l->n_ends; n++)
			add_address(&s, &l->ends[n].source);
	}
	return hash_done(&s, l->n_own);
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
		.body = asked->body,
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

static int ask_of(const struct resolved_service *s, struct health_asked *asked, struct err *err)
{
	const struct resolved_check *c = &s->check;

	asked->n = s->n_backends;
	asked->environments = mem_zalloc(s->n_backends, sizeof(*asked->environments));
	asked->statuses = mem_zalloc(c->n_statuses, sizeof(*asked->statuses));
	for (size_t i = 0; i < c->n_statuses; i++)
		asked->statuses[i] = (struct probe_span){c->statuses[i].first, c->statuses[i].last};
	return c->body ? pattern_new(c->body, &asked->body, err) : 0;
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
		.of = c->of,
		.every_ms = c->every_ms,
		.timeout_ms = c->timeout_ms,
		.lost_ms = s->lost_ms,
		.ramp_ms = s->ramp_ms,
	};
}

static void add_probe(const struct load *l, const struct probe_spec *spec,
		      struct health_target *target, struct path_way *way)
{
	struct health_probe *p = &target->probes[target->n_probes++];

	*p = (struct health_probe){.target = target, .way = way, .vip = spec->addr};
	p->probe = probe_new(l->probes, spec, l->done, p);
}

// To a VIP, whose packets the way carries. Without a way it ends as one that this host cannot make.
static void add_path_probe(const struct load *l, const struct resolved_service *s,
			   const struct resolved_backend *b, const struct path_ends *ends,
			   struct probe_spec *spec, struct health_target *target)
{
	struct path_way *way = NULL;
	struct err err = {0};

	spec->addr = ends->vip;
	spec->source = (struct addr){0};
	spec->open = path_socket;
	if (l->t->path && ends->source.family &&
	    path_way_new(l->t->path, s->name, &b->addr, target->backend->port, ends,
			 spec->timeout_ms, &way, &err))
		log_warning("service '%s' cannot be checked via path: %s", s->name, err.text);
	spec->open_ctx = way;
	add_probe(l, spec, target, way);
}

static size_t count_sources(const struct load *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n_ends; i++)
		n += l->ends[i].source.family != 0;
	return n;
}

// VIPs without a source are checked only if no other has one: the result is that the check cannot
// be made.
static void add_path_probes(const struct load *l, const struct resolved_service *s,
			    const struct resolved_backend *b, struct probe_spec *spec,
			    struct health_target *target)
{
	bool any = count_sources(l);

	for (size_t i = 0; i < (any ? l->n_ends : 1); i++)
		if (!any || l->ends[i].source.family)
			add_path_probe(l, s, b, &l->ends[i], spec, target);
}

static void add_probes(const struct load *l, const struct resolved_service *s, size_t n,
		       struct health_asked *asked, struct health_target *target)
{
	const struct resolved_backend *b = &s->backends[n];
	struct probe_spec spec = spec_of(l, s, n, asked);
	bool path = l->n_ends && !b->here;

	target->probes = mem_zalloc(path ? l->n_ends : 1, sizeof(*target->probes));
	if (path)
		add_path_probes(l, s, b, &spec, target);
	else
		add_probe(l, &spec, target, NULL);
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
		add_probes(l, from, n, asked, target);
}

static void tell_ends(const struct load *l, const struct resolved_service *s)
{
	addr_text text;

	for (size_t i = 0; i < l->n_ends; i++)
		if (!l->ends[i].source.family)
			log_warning("service '%s' is not checked via path at %s: this host has no "
				    "address from which it would send there",
				    s->name, addr_format(&l->ends[i].vip, text));
}

static int load_service(struct load *l, const struct resolved_service *from,
			struct health_asked *asked, struct err *err)
{
	struct health_service *s = &l->t->services[l->t->n_services++];
	int code;

	*s = (struct health_service){
		.name = from->name,
		.rules = rules_of(from),
		.backends = mem_zalloc(from->n_backends, sizeof(*s->backends)),
		.n = from->n_backends,
	};
	if ((code = ask_of(from, asked, err)))
		return code;
	find_ends(l, from);
	tell_ends(l, from);
	for (size_t i = 0; i < from->n_backends; i++)
		load_backend(l, from, i, s, asked);
	return 0;
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
		if ((code = load_service(l, &r->services[i], &l->t->asked[i], err)))
			return code;
	l->t->sources = digest_of(l);
	return 0;
}

int health_targets_load(struct agent *a, const struct pool *pool, struct probes *probes,
			probe_done *done, struct health_targets *ret, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_HEALTH_TARGETS struct health_targets t = {0};
	struct load l = {.probes = probes, .done = done, .t = &t};
	int code = active_record(pool->instance, ACTIVE_ALL, c, about, err);

	if (code == -ENOENT)
		return 0;
	if (code)
		return code;
	if (candidate_resolve(c, about->path, NULL, 0))
		return active_broken(about, err);
	l.policy = c->resolved;
	t.policy = TAKE_PTR(c);
	open_path(&l, a, pool->generation);
	code = load_services(&l, err);
	free(l.own);
	if (code)
		return code;
	*ret = t;
	t = (struct health_targets){0};
	return 0;
}

int health_targets_sources(const struct health_targets *t, uint64_t *ret, struct err *err)
{
	struct load l = {.policy = t->policy->resolved};
	int code = find_own(&l, err);

	if (code)
		return code;
	*ret = digest_of(&l);
	free(l.own);
	return 0;
}

static void asked_free(struct health_asked *a)
{
	pattern_free(a->body);
	free(a->statuses);
	for (size_t i = 0; i < a->n; i++)
		for (size_t v = 0; v < VARIABLES; v++)
			free(a->environments[i][v]);
	free(a->environments);
}

void health_targets_free(struct health_targets *t)
{
	for (size_t i = 0; i < t->n; i++) {
		for (size_t p = 0; p < t->at[i].n_probes; p++) {
			probe_free(t->at[i].probes[p].probe);
			path_way_free(t->at[i].probes[p].way);
		}
		free(t->at[i].probes);
		agent_task_free(&t->at[i].check);
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
