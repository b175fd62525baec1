// SPDX-License-Identifier: GPL-2.0-only
// Makes, inherits, reads and writes the maps below gen/N/dynamic/.
#include "ctl/datapath/sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/parts.h"

// A batch needs room for the longest chain of a bucket of the kernel's hash.
#define BATCH 4096

// The kernel gives the free elements of an LRU map to a CPU in batches of this size, and evicts
// others when a batch is used up. With one more batch for each CPU, `max` addresses always fit.
#define LRU_BATCH 128

static char *sets_folder(const char *generation_folder)
{
	return mem_printf("%s/" SETS_FOLDER, generation_folder);
}

static int capacity(uint32_t max, uint32_t *ret, struct err *err)
{
	size_t cpus;
	int code = percpu_count(&cpus, err);

	if (code)
		return code;
	*ret = max + LRU_BATCH * (uint32_t)cpus;
	return 0;
}

// Calls take(context, keys, values, n) for all addresses of a map, a batch at a time.
static int each_batch(int fd,
		      int (*take)(void *context, const struct policy_set_key *keys,
				  const struct policy_set_value *values, uint32_t n),
		      void *context)
{
	CLEANUP_FREE struct policy_set_key *keys = mem_zalloc(BATCH, sizeof(*keys));
	CLEANUP_FREE struct policy_set_value *values = mem_zalloc(BATCH, sizeof(*values));
	uint32_t next = 0, n, *from = NULL;
	int code, end;

	do {
		n = BATCH;
		end = bpf_map_lookup_batch(fd, from, &next, keys, values, &n, NULL);
		if (end && errno != ENOENT)
			return -errno;
		if ((code = take(context, keys, values, n)))
			return code;
		from = &next;
	} while (!end);
	return 0;
}

static int copy_batch(void *context, const struct policy_set_key *keys,
		      const struct policy_set_value *values, uint32_t n)
{
	return n && bpf_map_update_batch(*(int *)context, keys, values, &n, NULL) ? -errno : 0;
}

// The set of this name in generation folder `previous`, and its capacity. *ret_fd stays -1 if it
// does not exist.
static int open_previous(const char *previous, const char *name, int *ret_fd,
			 uint32_t *ret_capacity, struct err *err)
{
	CLEANUP_FREE char *folder = previous ? sets_folder(previous) : NULL;
	int code = previous ? bpffs_get(folder, name, ret_fd, err) : -ENOENT;

	if (code)
		return code == -ENOENT ? 0 : code;
	return mapping_entries(*ret_fd, ret_capacity, err);
}

int sets_provide(const char *previous, const char *name, uint32_t max, int *ret_fd, struct err *err)
{
	CLEANUP_FD int old = -1, fd = -1;
	uint32_t room, old_room = 0;
	int code = capacity(max, &room, err);

	if (code || (code = open_previous(previous, name, &old, &old_room, err)))
		return code;
	if (old_room == room) {
		*ret_fd = TAKE_FD(old);
		return 0;
	}
	fd = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "weir_set", sizeof(struct policy_set_key),
			    sizeof(struct policy_set_value), room, NULL);
	if (fd < 0)
		return err_system(err, -fd, "cannot create the set '@%s' of %u addresses", name,
				  max);
	if (old >= 0 && (code = each_batch(old, copy_batch, &fd)))
		return err_system(err, -code, "cannot copy the set '@%s'", name);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int sets_find(const struct generation_about *about, const char *name,
	      const struct generation_about_set **ret, struct err *err)
{
	for (uint32_t s = 0; s < about->n_sets && s < POLICY_SETS_MAX; s++)
		if (!strcmp(about->sets[s].name, name)) {
			*ret = &about->sets[s];
			return 0;
		}
	err_input(err, "the active policy has no dynamic set '%s'", name);
	return err_hint(err, "set %s dynamic max 65536 expire 10m", name);
}

static int open_set(const struct instance *i, const struct generation_about_set *set, int *ret_fd,
		    struct err *err)
{
	CLEANUP_FREE char *generation = mem_printf("%s/gen/%u", i->folder, set->generation);
	CLEANUP_FREE char *folder = sets_folder(generation);
	int code = bpffs_get(folder, set->name, ret_fd, err);

	return code == -ENOENT
		       ? err_stated(err, ENOENT, "the set '@%s' is no longer in bpffs", set->name)
		       : code;
}

static struct policy_set_key key_of(const struct generation_about_set *set, const struct addr *a)
{
	struct prefix p = prefix_of(a, a->family == 4 ? set->mask4 : set->mask6);
	struct policy_set_key key = {.family = a->family};

