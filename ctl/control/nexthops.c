// SPDX-License-Identifier: GPL-2.0-only
// Turns the kernel's answer about the route to a backend into struct backend.
#include "ctl/control/nexthops.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/words.h"

#define USUAL_MTU 1500u

// A failed question is not an answer: the known next hop stays. That this kernel has no such
// family is one.
static int find_unasked(const struct nexthop_answer *answers, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (answers[i].code && answers[i].code != -EOPNOTSUPP &&
		    answers[i].err.kind == ERR_SYSTEM) {
			*err = answers[i].err;
			return answers[i].code;
		}
	return 0;
}

int nexthops_find(const struct addr *dests, size_t n, uint32_t wait_ms, struct nexthop_answer *ret,
		  struct err *err)
{
	CLEANUP_FREE struct addr *asked = mem_zalloc(n, sizeof(*asked));
	CLEANUP_FREE struct nexthop_answer *answers = mem_zalloc(n, sizeof(*answers));
	size_t m = 0;
	int code;

	for (size_t i = 0; i < n; i++)
		if (dests[i].family)
			asked[m++] = dests[i];
	code = m ? nexthop_find(asked, m, wait_ms, answers, err) : 0;
	if (code)
		return code;
	if ((code = find_unasked(answers, m, err)))
		return code;
	m = 0;
	for (size_t i = 0; i < n; i++)
		ret[i] = dests[i].family ? answers[m++] : (struct nexthop_answer){0};
	return 0;
}

static void copy_addr(__u32 to[4], const struct addr *from)
{
	memset(to, 0, 16);
	memcpy(to, from->bytes, from->family == 4 ? 4 : 16);
}

// The first prefix of the backend's family. Set even without a next hop: code that finds one later
// knows only the backend.
static void set_source(const struct nexthops_source *source, struct backend *ret)
{
	for (size_t i = 0; !ret->source_set && i < source->n; i++)
		if (source->at[i].addr.family == ret->family) {
			copy_addr(ret->source, &source->at[i].addr);
			ret->source_len = source->at[i].len;
			ret->source_set = 1;
		}
}

// Without such a prefix the host's own address. False: a tunnel needs one, and the host has none of
// this family.
static bool complete_source(const struct nexthops_source *source, const struct addr *own,
			    struct backend *ret)
{
	if (ret->source_set)
		return true;
	if (own->family != ret->family)
		return !(service_mode_does(source->mode) & MODE_TUNNEL);
	copy_addr(ret->source, own);
	ret->source_len = (__u8)addr_bits(own);
	return true;
}

static void set_hop(const struct nexthop *hop, struct backend *ret)
{
	ret->ifindex = hop->ifindex;
	ret->mtu = hop->mtu < UINT16_MAX ? (__u16)hop->mtu : UINT16_MAX; // no packet is longer
	ret->vlan = hop->vlan;
	memcpy(ret->mac, hop->mac, sizeof(ret->mac));
	memcpy(ret->mac_own, hop->mac_own, sizeof(ret->mac_own));
	ret->no_xmit = hop->xmit == NEXTHOP_XMIT_NO;
}

static char *with_hint(const char *text, const struct err *err)
{
	return err->hint[0] ? mem_printf("%s%s (%s)", text, err->text, err->hint)
			    : mem_printf("%s%s", text, err->text);
}

// This host does not send frames to itself, and a gateway would route frames of mode dr back to us.
static bool usable(const struct nexthops_source *source, const struct nexthop *hop)
{
	return !hop->local && !(source->mode == SERVICE_DR && hop->gateway.family);
}

// Packets of the usual size, in their tunnel: if they do not fit, each sender gets an ICMP error.
static char *check_room(const struct nexthops_source *source, const struct nexthop *hop,
			uint8_t family, const char *name)
{
	uint32_t outer = outer_bytes(source->mode, family);
	uint32_t room = hop->mtu > outer ? hop->mtu - outer : 0;

	if (hop->mtu >= outer + USUAL_MTU || !outer)
		return NULL;
	if (hop->mtu_of_route)
		return mem_printf(
			"packets above %u bytes do not fit into the tunnel, since the route to %s has mtu %u, and are answered with 'too big': ip%s route get %s shows it, and whether it was learned",
			room, name, hop->mtu, family == 6 ? " -6" : "", name);
	return mem_printf(
		"packets above %u bytes do not fit into the tunnel through %s, and are answered with 'too big': ip link set %s mtu %u",
		room, hop->name, hop->name, outer + USUAL_MTU);
}

// The problem of a next hop, as a sentence; NULL: no problem. Whether its device can send:
// control/egress.
static char *check_hop(const struct nexthops_source *source, const struct nexthop *hop,
		       uint8_t family, const char *name)
{
	addr_text gateway;
	choice_text modes;

	if (hop->local)
		return mem_printf("%s is this host: %s", name,
				  service_mode_does(source->mode) & MODE_NAT
					  ? "in this mode it cannot be a backend"
					  : "write 'backend here'");
	if (source->mode == SERVICE_DR && hop->gateway.family)
		return mem_printf(
			"%s is reached through gateway %s: mode dr needs a backend on the same link; mode %s does not",
			name, addr_format(&hop->gateway, gateway),
			choice_modes_that(MODE_TUNNEL, 0, modes));
	return check_room(source, hop, family, name);
}

// A host that does not answer for a while has not moved: forgetting its MAC address would keep
// packets from it when it is back. The number may have belonged to another backend.
static bool stays(const struct nexthop_answer *hop, const struct backend *old,
		  const struct backend *backend)
{
	return hop->silent && old && old->family == backend->family &&
	       !memcmp(old->addr, backend->addr, sizeof(backend->addr)) &&
	       old->ifindex == hop->hop.ifindex;
}

static void compose(const struct lb_member *m, const struct nexthops_source *source,
		    const struct nexthop_answer *hop, const struct backend *old,
		    struct backend *ret, char **ret_why)
{
	struct nexthop next;
	struct addr addr;
	addr_text name;
	char *why;

	lb_member_address(m, &addr);
	*ret = (struct backend){
		.port = m->port,
		.family = addr.family,
		.here = !addr.family,
	};
	if (!addr.family)
		return;
	copy_addr(ret->addr, &addr);
	set_source(source, ret);
	if (!hop)
		return;
	addr_format(&addr, name);
	if (hop->code && !stays(hop, old, ret)) {
		*ret_why = with_hint("no next hop: ", &hop->err);
		return;
	}
	next = hop->hop;
	if (hop->code)
		memcpy(next.mac, old->mac, sizeof(next.mac));
	why = hop->code ? with_hint("the next hop stays, but ", &hop->err)
			: check_hop(source, &next, addr.family, name);
	if (usable(source, &next) && complete_source(source, &next.source, ret))
		set_hop(&next, ret);
	else if (!why)
		why = mem_printf("no address to send from to %s: write 'source ADDRESS'", name);
	if (why)
		*ret_why = why;
}

void nexthops_backend(const struct lb_member *m, const struct nexthops_source *source,
		      const struct nexthop_answer *hop, const struct backend *old,
		      struct backend *ret, char **ret_why)
{
	compose(m, source, hop, old, ret, ret_why);
	lb_backend_complete(ret);
}
