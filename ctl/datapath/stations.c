// SPDX-License-Identifier: GPL-2.0-only
// Writes the addresses of this host: the first MAC address of an interface into the knobs, the
// others and IP addresses into maps.
#include "ctl/datapath/stations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/maps.h"

uint64_t station_of(const uint8_t mac[6])
{
	uint64_t word = 0;

	for (int n = 0; n < 6; n++)
		word |= (uint64_t)mac[n] << n * 8;
	return word;
}

void stations_free(struct stations *s)
{
	vec_free(s);
}

static int cannot_read(int code, struct err *err)
{
	return err_system(err, -code, "cannot read the MAC addresses of interfaces");
}

static int cannot_write(int code, struct err *err)
{
	return err_system(err, -code, "cannot write the MAC addresses of interfaces");
}

// The stations in the map.
static int read_map(const struct instance *i, struct stations *ret, struct err *err)
{
	CLEANUP_FREE void *all = NULL;
	const struct station_key *keys;
	uint32_t n;
	int code = map_keys(i->stations, sizeof(*keys), WEIR_STATIONS, &all, &n);

	if (code)
		return cannot_read(code, err);
	keys = all;
	for (uint32_t k = 0; k < n; k++)
		vec_push(ret, ((struct station){.number = keys[k].number, .mac = keys[k].mac}));
	return 0;
}

int stations_read(const struct instance *i, struct stations *ret, struct err *err)
{
	CLEANUP_STATIONS struct stations found = {0}, others = {0};
	int code = read_map(i, &others, err);

	if (code)
		return code;
	for (uint32_t n = 0; n < WEIR_IFACES; n++) {
		uint64_t first = i->knobs->station[n];

		if (!first)
			continue;
		vec_push(&found, ((struct station){.number = n, .mac = first & ~STATION_KNOWN}));
		vec_each (&others, other)
			if (other->number == n)
				vec_push(&found, *other);
	}
	*ret = found;
	found = (struct stations){0};
	return 0;
}

static bool has(const struct stations *s, const struct station *wanted)
{
	vec_each (s, one)
		if (one->number == wanted->number && one->mac == wanted->mac)
			return true;
	return false;
}

bool stations_equal(const struct stations *a, const struct stations *b)
{
	vec_each (a, one)
		if (!has(b, one))
			return false;
	return a->n == b->n;
}

static void set_first(const struct instance *i, uint32_t number, uint64_t word)
{
	__atomic_store_n(&i->knobs->station[iface_index(number)], word, __ATOMIC_RELEASE);
}

// All stations, also the first ones: a frame may meet the knob before the change and the map after
// it.
static int add_all(const struct instance *i, const struct stations *want, bool full[WEIR_IFACES],
		   struct err *err)
{
	uint32_t one = 1;

	vec_each (want, station) {
		struct station_key key = {.number = station->number, .mac = station->mac};

		if (!bpf_map_update_elem(i->stations, &key, &one, BPF_ANY))
			continue;
		if (errno != E2BIG && errno != ENOSPC)
			return cannot_write(-errno, err);
		full[iface_index(station->number)] = true;
	}
	return 0;
}

static void set_firsts(const struct instance *i, const struct stations *want,
		       const bool full[WEIR_IFACES])
{
	uint64_t first[WEIR_IFACES] = {0};

	for (size_t n = want->n; n; n--) {
		const struct station *s = &want->at[n - 1];

		if (s->number < WEIR_IFACES && !full[s->number])
			first[s->number] = s->mac | STATION_KNOWN;
	}
	for (uint32_t n = 0; n < WEIR_IFACES; n++)
		if (i->knobs->station[n] != first[n])
			set_first(i, n, first[n]);
}

static bool stays(const struct instance *i, const struct stations *want, const struct station *s)
{
	uint64_t first = i->knobs->station[iface_index(s->number)];

	return first != (s->mac | STATION_KNOWN) && has(want, s);
}

static int drop_others(const struct instance *i, const struct stations *want, struct err *err)
{
	CLEANUP_STATIONS struct stations there = {0};
	int code = read_map(i, &there, err);

	if (code)
		return code;
	vec_each (&there, station) {
		struct station_key key = {.number = station->number, .mac = station->mac};

		if (!stays(i, want, station) && bpf_map_delete_elem(i->stations, &key) &&
		    errno != ENOENT)
			return cannot_write(-errno, err);
	}
	return 0;
}

int stations_write(const struct instance *i, const struct stations *want, struct err *err)
{
	bool full[WEIR_IFACES] = {false};
	int code = add_all(i, want, full, err);

	if (code)
		return code;
	set_firsts(i, want, full);
	return drop_others(i, want, err);
}

// ---- addresses ----------------------------------------------------------------------------------

struct own_keys {
	struct own_key *at;
	size_t n, cap;
};

static struct own_key key_of(const struct addr *a)
{
	struct own_key key = {.family = a->family};

	memcpy(key.addr, a->bytes, a->family == 4 ? 4 : sizeof(key.addr));
	return key;
}

static int cannot_write_own(int code, struct err *err)
{
	return err_system(err, -code, "cannot write the addresses of this host");
}

static int read_keys(const struct instance *i, struct own_keys *ret, struct err *err)
{
	void *keys;
	uint32_t n;
	int code = map_keys(i->own, sizeof(struct own_key), WEIR_OWN, &keys, &n);

	if (code)
		return cannot_write_own(code, err);
	*ret = (struct own_keys){.at = keys, .n = n, .cap = WEIR_OWN};
	return 0;
}

static bool has_key(const struct own_keys *keys, const struct own_key *key)
{
	vec_each (keys, one)
		if (!memcmp(one, key, sizeof(*key)))
			return true;
	return false;
}

static int add_missing(const struct instance *i, const struct own_keys *old,
		       const struct own_keys *wanted, struct err *err)
{
	const uint32_t set = 1;

	vec_each (wanted, one)
		if (!has_key(old, one) && bpf_map_update_elem(i->own, one, &set, BPF_ANY) &&
		    errno != E2BIG && errno != ENOSPC)
			return cannot_write_own(-errno, err);
	return 0;
}

static int drop_own(const struct instance *i, const struct own_keys *old,
		    const struct own_keys *wanted, struct err *err)
{
	vec_each (old, one)
		if (!has_key(wanted, one) && bpf_map_delete_elem(i->own, one) && errno != ENOENT)
			return cannot_write_own(-errno, err);
	return 0;
}

int own_write(const struct instance *i, const struct addr *addrs, size_t n, struct err *err)
{
	CLEANUP_VEC struct own_keys old = {0}, wanted = {0};
	int code = read_keys(i, &old, err);

	if (code)
		return code;
	for (size_t a = 0; a < n; a++)
		vec_push(&wanted, key_of(&addrs[a]));
	if ((code = add_missing(i, &old, &wanted, err)))
		return code;
	return drop_own(i, &old, &wanted, err);
}
