// SPDX-License-Identifier: GPL-2.0-only
// Finds services that take the same packet: they share an address, a port and a protocol.

#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/ranges.h"
#include "ctl/policy/resolver.h"

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

void resolve_overlaps(struct resolver *r)
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
