// SPDX-License-Identifier: GPL-2.0-only
// Writes the map of own addresses.
#include "ctl/datapath/own.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/vec.h"

static struct own_key key_of(const struct addr *a)
{
	struct own_key key = {.family = a->family};

	memcpy(key.addr, a->bytes, a->family == 4 ? 4 : sizeof(key.addr));
	return key;
}

static bool is_wanted(const struct own_key *key, const struct addr *addrs, size_t n)
{
	for (size_t a = 0; a < n; a++) {
		struct own_key other = key_of(&addrs[a]);

		if (!memcmp(&other, key, sizeof(*key)))
			return true;
	}
	return false;
}

static int cannot_write(int code, struct err *err)
{
	return err_system(err, -code, "cannot write the addresses of this host");
}

static int drop_others(const struct instance *i, const struct addr *addrs, size_t n,
		       struct err *err)
{
	CLEANUP_VEC VEC(struct own_key) gone = {0};
	struct own_key key, *last = NULL;
	int code;

	while (!(code = bpf_map_get_next_key(i->own, last, &key))) {
		if (!is_wanted(&key, addrs, n))
			vec_push(&gone, key);
		last = &key;
	}
	if (code != -ENOENT)
		return cannot_write(code, err);
	vec_each (&gone, one)
		if (bpf_map_delete_elem(i->own, one) && errno != ENOENT)
			return cannot_write(-errno, err);
	return 0;
}

int own_write(const struct instance *i, const struct addr *addrs, size_t n, struct err *err)
{
	const uint32_t one = 1;

	for (size_t a = 0; a < n; a++) {
		struct own_key key = key_of(&addrs[a]);

		if (bpf_map_update_elem(i->own, &key, &one, BPF_ANY) && errno != E2BIG &&
		    errno != ENOSPC)
			return cannot_write(-errno, err);
	}
	return drop_others(i, addrs, n, err);
}
