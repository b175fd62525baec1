// SPDX-License-Identifier: GPL-2.0-only
// Writes the map of own addresses.
#include "ctl/datapath/own.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/vec.h"
#include "ctl/datapath/map_keys.h"

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

static int cannot_write(int code, struct err *err)
{
	return err_system(err, -code, "cannot write the addresses of this host");
}

static int read_keys(const struct instance *i, struct own_keys *ret, struct err *err)
{
	void *keys;
	uint32_t n;
	int code = map_keys(i->own, sizeof(struct own_key), WEIR_OWN, &keys, &n);

	if (code)
		return cannot_write(code, err);
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
			return cannot_write(-errno, err);
	return 0;
}

static int drop_others(const struct instance *i, const struct own_keys *old,
		       const struct own_keys *wanted, struct err *err)
{
	vec_each (old, one)
		if (!has_key(wanted, one) && bpf_map_delete_elem(i->own, one) && errno != ENOENT)
			return cannot_write(-errno, err);
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
	return drop_others(i, &old, &wanted, err);
}
