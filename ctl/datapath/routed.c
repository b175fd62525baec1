// SPDX-License-Identifier: GPL-2.0-only
// Writes the devices by which frames reach the stack into their map, and which interfaces are
// known into a knob.
#include "ctl/datapath/routed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/maps.h"

void routes_free(struct routes *r)
{
	vec_free(r);
}

static int failed(const char *verb, int code, struct err *err)
{
	return err_system(err, -code, "cannot %s the devices of routes", verb);
}

static int compare_keys(const void *a, const void *b)
{
	const struct routed_key *left = a, *right = b;

	if (left->number != right->number)
		return left->number < right->number ? -1 : 1;
	return left->ifindex == right->ifindex ? 0 : left->ifindex < right->ifindex ? -1 : 1;
}

int routes_read(const struct instance *i, struct routes *ret, struct err *err)
{
	CLEANUP_ROUTES struct routes found = {.known = i->knobs->routed};
	CLEANUP_FREE struct routed_key *keys = NULL;
	CLEANUP_FREE uint32_t *values = NULL;
	uint32_t n;
	int code = map_read(i->routed, sizeof(*keys), WEIR_ROUTED, &keys, &values, &n);

	_Static_assert(sizeof(struct routed) == sizeof(*values), "as map_read() reads them");
	if (code)
		return failed("read", code, err);
	for (uint32_t k = 0; k < n; k++) {
		struct route_device one = {.key = keys[k]};

		memcpy(&one.frames, &values[k], sizeof(one.frames));
		vec_push(&found, one);
	}
	if (n)
		qsort(found.at, n, sizeof(*found.at), compare_keys);
	*ret = found;
	found = (struct routes){0};
	return 0;
}

static const struct route_device *find(const struct routes *r, const struct routed_key *key)
{
	_Static_assert(!offsetof(struct route_device, key), "compared as a key");
	return r->n ? bsearch(key, r->at, r->n, sizeof(*r->at), compare_keys) : NULL;
}

static bool has(const struct routes *r, const struct route_device *wanted)
{
	const struct route_device *one = find(r, &wanted->key);

	return one && !memcmp(&one->frames, &wanted->frames, sizeof(one->frames));
}

// Has `b` all devices of `a`?
static bool covers(const struct routes *b, const struct routes *a, uint64_t numbers)
{
	vec_each (a, one)
		if (numbers & iface_bit(one->key.number) && !has(b, one))
			return false;
	return true;
}

bool routes_equal(const struct routes *a, const struct routes *b, uint64_t numbers)
{
	return !((a->known ^ b->known) & numbers) && covers(b, a, numbers) && covers(a, b, numbers);
}

static void set_known(const struct instance *i, uint64_t known)
{
	__atomic_store_n(&i->knobs->routed, known, __ATOMIC_RELEASE);
}

// full: a bit for each interface with a device that has no room.
static int add_missing(const struct instance *i, const struct routes *old,
		       const struct routes *want, uint64_t *full, struct err *err)
{
	vec_each (want, one) {
		if (has(old, one) || !bpf_map_update_elem(i->routed, &one->key, &one->frames, 0))
			continue;
		if (errno != E2BIG && errno != ENOSPC)
			return failed("write", -errno, err);
		*full |= iface_bit(one->key.number);
	}
	return 0;
}

static int drop_others(const struct instance *i, const struct routes *old,
		       const struct routes *want, struct err *err)
{
	vec_each (old, one)
		if (!find(want, &one->key) && bpf_map_delete_elem(i->routed, &one->key) &&
		    errno != ENOENT)
			return failed("write", -errno, err);
	return 0;
}

// Interfaces that are no longer known first: their rules then match nothing. New devices may only
// have room after the old ones are removed.
int routes_write(const struct instance *i, const struct routes *want, struct err *err)
{
	CLEANUP_ROUTES struct routes old = {0};
	static const struct routes none;
	uint64_t full = 0;
	int code = routes_read(i, &old, err);

	if (code)
		return code;
	if (routes_equal(&old, want, UINT64_MAX))
		return 0;
	set_known(i, old.known & want->known);
	if ((code = add_missing(i, &old, want, &full, err)))
		return code;
	set_known(i, want->known & ~full);
	if ((code = drop_others(i, &old, want, err)) || !full)
		return code;
	full = 0;
	if ((code = add_missing(i, &none, want, &full, err)))
		return code;
	set_known(i, want->known & ~full);
	return 0;
}
