// SPDX-License-Identifier: GPL-2.0-only
// Finds offloads that remove VLAN tags, and the VLAN devices that need the tags.
#include "ctl/control/tags.h"

#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/net/ethtool.h"

#define LAYERS_MAX 8 // the kernel allows as many devices above each other

// On veth the offload of the peer matters.
void tags_read(const struct link *link, struct tags *ret)
{
	bool veth = !strcmp(link->kind, "veth");
	struct link device = *link;
	struct tags t = {.feature = veth ? "txvlan" : "rxvlan"};
	struct ethtool e;

	t.unsure = veth && (link->lower_elsewhere || link_get_by_index(link->lower, &device, NULL));
	memcpy(t.device, device.name, sizeof(t.device));
	if (!t.unsure && !ethtool_get(device.name, &e, NULL))
		t.removed = (veth ? e.tx_vlan : e.rx_vlan) == ETHTOOL_ON;
	*ret = t;
}

static const struct link *find(const struct link *links, size_t n, uint32_t index)
{
	for (size_t l = 0; index && l < n; l++)
		if (links[l].index == index)
			return &links[l];
	return NULL;
}

static bool is_vlan(const struct link *link)
{
	return !strcmp(link->kind, "vlan") && !link->lower_elsewhere;
}

// The interface itself, or the bridge or bond above it that the VLAN device is on, is `base`.
static bool carries(const struct link *links, size_t n, const struct link *link, uint32_t base)
{
	for (unsigned layer = 0; link && layer < LAYERS_MAX; layer++) {
		if (link->index == base)
			return true;
		link = find(links, n, link->master);
	}
	return false;
}

const struct link *tags_vlan_above(const struct link *links, size_t n, const struct link *link)
{
	for (size_t l = 0; l < n; l++) {
		const struct link *lower = &links[l];

		// A tag in a tag: the outer one counts.
		for (unsigned layer = 0; lower && is_vlan(lower) && layer < LAYERS_MAX; layer++)
			if (carries(links, n, link, lower->lower))
				return &links[l];
			else
				lower = find(links, n, lower->lower);
	}
	return NULL;
}

// In generic mode the kernel adds the tag again to sent frames.
static void add_lost(const struct tags_use *use, enum iface_mode mode, const char *vlan,
		     struct text *t)
{
	bool rejects = use->rejects && mode == IFACE_NATIVE && vlan;
	bool services = use->services && mode == IFACE_NATIVE && vlan;

	if (rejects || services)
		text_addf(t, "%s%s%s leave without the tag of '%s'",
			  rejects ? "answers of 'reject'" : "", rejects && services ? " and " : "",
			  services ? "packets of services" : "", vlan);
	if (use->matches)
		text_addf(t, "%srules with 'vlan' do not match", t->len ? ", and " : "");
}

char *tags_warning(const struct tags *t, const char *ifname, enum iface_mode mode, const char *vlan,
		   const struct tags_use *use)
{
	CLEANUP_TEXT struct text lost = {0};

	if (t->removed)
		add_lost(use, mode, vlan, &lost);
	if (!lost.len)
		return NULL;
	return mem_printf(
		"'%s': VLAN tags are removed before XDP sees the packet: %s (ethtool -K %s %s "
		"off)",
		ifname, text_get(&lost), t->device, t->feature);
}
