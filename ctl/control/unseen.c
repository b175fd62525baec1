// SPDX-License-Identifier: GPL-2.0-only
// Compares the receive counters of devices with ours.
#include "ctl/control/unseen.h"

#include <stdlib.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/attach_query.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/instance_ifaces.h"
#include "ctl/net/driver.h"
#include "ctl/net/ethtool.h"
#include "ctl/net/link.h"

#define WAIT_STEP_MS  100
#define FIRST_STEP_MS 20

void unseen_note(struct unseen *u, uint64_t device, uint64_t ours)
{
	if (!u->begun)
		*u = (struct unseen){.begun = true, .device = device, .ours = ours, .last = device};
	u->seen |= ours != u->ours;
	u->growths += device > u->last;
	u->last = device;
	u->packets = device - u->device;
}

bool unseen_is_doubtful(const struct unseen *u)
{
	return !u->seen && u->last > u->device && u->packets >= UNSEEN_PACKETS;
}

bool unseen_is_certain(const struct unseen *u)
{
	return unseen_is_doubtful(u) && u->growths >= 2;
}

// Packets of a device that the datapath knows by another index are counted elsewhere.
static bool is_ours_alone(const struct instance *i, uint32_t number, const struct device *d)
{
	struct attached_list there;

	return d->state == DEVICE_HELD && d->iface.state == IFACE_ATTACHED &&
	       d->iface.mode == IFACE_NATIVE &&
	       iface_table_find(i->knobs, d->iface.ifindex) == number &&
	       !attach_query(d->iface.ifindex, i->progs_id, &there, NULL) && there.n == 1;
}

void unseen_choose(const struct instance *i, struct unseen_watch *ret)
{
	struct device d;

	*ret = (struct unseen_watch){0};
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (!device_read(i, n, &d, NULL) && is_ours_alone(i, n, &d))
			ret->ifaces |= iface_bit(n);
}

// Packets that a device has received; 0: it cannot be asked.
static uint64_t received(const struct instance *i, uint32_t number)
{
	struct iface iface;
	struct link link;

	if (instance_iface(i, number, &iface, NULL) ||
	    link_get_by_index(iface.ifindex, &link, NULL))
		return 0;
	return link.rx_packets;
}

// The devices first: what arrives in between counts for the program.
void unseen_look(const struct instance *i, struct unseen_watch *w)
{
	CLEANUP_FREE struct counters *c = mem_new(struct counters);
	uint64_t devices[WEIR_IFACES];

	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		devices[n] = w->ifaces & iface_bit(n) ? received(i, n) : 0;
	if (counters_read(i, c, NULL))
		return;
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (w->ifaces & iface_bit(n))
			unseen_note(&w->at[n], devices[n], counters_iface(c, n, false).packets);
}

static void pause_ms(unsigned ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&time, NULL);
}

static bool is_any_open(const struct unseen_watch *w)
{
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (unseen_is_doubtful(&w->at[n]) && !unseen_is_certain(&w->at[n]))
			return true;
	return false;
}

void unseen_wait(const struct instance *i, struct unseen_watch *w)
{
	for (unsigned ms = 0; ms < UNSEEN_WAIT_MS && is_any_open(w); ms += WAIT_STEP_MS) {
		pause_ms(WAIT_STEP_MS);
		unseen_look(i, w);
	}
}

static bool is_tested(const char *ifname)
{
	char name[32];
	const struct driver *driver =
		ethtool_driver(ifname, name, sizeof(name)) ? NULL : driver_find(name);

	return driver && driver->tested;
}

bool unseen_at_attach(const struct instance *i, const char *ifname,
		      const struct attach_result *attach)
{
	struct unseen_watch w = {.ifaces = iface_bit(attach->number)};
	const struct unseen *u = &w.at[attach->number];

	if (attach->mode != IFACE_NATIVE || is_tested(ifname))
		return false;
	unseen_look(i, &w);
	for (unsigned ms = 0; ms < UNSEEN_FIRST_MS && !u->seen && !unseen_is_certain(u);
	     ms += FIRST_STEP_MS) {
		pause_ms(FIRST_STEP_MS);
		unseen_look(i, &w);
	}
	return unseen_is_certain(u);
}

struct unseen_finding unseen_finding(const char *ifname)
{
	char driver[32] = "unknown";

	ethtool_driver(ifname, driver, sizeof(driver));
	return (struct unseen_finding){
		.text = mem_printf("receives packets that Weir does not see: driver '%s' does not "
				   "run the program, or another program has taken its place",
				   driver),
		.mend = mem_printf("weir detach %s, weir attach %s --mode generic", ifname, ifname),
	};
}

void unseen_finding_free(struct unseen_finding *f)
{
	free(f->text);
	free(f->mend);
}
