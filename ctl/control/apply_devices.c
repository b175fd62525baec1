// SPDX-License-Identifier: GPL-2.0-only
// Finds the devices that a policy names.
#include "ctl/control/apply_devices.h"

#include <errno.h>
#include <string.h>

#include "ctl/control/tags.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/net/link.h"

// Names the existing alternatives.
static int refuse_absent(const struct candidate *c, const struct resolved_interface *iface,
			 struct err *err)
{
	struct link link;
	int code = link_get(iface->name, &link, err);

	if (code)
		err_prefix(err, "%s", diag_place(c->diag, iface->at, true));
	return code;
}

static int check_present(const struct candidate *c, const struct policy_devices *d,
			 struct apply_result *ret, struct err *err)
{
	const struct resolved *r = c->resolved;

	for (size_t i = 0; i < r->n_interfaces; i++) {
		const struct resolved_interface *iface = &r->interfaces[i];
		bool found = false;

		for (size_t n = 0; n < d->n; n++)
			found |= d->at[n].class == i + 1;
		if (found)
			continue;
		if (!iface->pattern && !iface->optional)
			return refuse_absent(c, iface, err);
		vec_push(&ret->absent, mem_strdup(iface->name));
	}
	return 0;
}

int apply_devices_find(const struct candidate *c, struct policy_devices *d,
		       struct apply_result *ret, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_FREE struct link *links = NULL;
	size_t n = 0;
	int code = link_list(&links, &n, err);

	if (code)
		return code;
	candidate_about(c, about);
	for (size_t l = 0; l < n; l++) {
		uint8_t class = generation_class(about, links[l].name);

		if (class)
			vec_push(d,
				 ((struct policy_device){links[l], class,
							 c->resolved->interfaces[class - 1].mode}));
	}
	return check_present(c, d, ret, err);
}

void apply_devices_attached(const struct candidate *c, const struct instance *i,
			    struct policy_devices *ret)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	struct iface iface;
	struct link link;

	candidate_about(c, about);
	for (uint32_t n = 0; instance_next_iface(i, &n, &iface);) {
		uint8_t class;

		if (iface.state != IFACE_ATTACHED || link_get_by_index(iface.ifindex, &link, NULL))
			continue;
		class = generation_class(about, link.name);
		if (class || !about->n_ifaces)
			vec_push(ret, ((struct policy_device){.link = link, .class = class}));
	}
}

static bool brings_vlan(const struct candidate *c, bool quick)
{
	for (size_t r = 0; r < c->image->n_rules; r++)
		if (c->resolved->rules[r].vlan.given && candidate_brings(c, r, quick))
			return true;
	return false;
}

int apply_devices_check_tags(const struct candidate *c, const struct apply_options *o,
			     const struct policy_devices *d, struct apply_result *ret,
			     struct err *err)
{
	if (o->force || !brings_vlan(c, o->quick))
		return 0;
	vec_each (d, device) {
		struct tags tags;

		tags_read(&device->link, &tags);
		if (tags.removed) {
			err_refused(err,
				    "rules with 'vlan' cannot match on '%s': the device removes "
				    "the tag before XDP sees the packet",
				    device->link.name);
			err_hint(err, "ethtool -K %s %s off", tags.device, tags.feature);
			return -EOPNOTSUPP;
		}
		if (tags.unsure)
			vec_push(&ret->warnings,
				 mem_printf(
					 "'%s' shows VLAN tags only after 'ethtool -K PEER txvlan "
					 "off' on its peer",
					 device->link.name));
	}
	return 0;
}

void apply_devices_missing(const struct instance *i, const struct policy_devices *d,
			   struct policy_devices *missing)
{
	uint32_t number;

	vec_each (d, device)
		if (device_find_held(i, device->link.index, &number, NULL) || !number)
			vec_push(missing, *device);
}
