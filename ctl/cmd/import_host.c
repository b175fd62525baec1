// SPDX-License-Identifier: GPL-2.0-only
// Which devices are above the interfaces of the policy, and what this router receives for itself.
#include "ctl/cmd/import_host.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/net/route.h"

static const struct link *find_link(const struct import_host *h, uint32_t index)
{
	for (size_t i = 0; i < h->n_links; i++)
		if (index && h->links[i].index == index)
			return &h->links[i];
	return NULL;
}

static uint64_t bit_of(const struct import_options *options, const char *name)
{
	for (size_t i = 0; i < options->n_interfaces; i++)
		if (!strcmp(options->interfaces[i], name))
			return 1ull << i;
	return 0;
}

// A VLAN receives from the device below it, a bridge or bond from its ports.
static bool take_over(struct import_host *h, size_t i)
{
	const struct link *l = &h->links[i];
	const struct link *lower = l->lower_elsewhere ? NULL : find_link(h, l->lower);
	uint64_t on = h->devices.at[i].on;

	if (lower && strcmp(l->kind, "veth"))
		on |= h->devices.at[lower - h->links].on;
	for (size_t k = 0; k < h->n_links; k++)
		if (h->links[k].master == l->index)
			on |= h->devices.at[k].on;
	if (on == h->devices.at[i].on)
		return false;
	h->devices.at[i].on = on;
	return true;
}

static bool takes_frames(const struct link *l)
{
	static const char *const kinds[] = {"bridge", "macvlan", "macvtap",
					    "ipvlan", "ipvtap",  "openvswitch"};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(l->kind, kinds[i]))
			return true;
	return false;
}

// Also of bridges whose ports are VLANs or bonds above an interface.
static int refuse_bypass(const struct import_host *h, const struct import_options *options,
			 struct err *err)
{
	for (size_t i = 0; i < h->n_links; i++) {
		const struct link *l = &h->links[i];
		uint64_t on = h->devices.at[i].on & ~bit_of(options, l->name);

		for (size_t k = 0; k < options->n_interfaces && takes_frames(l); k++)
			if (on >> k & 1)
				return err_input(err,
						 "the %s '%s' is above '%s': frames that it takes "
						 "do not meet the rules of hook forward",
						 l->kind, l->name, options->interfaces[k]);
	}
	return 0;
}

int import_host_devices(struct import_host *h, const struct import_options *options,
			struct err *err)
{
	bool more = true;

	for (size_t i = 0; i < h->n_links; i++)
		vec_push(&h->devices, ((struct import_device){h->links[i].name,
							      bit_of(options, h->links[i].name)}));
	while (more) {
		more = false;
		for (size_t i = 0; i < h->n_links; i++)
			more |= take_over(h, i);
	}
	return options->forward ? refuse_bypass(h, options, err) : 0;
}

static int read_devices(struct import_host *h, const struct import_options *options,
			struct err *err)
{
	int code = link_list_bare(&h->links, &h->n_links, err);

	return code ? code : import_host_devices(h, options, err);
}

static void set_bit(struct addr *a, unsigned i, bool set)
{
	uint8_t bit = (uint8_t)(0x80 >> i % 8);

	a->bytes[i / 8] = (uint8_t)(set ? a->bytes[i / 8] | bit : a->bytes[i / 8] & ~bit);
}

static void add_broadcast(struct import_host *h, const struct own_addr *own, bool set)
{
	struct addr a = own->addr;
	addr_text text;

	for (unsigned i = own->prefix_len; i < addr_bits(&a); i++)
		set_bit(&a, i, set);
	addr_format(&a, text);
	vec_each (&h->broadcasts, known)
		if (!strcmp(*known, text))
			return;
	vec_push(&h->broadcasts, mem_strdup(text));
}

// Also broadcast addresses of IPv4, with the older form, and the anycast address of routers (RFC
// 4291).
static int read_addresses(struct import_host *h, struct err *err)
{
	CLEANUP_FREE struct own_addr *own = NULL;
	size_t n = 0;
	int code = route_own_addrs(&own, &n, err);

	if (code)
		return code;
	for (size_t i = 0; i < n; i++) {
		bool v4 = own[i].addr.family == 4;
		addr_text text;

		addr_format(&own[i].addr, text);
		vec_push(&h->own, mem_strdup(text));
		if (addr_bits(&own[i].addr) - own[i].prefix_len < 2 || own[i].addr.bytes[0] == 127)
			continue;
		add_broadcast(h, &own[i], false);
		if (v4)
			add_broadcast(h, &own[i], true);
	}
	return 0;
}

int import_host_read(struct import_host *ret, struct import_options *options, struct err *err)
{
	int code = read_devices(ret, options, err);

	if (code)
		return code;
	if (options->forward && (code = read_addresses(ret, err)))
		return code;
	options->devices = ret->devices.at;
	options->n_devices = ret->devices.n;
	options->own = ret->own.at;
	options->n_own = ret->own.n;
	options->broadcasts = ret->broadcasts.at;
	options->n_broadcasts = ret->broadcasts.n;
	return 0;
}

void import_host_free(struct import_host *host)
{
	vec_each (&host->broadcasts, text)
		free((char *)*text);
	vec_each (&host->own, text)
		free((char *)*text);
	vec_free(&host->own);
	vec_free(&host->broadcasts);
	vec_free(&host->devices);
	free(host->links);
	*host = (struct import_host){0};
}
