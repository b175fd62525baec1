// SPDX-License-Identifier: GPL-2.0-only
// Compares the interface table and the interfaces of the policy with the links that exist.
#include "ctl/control/reattach.h"

#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/control/bringup.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/device.h"

static const struct link *find_link(const struct link *links, size_t n, const char *name)
{
	for (size_t l = 0; l < n; l++)
		if (!strcmp(links[l].name, name) && links[l].type == ARPHRD_ETHER)
			return &links[l];
	return NULL;
}

static void add(struct reattach_list *list, const char *name, bool returned, enum attach_mode mode,
		uint32_t generation)
{
	struct reattach_device d = {
		.returned = returned, .mode = (uint8_t)mode, .generation = generation};

	vec_each (list, one)
		if (!strcmp(one->name, name))
			return;
	snprintf(d.name, sizeof(d.name), "%s", name);
	vec_push(list, d);
}

// Uses the mode of the previous device; falls back if the new one has no native mode.
static int add_returned(const struct instance *i, const struct link *links, size_t n, bool *held,
			struct reattach_list *ret, struct err *err)
{
	for (uint32_t number = 1; number < WEIR_IFACES; number++) {
		struct device d;
		int code = device_read(i, number, &d, err);

		if (code)
			return code;
		for (size_t l = 0; l < n && d.state != DEVICE_FREE; l++)
			held[l] |= d.state != DEVICE_GONE && links[l].index == d.iface.ifindex;
		if ((d.state == DEVICE_GONE || d.state == DEVICE_ANOTHER) &&
		    find_link(links, n, d.iface.name))
			add(ret, d.iface.name, true,
			    d.iface.mode == IFACE_NATIVE ? ATTACH_AUTO : ATTACH_GENERIC,
			    d.iface.generation);
	}
	return 0;
}

// During a trial it is open which policy will be asked.
static int add_named(const struct instance *i, const struct link *links, size_t n,
		     const bool *is_candidate, struct reattach_list *ret, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	struct commit_state state;
	int code = commit_read(i, &state, err);

	if (code || state.deadline || !state.active)
		return code;
	if ((code = generation_read_about(i, state.active, about, err)))
		return code;
	for (size_t l = 0; l < n; l++) {
		uint8_t class = is_candidate[l] ? generation_class(about, links[l].name) : 0;

		if (class && links[l].type == ARPHRD_ETHER)
			add(ret, links[l].name, false, (enum attach_mode)about->modes[class - 1],
			    state.active);
	}
	return 0;
}

int reattach_find(const struct instance *i, const struct link *links, size_t n,
		  bool (*is_new)(void *ctx, uint32_t ifindex), void *ctx, struct reattach_list *ret,
		  struct err *err)
{
	CLEANUP_FREE bool *known = mem_zalloc(n, sizeof(*known));
	int code = add_returned(i, links, n, known, ret, err);
	bool any = false;

	if (code)
		return code;
	for (size_t l = 0; l < n; l++) {
		known[l] = !known[l] && is_new(ctx, links[l].index); // from here on: a candidate
		any |= known[l];
	}
	return any ? add_named(i, links, n, known, ret, err) : 0;
}

int reattach(const char *instance, const char *command, const struct reattach_device *device,
	     struct attach_result *ret, struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	int code = bringup_open_running(instance, command, &b, err);

	return code ? code
		    : bringup_attach(&b, device->name, (enum attach_mode)device->mode,
				     device->generation, NULL, ret, err);
}
