// SPDX-License-Identifier: GPL-2.0-only
// Finds why no packet can match: the switch of the loopback device, by which the datapath asks for
// routes, and interfaces whose routes are hidden.
#include "ctl/control/unroutable.h"

#include "common/limits.h"
#include "ctl/base/mem.h"
#include "ctl/control/families.h"
#include "ctl/net/route.h"

#define SWITCH4 "net.ipv4.conf.lo.forwarding=1"
#define SWITCH6 "net.ipv6.conf.lo.forwarding=1"

uint32_t unroutable_of_rule(const struct resolved *r, size_t number)
{
	const struct resolved_rule *rule = &r->rules[number];

	return rule->unroutable ? families_of_rule(r, rule) : 0;
}

uint32_t unroutable_of(const struct resolved *r)
{
	uint32_t needs = 0;

	for (size_t n = 0; n < r->n_rules; n++)
		needs |= unroutable_of_rule(r, n);
	return needs;
}

uint64_t unroutable_on(const struct resolved *r)
{
	uint64_t on = 0;

	for (size_t n = 0; n < r->n_rules; n++)
		if (r->rules[n].unroutable)
			on |= r->rules[n].on.given ? r->rules[n].on.bits[0] : UINT64_MAX;
	return on;
}

bool unroutable_asks(const struct reach *reach, uint64_t on, uint32_t number)
{
	uint8_t class = reach->classes.class[iface_index(number)];

	return on && reach_holds(reach, number) && (!class || on >> (class - 1) & 1);
}

uint32_t unroutable_off(uint32_t needs)
{
	uint32_t off = 0;

	if (needs & FAMILIES_4 && route_forwarding_is_off(4, "lo"))
		off |= FAMILIES_4;
	if (needs & FAMILIES_6 && route_forwarding_is_off(6, "lo"))
		off |= FAMILIES_6;
	return off;
}

const char *unroutable_packets(uint32_t off)
{
	return off == FAMILIES_4 ? " of IPv4" : off == FAMILIES_6 ? " of IPv6" : "";
}

const char *unroutable_mend(uint32_t off)
{
	return off == FAMILIES_4   ? "sysctl -w " SWITCH4
	       : off == FAMILIES_6 ? "sysctl -w " SWITCH6
				   : "sysctl -w " SWITCH4 " " SWITCH6;
}

char *unroutable_gap(enum macs_routes routes, const char *device)
{
	if (routes == MACS_ROUTES_ELSEWHERE)
		return mem_printf(
			"'unroutable' matches no packet on '%s': the interface, or a "
			"device above it, is in a VRF or a port of a switch with rules of "
			"its own (Open vSwitch)",
			device);
	if (routes == MACS_ROUTES_FULL)
		return mem_printf(
			"'unroutable' matches no packet on '%s': the interfaces have more "
			"than %d devices above them",
			device, WEIR_ROUTED);
	return NULL;
}
