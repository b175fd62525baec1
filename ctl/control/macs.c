// SPDX-License-Identifier: GPL-2.0-only
// Finds the frames that the kernel accepts on an interface, and the devices that get them.
//
// Those are the frames to the interface, to its VLANs and macvlans, on a bridge port to the bridge;
// and so on, upwards.
#include "ctl/control/macs.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/control/tags.h"
#include "ctl/datapath/stations.h"
#include "ctl/net/link.h"
#include "ctl/net/route.h"

// Properties of all interfaces, by number.
struct above {
	struct stations stations;
	struct routes routes;
	uint64_t present; // a bit for each that is there
	uint32_t forwards[2][WEIR_IFACES];
	uint64_t unsure;                // as in the knobs
	uint64_t members[WEIR_MEMBERS]; // as in the knobs
	uint64_t iface_rest;
	size_t n_members; // also those that have no room
	size_t masters;
};

struct tower {
	const struct link *links;
	size_t n;
	bool *in;              // by place in links: the interface, or a device above it
	struct routed *frames; // by place in links: which frames a device gets
	bool any6;             // the switch that forwards IPv6 on all devices
	bool foreign;          // some switch above it takes frames by rules of its own
};

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(word, *words))
			return true;
	return false;
}

// veth and tunnels have a lower device too, but get no frames from it.
static bool stands_on(const struct link *upper, const struct link *lower)
{
	static const char *const kinds[] = {"vlan",   "macvlan", "macvtap", "ipvlan",
					    "ipvtap", "dsa",     NULL};

	return upper->lower == lower->index && !upper->lower_elsewhere &&
	       is_one_of(upper->kind, kinds);
}

static bool is_above(const struct link *upper, const struct link *lower, struct tower *t)
{
	static const char *const masters[] = {"bridge", "bond", "team", "hsr", NULL};

	if (stands_on(upper, lower))
		return true;
	if (lower->master != upper->index || !strcmp(upper->kind, "vrf"))
		return false;
	if (is_one_of(upper->kind, masters))
		return true;
	t->foreign = true;
	return false;
}

// The place of a device of the tower below this one; t->n: it has no such device.
static size_t lower_of(struct tower *t, const struct link *upper)
{
	size_t n = 0;

	while (n < t->n && !(t->in[n] && is_above(upper, &t->links[n], t)))
		n++;
	return n;
}

// The frames that the device above gets. A bridge can add and remove tags, and ports of a switch
// chip have tags of its own.
static struct routed frames_above(struct routed lower, const struct link *upper)
{
	bool tagged = !strcmp(upper->kind, "vlan");

	if (!strcmp(upper->kind, "bridge") || !strcmp(upper->kind, "dsa") ||
	    (tagged && !upper->vlan))
		lower.any_frame = 1;
	if (tagged && !lower.tags)
		lower.vid = upper->vlan;
	lower.tags = (uint8_t)(lower.tags + tagged);
	return lower;
}

// One device further up; false: no such device.
static bool climb(struct tower *t)
{
	bool grown = false;

	for (size_t n = 0; n < t->n; n++) {
		size_t lower = t->in[n] ? t->n : lower_of(t, &t->links[n]);

		if (lower == t->n)
			continue;
		t->in[n] = grown = true;
		t->frames[n] = frames_above(t->frames[lower], &t->links[n]);
	}
	return grown;
}

static bool has_mac(const struct link *link)
{
	static const uint8_t none[6];

	return memcmp(link->mac, none, sizeof(none)) != 0;
}

static void add(struct stations *s, size_t from, const struct link *link, uint32_t number)
{
	struct station new = {number, station_of(link->mac)};

	for (size_t n = from; n < s->n; n++)
		if (s->at[n].mac == new.mac)
			return;
	if (has_mac(link))
		vec_push(s, new);
}

