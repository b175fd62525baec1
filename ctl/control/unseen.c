// SPDX-License-Identifier: GPL-2.0-only
// Compares the receive counters of devices with ours.
#include "ctl/control/unseen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/control/state.h"
#include "ctl/datapath/attach_query.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/iface_table.h"
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

void unseen_note_later(struct unseen *u, uint64_t device, uint64_t ours, uint64_t ms)
{
	bool anew = !u->begun || ours != u->ours || device < u->last;

	if (!anew && ms < WAIT_STEP_MS)
		return; // between two concurrent commands; too short for a result
	if (anew || (device - u->last) * UNSEEN_WAIT_MS < ms * UNSEEN_PACKETS)
		*u = (struct unseen){0};
	unseen_note(u, device, ours);
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
	       (!d->iface.shared ||
		(!attach_query(d->iface.ifindex, i->progs_id, &there, NULL) && there.n == 1));
}

void unseen_choose(const struct instance *i, const struct devices *devices,
		   struct unseen_watch *ret)
{
	*ret = (struct unseen_watch){0};
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		if (!is_ours_alone(i, n, &devices->at[n]))
			continue;
		ret->ifaces |= iface_bit(n);
		ret->index[n] = devices->at[n].iface.ifindex;
	}
}

// Counters of the devices and of the program, by number.
struct unseen_counts {
	uint64_t devices[WEIR_IFACES], ours[WEIR_IFACES];
};

// Packets that devices have received; 0: it cannot be asked.
static int count_devices(const struct unseen_watch *w, uint64_t ret[WEIR_IFACES])
{
	CLEANUP_FREE struct link *links = NULL;
	size_t n_links = 0;
	int code = link_list_bare(&links, &n_links, NULL);

	memset(ret, 0, sizeof(*ret) * WEIR_IFACES);
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		for (size_t l = 0; w->ifaces & iface_bit(n) && l < n_links; l++)
			if (links[l].index == w->index[n])
				ret[n] = links[l].rx_packets;
	return code;
}

// The devices first: what arrives in between counts for the program.
static int count(const struct instance *i, const struct unseen_watch *w, struct unseen_counts *ret)
{
	CLEANUP_FREE struct counters *c = mem_new(struct counters);
	int code = w->ifaces ? count_devices(w, ret->devices) : -ENODEV;

	if (code || (code = counters_read(i, c, NULL)))
		return code;
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		ret->ours[n] = counters_iface(c, n, false).packets;
	return 0;
}

void unseen_look(const struct instance *i, struct unseen_watch *w)
{
	struct unseen_counts c;

	if (count(i, w, &c))
		return;
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (w->ifaces & iface_bit(n))
			unseen_note(&w->at[n], c.devices[n], c.ours[n]);
}

// ---- looks of former commands -------------------------------------------------------------------

static const struct state_kind unseen_kind = {.name = "unseen"};

// Returns when the look was, on the clock of time_ms(CLOCK_BOOTTIME); 0: no look is kept.
static uint64_t read_kept(const char *path, uint32_t progs_id, struct unseen_watch *ret)
{
	CLEANUP_JSON struct json *j = NULL;
	const struct json *list;

	state_read(path, &unseen_kind, &j, NULL);
	if (json_get_u64(j, "progs_id") != progs_id) // looks of another instance
		return 0;
	list = json_get(j, "interfaces");
	for (size_t n = 0; n < json_length(list); n++) {
		const struct json *one = json_at(list, n);

		ret->at[iface_index((uint32_t)json_get_u64(one, "number"))] = (struct unseen){
			.begun = true,
			.growths = (unsigned)json_get_u64(one, "growths"),
			.device = json_get_u64(one, "device"),
			.ours = json_get_u64(one, "ours"),
			.last = json_get_u64(one, "last"),
		};
	}
	return json_get_u64(j, "at_ms");
}

static void write_kept(const char *path, uint32_t progs_id, const struct unseen_watch *w,
		       uint64_t at_ms)
{
	CLEANUP(json_writer_free) struct json_writer file = {0};

	state_add(&file, &unseen_kind);
	json_write_array(&file, "interfaces");
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		const struct unseen *u = &w->at[n];

		if (!(w->ifaces & iface_bit(n)))
			continue;
		json_write_object(&file, NULL);
		json_write_u64(&file, "number", n);
		json_write_u64(&file, "growths", u->growths);
		json_write_u64(&file, "device", u->device);
		json_write_u64(&file, "ours", u->ours);
		json_write_u64(&file, "last", u->last);
		json_write_end(&file);
	}
	json_write_end(&file);
	json_write_u64(&file, "at_ms", at_ms);
	json_write_u64(&file, "progs_id", progs_id);
	json_write_end(&file);
	state_note(path, &file);
}

void unseen_look_kept(const struct instance *i, const struct devices *devices,
		      struct unseen_watch *ret)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/unseen", WEIR_RUN_FOLDER, i->name);
	uint64_t now = time_ms(CLOCK_BOOTTIME), before;
	struct unseen_counts c;

	unseen_choose(i, devices, ret);
	before = read_kept(path, i->progs_id, ret);
	if (count(i, ret, &c))
		return;
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (ret->ifaces & iface_bit(n))
			unseen_note_later(&ret->at[n], c.devices[n], c.ours[n], now - before);
	if (now - before >= WAIT_STEP_MS)
		write_kept(path, i->progs_id, ret, now);
}

// ---- looks of one command -----------------------------------------------------------------------

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
	struct iface iface;

	if (attach->mode != IFACE_NATIVE || is_tested(ifname) ||
	    instance_iface_stored(i, attach->number, &iface, NULL))
		return false;
	w.index[attach->number] = iface.ifindex;
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