	memcpy(key.addr, p.addr.bytes, a->family == 4 ? 4 : 16);
	return key;
}

static struct set_address address_of(const struct generation_about_set *set,
				     const struct policy_set_key *key,
				     const struct policy_set_value *value)
{
	struct set_address address = {.until = value->until, .packets = value->packets};

	address.prefix.addr.family = (uint8_t)key->family;
	memcpy(address.prefix.addr.bytes, key->addr, key->family == 4 ? 4 : 16);
	address.prefix.len = key->family == 4 ? set->mask4 : set->mask6;
	return address;
}

static int compare(const void *a, const void *b)
{
	const struct set_address *x = a, *y = b;

	return prefix_compare(&x->prefix, &y->prefix);
}

// Rules change the set at the same time: an address may be missing, and at most twice the size of
// the set is read.
static int read_keys(int fd, const struct generation_about_set *set, struct set_addresses *ret)
{
	struct policy_set_key key, next, *at = NULL;
	struct policy_set_value value;
	int code;

	for (uint32_t n = 0; n < 2 * set->max; n++) {
		if ((code = bpf_map_get_next_key(fd, at, &next)))
			return code == -ENOENT ? 0 : code;
		key = next;
		at = &key;
		code = bpf_map_lookup_elem(fd, &key, &value);
		if (code == -ENOENT)
			continue;
		if (code)
			return code;
		vec_push(ret, address_of(set, &key, &value));
	}
	return 0;
}

int sets_read(const struct instance *i, const struct generation_about_set *set,
	      struct set_addresses *ret, struct err *err)
{
	CLEANUP_FD int fd = -1;
	int code = open_set(i, set, &fd, err);

	*ret = (struct set_addresses){0};
	if (code)
		return code;
	if ((code = read_keys(fd, set, ret)))
		err_system(err, -code, "cannot read the set '@%s'", set->name);
	if (ret->n)
		qsort(ret->at, ret->n, sizeof(*ret->at), compare);
	return code;
}

struct set_fill {
	uint64_t now;
	size_t n;
};

static int fill_batch(void *context, const struct policy_set_key *keys,
		      const struct policy_set_value *values, uint32_t n)
{
	struct set_fill *fill = context;

	for (uint32_t k = 0; k < n; k++)
		fill->n += values[k].until > fill->now;
	return 0;
}

int sets_fill(const struct instance *i, const struct generation_about_set *set, uint64_t now,
	      size_t *ret, struct err *err)
{
	struct set_fill fill = {.now = now};
	CLEANUP_FD int fd = -1;
	int code = open_set(i, set, &fd, err);

	*ret = 0;
	if (code)
		return code;
	if ((code = each_batch(fd, fill_batch, &fill)))
		return err_system(err, -code, "cannot read the set '@%s'", set->name);
	*ret = fill.n;
	return 0;
}

// The packets of an entry so far. Packets that arrive before it is written again are lost.
static uint64_t counted(int fd, const struct policy_set_key *key,
			const struct generation_about_set *set)
{
	struct policy_set_value value;

	return set->count && !bpf_map_lookup_elem(fd, key, &value) ? value.packets : 0;
}

int sets_add(const struct instance *i, const struct generation_about_set *set,
	     const struct addr *addrs, size_t n, uint64_t until, struct err *err)
{
	CLEANUP_FD int fd = -1;
	int code = open_set(i, set, &fd, err);

	if (code)
		return code;
	for (size_t a = 0; a < n; a++) {
		struct policy_set_key key = key_of(set, &addrs[a]);
		struct policy_set_value value = {.until = until, .packets = counted(fd, &key, set)};

		if (bpf_map_update_elem(fd, &key, &value, BPF_ANY))
			return err_system(err, errno, "cannot write the set '@%s'", set->name);
	}
	return 0;
}

int sets_remove(const struct instance *i, const struct generation_about_set *set,
		const struct addr *addrs, size_t n, size_t *ret_removed, struct err *err)
{
	CLEANUP_FD int fd = -1;
	int code = open_set(i, set, &fd, err);

	*ret_removed = 0;
	if (code)
		return code;
	for (size_t a = 0; a < n; a++) {
		struct policy_set_key key = key_of(set, &addrs[a]);

		if (!bpf_map_delete_elem(fd, &key))
			++*ret_removed;
		else if (errno != ENOENT)
			return err_system(err, errno, "cannot write the set '@%s'", set->name);
	}
	return 0;
}
