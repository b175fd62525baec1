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
#include "ctl/datapath/percpu.h"

// A batch has to hold the longest chain of one bucket of the kernel's hash.
#define BATCH 4096

// The kernel hands out places of an LRU map by so many to a CPU, and pushes entries out when none of those
// is left: with them on top `max` entries always fit.
#define LRU_BATCH 128

static char *sets_folder(const char *generation_folder)
{
	return mem_printf("%s/" SETS_FOLDER, generation_folder);
}

static int capacity(uint32_t max, uint32_t *ret, struct err *err)
{
	size_t cpus;
	int code = percpu_count(&cpus, err);

	if (!code)
		*ret = max + LRU_BATCH * (uint32_t)cpus;
	return code;
}

// Calls take(context, keys, values, n) for all entries of a map, a batch at a time.
static int each_batch(int fd,
		      int (*take)(void *context, const struct policy_set_key *keys,
				  const struct policy_set_value *values, uint32_t n),
		      void *context)
{
	CLEANUP_FREE struct policy_set_key *keys = mem_zalloc(BATCH, sizeof(*keys));
	CLEANUP_FREE struct policy_set_value *values = mem_zalloc(BATCH, sizeof(*values));
	uint32_t next = 0, n = BATCH;
	bool first = true;
	int code = 0, last = 0;

	while (!code && !last) {
		n = BATCH;
		last = bpf_map_lookup_batch(fd, first ? NULL : &next, &next, keys, values, &n,
					    NULL);
		if (last && errno != ENOENT)
			return -errno;
		code = take(context, keys, values, n);
		first = false;
	}
	return code;
}

static int copy_batch(void *context, const struct policy_set_key *keys,
		      const struct policy_set_value *values, uint32_t n)
{
	return n && bpf_map_update_batch(*(int *)context, keys, values, &n, NULL) ? -errno : 0;
}

int sets_provide(const char *previous, const char *name, uint32_t max, int *ret_fd, struct err *err)
{
	CLEANUP_FREE char *folder = previous ? sets_folder(previous) : NULL;
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info), room;
	CLEANUP_FD int old = -1, fd = -1;
	int code = capacity(max, &room, err);

	if (code)
		return code;
	code = previous ? bpffs_get(folder, name, &old, err) : -ENOENT;
	if (code && code != -ENOENT)
		return code;
	if (!code && bpf_obj_get_info_by_fd(old, &info, &size))
		return err_system(err, errno, "cannot look at the set '@%s'", name);
	if (!code && info.max_entries == room) {
		*ret_fd = TAKE_FD(old);
		return 0;
	}
	fd = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, "weir_set", sizeof(struct policy_set_key),
			    sizeof(struct policy_set_value), room, NULL);
	if (fd < 0)
		return err_system(err, -fd, "cannot make the set '@%s' of %u addresses", name, max);
	if (!code && (code = each_batch(old, copy_batch, &fd)))
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
	err_input(err, "the policy in force has no dynamic set '%s'", name);
	return err_hint(err, "set %s dynamic max 65536 expire 10m", name);
}

static int open_set(const struct instance *i, const struct generation_about_set *set, int *ret_fd,
		    struct err *err)
{
	CLEANUP_FREE char *generation = mem_printf("%s/gen/%u", i->folder, set->generation);
	CLEANUP_FREE char *folder = sets_folder(generation);
	int code = bpffs_get(folder, set->name, ret_fd, err);

	return code == -ENOENT ? err_system(err, ENOENT, "the set '%s' has lost its pin", set->name)
			       : code;
}

static struct policy_set_key key_of(const struct generation_about_set *set, const struct addr *a)
{
	struct prefix p = prefix_of(a, a->family == 4 ? set->mask4 : set->mask6);
	struct policy_set_key key = {.family = a->family};

	memcpy(key.addr, p.addr.bytes, a->family == 4 ? 4 : 16);
	return key;
}

static struct set_row row_of(const struct generation_about_set *set,
			     const struct policy_set_key *key, const struct policy_set_value *value)
{
	struct set_row row = {.until = value->until};

	row.prefix.addr.family = (uint8_t)key->family;
	memcpy(row.prefix.addr.bytes, key->addr, key->family == 4 ? 4 : 16);
	row.prefix.len = key->family == 4 ? set->mask4 : set->mask6;
	return row;
}

static int compare(const void *a, const void *b)
{
	const struct set_row *x = a, *y = b;

	return prefix_compare(&x->prefix, &y->prefix);
}

int sets_read(const struct instance *i, const struct generation_about_set *set,
	      struct set_rows *ret, struct err *err)
{
	struct policy_set_key key, next, *at = NULL;
	struct policy_set_value value;
	CLEANUP_FD int fd = -1;
	int code = open_set(i, set, &fd, err), last = 0;

	*ret = (struct set_rows){0};
	// Rules change the set meanwhile: at most twice its size is walked.
	for (uint32_t n = 0; !code && n < 2 * set->max; n++) {
		if ((last = bpf_map_get_next_key(fd, at, &next)))
			break;
		key = next;
		at = &key;
		if (!(last = bpf_map_lookup_elem(fd, &key, &value)))
			vec_push(ret, row_of(set, &key, &value));
		else if (last != -ENOENT)
			break;
	}
	if (!code && last && last != -ENOENT)
		code = err_system(err, -last, "cannot read the set '@%s'", set->name);
	if (ret->n)
		qsort(ret->at, ret->n, sizeof(*ret->at), compare);
	return code;
}

struct fill {
	uint64_t now;
	size_t n;
};

static int fill_batch(void *context, const struct policy_set_key *keys,
		      const struct policy_set_value *values, uint32_t n)
{
	struct fill *fill = context;

	(void)keys;
	for (uint32_t k = 0; k < n; k++)
		fill->n += values[k].until > fill->now;
	return 0;
}

int sets_fill(const struct instance *i, const struct generation_about_set *set, uint64_t now,
	      size_t *ret, struct err *err)
{
	struct fill fill = {.now = now};
	CLEANUP_FD int fd = -1;
	int code = open_set(i, set, &fd, err);

	*ret = 0;
	if (code)
		return code;
	if ((code = each_batch(fd, fill_batch, &fill)))
		return err_system(err, -code, "cannot read the set '%s'", set->name);
	*ret = fill.n;
	return 0;
}

int sets_add(const struct instance *i, const struct generation_about_set *set,
	     const struct addr *addrs, size_t n, uint64_t until, struct err *err)
{
	struct policy_set_value value = {.until = until};
	CLEANUP_FD int fd = -1;
	int code = open_set(i, set, &fd, err);

	for (size_t a = 0; !code && a < n; a++) {
		struct policy_set_key key = key_of(set, &addrs[a]);

		if (bpf_map_update_elem(fd, &key, &value, BPF_ANY))
			code = err_system(err, errno, "cannot write the set '%s'", set->name);
	}
	return code;
}

int sets_remove(const struct instance *i, const struct generation_about_set *set,
		const struct addr *addrs, size_t n, size_t *ret_removed, struct err *err)
{
	CLEANUP_FD int fd = -1;
	int code = open_set(i, set, &fd, err);

	*ret_removed = 0;
	for (size_t a = 0; !code && a < n; a++) {
		struct policy_set_key key = key_of(set, &addrs[a]);

		if (!bpf_map_delete_elem(fd, &key))
			++*ret_removed;
		else if (errno != ENOENT)
			code = err_system(err, errno, "cannot write the set '%s'", set->name);
	}
	return code;
}