// The master's address is compared first: most frames on a bridge port are for the bridge.
static void add_tower(struct stations *ret, const struct tower *t, const struct link *base,
		      uint32_t number)
{
	size_t from = ret->n;

	for (size_t n = 0; n < t->n; n++)
		if (t->in[n] && t->links[n].index == base->master)
			add(ret, from, &t->links[n], number);
	add(ret, from, base, number);
	for (size_t n = 0; n < t->n; n++)
		if (t->in[n])
			add(ret, from, &t->links[n], number);
}

static bool forwards(const struct link *link, uint8_t family)
{
	return family == 4 ? link->forwards4 : link->forwards6;
}

// A device that forwards packets of the family: the interface, whose members may not, or one above
// it. For IPv6 the setting `all` decides, and the setting of a device only affects its own link; so
// any one that is enabled counts.
static uint32_t forwarder(const struct tower *t, const struct link *base, uint8_t family)
{
	if (forwards(base, family))
		return base->index;
	for (size_t n = 0; n < t->n; n++)
		if (t->in[n] && forwards(&t->links[n], family))
			return t->links[n].index;
	for (size_t n = 0; t->any6 && family == 6 && n < t->n; n++)
		if (forwards(&t->links[n], family))
			return t->links[n].index;
	return 0;
}

// It has a separate routing table.
static bool is_in_vrf(const struct tower *t, const struct link *link)
{
	for (size_t n = 0; n < t->n; n++)
		if (t->links[n].index == link->master)
			return !strcmp(t->links[n].kind, "vrf");
	return false;
}

// Is the route of a frame that arrives there unknown? The datapath asks for the device that the
// frame arrived on, which for a bond is a member.
static bool is_unsure(const struct tower *t, const struct link *base)
{
	bool asked = strcmp(base->kind, "bond") != 0;

	for (size_t n = 0; n < t->n; n++) {
		if (!t->in[n] || (asked && t->links[n].index == base->index))
			continue;
		if (is_in_vrf(t, &t->links[n]))
			return true;
	}
	return t->foreign;
}

// Where tags are removed, or may be, frames of all VLANs look the same. Asks only if there are
// VLANs.
static bool hides_tags(const struct tower *t, const struct link *base)
{
	struct tags tags = {0};
	bool tagged = false;

	for (size_t n = 0; n < t->n; n++)
		tagged |= t->in[n] && t->frames[n].tags;
	if (tagged)
		tags_read(base, &tags);
	return tags.removed || tags.unsure;
}

// The devices that the route to a source can name. In a VRF other tables have the routes.
static void add_routes(const struct tower *t, const struct link *base, uint32_t number,
		       struct routes *ret)
{
	bool known = !t->foreign, hidden = hides_tags(t, base);
	size_t before = ret->n;

	for (size_t n = 0; known && n < t->n; n++) {
		if (!t->in[n])
			continue;
		known = !is_in_vrf(t, &t->links[n]);
		vec_push(ret, ((struct route_device){.key = {t->links[n].index, number},
						     .frames = t->frames[n]}));
		if (hidden)
			vec_last(ret)->frames.any_frame = 1;
	}
	if (known)
		ret->known |= iface_bit(number);
	else
		ret->n = before;
}

// The kernel gives the program of a bond to its members, and netvsc the program of its device to
// the virtual function below. On all other masters only generic mode works, after the frames have
// passed the lower device.
static void add_members(const struct tower *t, const struct link *base, uint32_t number,
			struct above *ret)
{
	bool overrides_down = !strcmp(base->kind, "bond");

	for (size_t n = 0; n < t->n; n++) {
		const struct link *l = &t->links[n];

		if (l->master != base->index || !(overrides_down || !base->kind[0]))
			continue;
		overrides_down = true;
		if (ret->n_members < WEIR_MEMBERS)
			ret->members[ret->n_members] = IFACE_BUCKET(l->index, number);
		ret->n_members++;
	}
	if (overrides_down && !ret->iface_rest)
		ret->iface_rest = number;
	ret->masters += overrides_down;
}

