// SPDX-License-Identifier: GPL-2.0-only
// Expectations of answers: which packets of backends are answers of a service in nat or fullnat.
//
// An answer needs a connection, and the kernel has no connection of a policy that is only checked.
// So the values of the policy decide, as the datapath does: backend, port and protocol, and in
// fullnat the source that the answer goes to.

#include "common/limits-policy.h"
#include "common/nat.h"
#include "ctl/policy/resolver.h"

static bool has_port(const struct resolved_service *s, uint16_t port)
{
	for (size_t n = 0; n < s->ports.n; n++)
		if (port >= s->ports.at[n].first && port <= s->ports.at[n].last)
			return true;
	return false;
}

static bool answers_by(const struct resolved_service *s, const struct resolved_backend *b,
		       uint16_t port)
{
	return b->port ? b->port == port : has_port(s, port);
}

// A backend with this address, if possible one that answers by the port; NULL: none.
static const struct resolved_backend *find_backend(const struct resolved_service *s,
						   const struct resolved_packet *p)
{
	const struct resolved_backend *found = NULL;

	for (size_t n = 0; n < s->n_backends; n++) {
		const struct resolved_backend *b = &s->backends[n];

		if (b->here || addr_compare(&b->addr, &p->from) != 0)
			continue;
		found = b;
		if (answers_by(s, b, p->sport))
			return b;
	}
	return found;
}

static bool is_source(const struct resolved_service *s, const struct addr *to)
{
	struct prefix host = prefix_of(to, (uint8_t)addr_bits(to));

	for (size_t n = 0; n < s->n_source; n++)
		if (prefix_contains(&s->source[n], &host))
			return true;
	return false;
}

static uint8_t first_proto(const struct resolved_service *s)
{
	static const uint8_t protos[] = {PROTO_TCP, PROTO_UDP, PROTO_SCTP};

	for (size_t i = 0; i < ARRAY_SIZE(protos); i++)
		if (bits_has(s->proto.bits, protos[i]))
			return protos[i];
	return PROTO_TCP;
}

static void complete(const struct ast_packet *a, const struct resolved_service *s,
		     const struct resolved_backend *b, struct resolved_packet *p)
{
	uint16_t first = s->ports.n ? s->ports.at[0].first : 0;

	if (!a->sport.given)
		p->sport = b && b->port ? b->port : first;
	if (!a->dport.given)
		p->dport = POLICY_EXPECT_SPORT;
}

// The sentence about what differs; NULL: the packet is an answer.
static const char *wrong_with(const struct resolved_service *s, const struct resolved_backend *b,
			      const struct resolved_packet *p)
{
	if (!bits_has(s->proto.bits, p->proto))
		return "the service does not have this protocol";
	if (!b)
		return "the service does not have this backend";
	if (!answers_by(s, b, p->sport))
		return "the backend has another port";
	if (s->mode == SERVICE_FULLNAT && !is_source(s, &p->to))
		return "the packet does not go to a source of the service";
	if (s->mode == SERVICE_FULLNAT && p->dport < NAT_RESERVED)
		return "connections have ports from 1024 on";
	return NULL;
}

void resolve_answer(struct resolver *r, const struct ast_expect *ast, uint32_t service,
		    struct resolved_packet *p)
{
	const struct resolved_service *s = &r->r->services[service];
	const struct resolved_backend *b;
	const char *wrong, *hint = NULL;

	if (r->ast->services.at[service].broken)
		return;
	if (!ast->packet.proto)
		p->proto = first_proto(s);
	b = find_backend(s, p);
	complete(&ast->packet, s, b, p);
	b = find_backend(s, p);
	wrong = wrong_with(s, b, p);
	if (b && b->port && b->port != p->sport)
		hint = arena_printf(&r->r->memory, "from it, port %u", b->port);
	if (wrong)
		diag_error(r->diag, ast->packet.at, hint,
			   "expect: the packet is not an answer of service '%s': %s", s->name,
			   wrong);
}
