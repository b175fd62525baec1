// SPDX-License-Identifier: GPL-2.0-only
// Finds what an apply warns of: each warning is a sentence of its result.
#include "ctl/control/apply_notes.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/control/nat_sources.h"
#include "ctl/control/pool.h"
#include "ctl/control/tags.h"
#include "ctl/control/unroutable.h"
#include "ctl/control/unseen.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/reach.h"
#include "ctl/net/ethtool.h"

void apply_note_ended(const struct instance *i, const struct candidate *c, struct apply_result *ret)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	struct commit_state state;
	const struct lb_state *b;

	if (commit_read(i, &state, NULL) ||
	    lb_maps_open(i, state.active, LB_SLOTS_USED, &l, NULL) || !l)
		return;
	b = lb_maps_state(l);
	for (size_t n = 0; n < b->n_services; n++)
		if (!c->lb.lb || !lb_state_find(c->lb.lb, b->services[n].name))
			vec_push(
				&ret->warnings,
				mem_printf(
					"service '%s' is no longer in the policy: its packets go to "
					"no backend",
					b->services[n].name));
}

void apply_note_freed(size_t freed, struct apply_result *ret)
{
	if (freed)
		vec_push(&ret->warnings,
			 mem_printf("%zu %s of nat or fullnat ended: no service has their address "
				    "and port any more",
				    freed, num_plural(freed, "connection", "connections")));
}

void apply_note_sources(const struct instance *i, struct apply_result *ret)
{
	struct sentences left = {0};

	if (!nat_sources_left(i, &left, NULL))
		vec_each (&left, text)
			vec_push(&ret->warnings, mem_strdup(*text));
	sentences_free(&left);
}

void apply_note_overrides(const struct lb_state *b, struct apply_result *ret)
{
	for (size_t n = 0; b && n < b->n_services; n++)
		for (uint32_t m = 0; m < b->services[n].n_members; m++) {
			const struct lb_member *member =
				&b->members[b->services[n].first_member + m];
			addr_text name;

			if (member->gone || (member->override == BACKEND_UP && !member->weighed))
				continue;
			vec_push(&ret->warnings,
				 mem_printf(
					 "service '%s': %s stays %s; 'weir undrain %s %s' removes "
					 "the override",
					 b->services[n].name, pool_name(member, name),
					 member->override == BACKEND_DOWN    ? "down"
					 : member->override == BACKEND_DRAIN ? "drained"
									     : "at another weight",
					 b->services[n].name, pool_name(member, name)));
		}
}

void apply_note_merged(const struct instance *i, const struct candidate *c,
		       struct apply_result *ret)
{
	struct ethtool e;
	struct iface iface;

	for (uint32_t n = 0; c->resolved->n_services && instance_next_iface(i, &n, &iface);) {
		if (iface.mode != IFACE_GENERIC || ethtool_get(iface.name, &e, NULL) ||
		    e.gro != ETHTOOL_ON)
			continue;
		vec_push(&ret->warnings,
			 mem_printf("'%s' is in generic mode and merges packets, which are then "
				    "too big for a backend: ethtool -K %s gro off",
				    iface.name, iface.name));
	}
}

static void note_tags_of(const struct iface *iface, const struct tags_use *use,
			 const struct link *links, size_t n, struct apply_result *ret)
{
	const struct link *vlan;
	struct link link;
	struct tags tags;
	char *text;

	if (link_get_by_index(iface->ifindex, &link, NULL))
		return;
	tags_read(&link, &tags);
	vlan = tags_vlan_above(links, n, &link);
	if ((text = tags_warning(&tags, iface->name, iface->mode, vlan ? vlan->name : NULL, use)))
		vec_push(&ret->warnings, text);
}

void apply_note_tags(const struct instance *i, const struct candidate *c, struct apply_result *ret)
{
	const struct tags_use use = {
		.rejects = c->image->config.rejects,
		.services = c->resolved->n_services,
		.matches = c->image->matrix[MATRIX_RULES].use[FIELD_VLAN],
	};
	CLEANUP_FREE struct link *links = NULL;
	struct reach reach;
	struct iface iface;
	size_t n_links;

	if (reach_read(i, ret->generation, &reach, NULL) || link_list(&links, &n_links, NULL))
		return;
	for (uint32_t n = 0; instance_next_iface(i, &n, &iface);)
		if (iface.state == IFACE_ATTACHED && (!reach.named || reach.classes.class[n]))
			note_tags_of(&iface, &use, links, n_links, ret);
}

void apply_note_routes(const struct instance *i, const struct candidate *c,
		       struct apply_result *ret)
{
	CLEANUP_DEVICES struct devices devices = {0};
	enum macs_routes routes[WEIR_IFACES];
	uint64_t on = unroutable_on(c->resolved);
	struct reach reach;

	if (!on || reach_read(i, ret->generation, &reach, NULL) || devices_read(i, &devices, NULL))
		return;
	macs_routes(i, &devices, routes);
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		char *text = unroutable_asks(&reach, on, n)
				     ? unroutable_gap(routes[n], devices.at[n].iface.name)
				     : NULL;

		if (text)
			vec_push(&ret->warnings, text);
	}
}

void apply_note_unseen(const char *ifname, struct apply_result *ret)
{
	CLEANUP_UNSEEN struct unseen_finding f = unseen_finding(ifname);

	vec_push(&ret->warnings, mem_printf("'%s' %s (%s)", ifname, f.text, f.mend));
}

void apply_note_entries_only(const struct instance *i, struct apply_result *ret)
{
	struct reach reach;
	struct iface iface;

	if (reach_read(i, ret->generation, &reach, NULL) || !reach.named)
		return;
	for (uint32_t n = 0; instance_next_iface(i, &n, &iface);)
		if (!reach.classes.class[n])
			memcpy(*vec_add(&ret->entries_only), iface.name, sizeof(iface.name));
}