// If there is only one bond, all its present and future members count.
static void forget_members(struct above *a)
{
	if (a->masters < 2)
		memset(a->members, 0, sizeof(a->members));
}

static void find_interface(const struct devices *d, uint32_t ifindex, uint32_t number, bool any6,
			   struct above *ret)
{
	CLEANUP_FREE bool *in = mem_zalloc(d->n_links ? d->n_links : 1, sizeof(*in));
	CLEANUP_FREE struct routed *frames =
		mem_zalloc(d->n_links ? d->n_links : 1, sizeof(*frames));
	const struct link *links = d->links;
	struct tower t = {links, d->n_links, in, frames, any6, false};

	for (size_t base = 0; base < d->n_links; base++) {
		if (links[base].index != ifindex)
			continue;
		in[base] = true;
		while (climb(&t))
			;
		if (!t.foreign)
			add_tower(&ret->stations, &t, &links[base], number);
		ret->unsure |= (uint64_t)is_unsure(&t, &links[base]) << number;
		add_routes(&t, &links[base], number, &ret->routes);
		ret->forwards[0][number] = forwarder(&t, &links[base], 4);
		ret->forwards[1][number] = forwarder(&t, &links[base], 6);
		add_members(&t, &links[base], number, ret);
		ret->present |= 1ull << number;
		return;
	}
}

static int find_all(const struct devices *d, struct above *ret, struct err *err)
{
	bool any6 = route_forwards_on(6, "all");
	uint64_t numbers = 0;

	if (d->unlisted.kind) {
		if (err)
			*err = d->unlisted;
		return -d->unlisted.code;
	}
	for (uint32_t number = 1; number < WEIR_IFACES; number++) {
		if (d->at[number].state == DEVICE_FREE)
			continue;
		numbers |= 1ull << number;
		find_interface(d, d->at[number].iface.ifindex, number, any6, ret);
	}
	// The only interface is the one that frames come in on, whatever its index has become.
	if (numbers && !(numbers & (numbers - 1)) && !ret->iface_rest)
		ret->iface_rest = (uint64_t)__builtin_ctzll(numbers);
	forget_members(ret);
	return 0;
}

static void above_free(struct above *a)
{
	stations_free(&a->stations);
	routes_free(&a->routes);
}

static void store(__u64 *knob, uint64_t value)
{
	if (*knob != value)
		__atomic_store_n(knob, value, __ATOMIC_RELAXED);
}

static void write_members(const struct instance *i, const struct above *a)
{
	store(&i->knobs->iface_rest, a->iface_rest);
	for (size_t n = 0; n < WEIR_MEMBERS; n++)
		store(&i->knobs->members[n], a->members[n]);
}

static void write_forwards(const struct instance *i, const struct above *a)
{
	store(&i->knobs->unsure, a->unsure);
	for (int family = 0; family < 2; family++)
		for (uint32_t n = 0; n < WEIR_IFACES; n++)
			if (i->knobs->forwards[family][n] != a->forwards[family][n])
				__atomic_store_n(&i->knobs->forwards[family][n],
						 a->forwards[family][n], __ATOMIC_RELAXED);
}

// The last address of an IPv4 subnet, where it is a broadcast address (RFC 919; not in a /31, RFC
// 3021).
static bool broadcast_of(const struct own_addr *own, struct addr *ret)
{
	if (own->addr.family != 4 || own->prefix_len > 30)
		return false;
	*ret = own->addr;
	for (uint32_t bit = own->prefix_len; bit < 32; bit++)
		ret->bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	return true;
}

static int refresh_own(const struct instance *i, struct err *err)
{
	CLEANUP_FREE struct own_addr *own = NULL;
	CLEANUP_VEC VEC(struct addr) all = {0};
	struct addr broadcast;
	size_t n = 0;
	int code = route_own_addrs(&own, &n, err);

	if (code)
		return code;
	for (size_t a = 0; a < n; a++) {
		vec_push(&all, own[a].addr);
		if (broadcast_of(&own[a], &broadcast))
			vec_push(&all, broadcast);
	}
	return own_write(i, all.at, all.n, err);
}

int macs_write(const struct instance *i, const struct devices *devices, struct err *err)
{
	CLEANUP(above_free) struct above want = {0};
	CLEANUP_STATIONS struct stations there = {0};
	int code = find_all(devices, &want, err);

	if (code)
		return code;
	if ((code = stations_read(i, &there, err)))
		return code;
	write_forwards(i, &want);
	write_members(i, &want);
	if ((code = routes_write(i, &want.routes, err)))
		return code;
	if ((code = refresh_own(i, err)))
		return code;
	return stations_equal(&want.stations, &there) ? 0 : stations_write(i, &want.stations, err);
}

int macs_refresh(const struct instance *i, struct err *err)
{
	CLEANUP_DEVICES struct devices devices = {0};
	int code = devices_read(i, &devices, err);

	return code ? code : macs_write(i, &devices, err);
}

// The bond that has a member which the datapath does not know as its own; 0: none.
static uint32_t new_member(const struct instance *i, const struct above *want)
{
	for (size_t n = 0; n < WEIR_MEMBERS; n++)
		if (want->members[n] && want->members[n] != i->knobs->members[n])
			return (uint32_t)(want->members[n] >> 32);
	return 0;
}

static void of_number(const struct stations *all, uint32_t number, struct stations *ret)
{
	vec_each (all, one)
		if (one->number == number)
			vec_push(ret, *one);
}

uint32_t macs_stale(const struct instance *i, const struct devices *devices)
{
	CLEANUP(above_free) struct above want = {0};
	CLEANUP_STATIONS struct stations there = {0};
	uint32_t found = 0;

	if (find_all(devices, &want, NULL) || stations_read(i, &there, NULL))
		return 0;
	found = new_member(i, &want);
	for (uint32_t number = 1; !found && number < WEIR_IFACES; number++) {
		CLEANUP_STATIONS struct stations a = {0}, b = {0};

		if (!(want.present & iface_bit(number)))
			continue;
		of_number(&want.stations, number, &a);
		of_number(&there, number, &b);
		found = stations_equal(&a, &b) ? 0 : number;
	}
	return found;
}

enum macs_routes macs_routes_of(const struct routes *want, const struct routes *there,
				uint32_t number)
{
	uint64_t bit = iface_bit(number);

	if (want->n > WEIR_ROUTED && want->known & bit && !(there->known & bit))
		return MACS_ROUTES_FULL;
	if (!routes_equal(want, there, bit))
		return MACS_ROUTES_STALE;
	return want->known & bit ? MACS_ROUTES_KNOWN : MACS_ROUTES_ELSEWHERE;
}

void macs_routes(const struct instance *i, const struct devices *devices,
		 enum macs_routes ret[WEIR_IFACES])
{
	CLEANUP(above_free) struct above want = {0};
	CLEANUP_ROUTES struct routes there = {0};

	memset(ret, 0, WEIR_IFACES * sizeof(*ret));
	if (find_all(devices, &want, NULL) || routes_read(i, &there, NULL))
		return;
	for (uint32_t number = 1; number < WEIR_IFACES; number++)
		if (want.present & iface_bit(number))
			ret[number] = macs_routes_of(&want.routes, &there, number);
}

bool macs_stale_routes(const struct instance *i, const struct devices *devices)
{
	enum macs_routes routes[WEIR_IFACES];

	macs_routes(i, devices, routes);
	for (uint32_t number = 1; number < WEIR_IFACES; number++)
		if (routes[number] == MACS_ROUTES_STALE)
			return true;
	return false;
}
