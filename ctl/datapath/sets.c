// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes the maps below sets/.
#include "ctl/datapath/sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/pins.h"

// A batch has to hold the longest chain of one bucket of the kernel's hash.
#define FILL_BATCH 4096

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
	CLEANUP_FREE char *folder = mem_printf("%s/sets", i->folder);
	int code = pins_get(folder, set->name, ret_fd, err);

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
	int code = open_set(i, set, &fd, err);

	*ret = (struct set_rows){0};
	// Rules change the set meanwhile: at most twice its size is walked.
	for (uint32_t n = 0; !code && n < 2 * set->max && !bpf_map_get_next_key(fd, at, &next);
	     n++) {
		key = next;
		at = &key;
		if (!bpf_map_lookup_elem(fd, &key, &value))
			vec_push(ret, row_of(set, &key, &value));
	}
	if (ret->n)
		qsort(ret->at, ret->n, sizeof(*ret->at), compare);
	return code;
}

int sets_fill(const struct instance *i, const struct generation_about_set *set, uint64_t now,
	      size_t *ret, struct err *err)
{
	CLEANUP_FREE struct policy_set_key *keys = mem_zalloc(FILL_BATCH, sizeof(*keys));
	CLEANUP_FREE struct policy_set_value *values = mem_zalloc(FILL_BATCH, sizeof(*values));
	CLEANUP_FD int fd = -1;
	uint32_t next = 0, n = FILL_BATCH;
	bool first = true, last = false;
	int code = open_set(i, set, &fd, err);

	*ret = 0;
	while (!code && !last) {
		n = FILL_BATCH;
		if (bpf_map_lookup_batch(fd, first ? NULL : &next, &next, keys, values, &n, NULL)) {
			if (errno != ENOENT)
				return err_system(err, errno, "cannot read the set '%s'",
						  set->name);
			last = true;
		}
		first = false;
		for (uint32_t k = 0; k < n; k++)
			*ret += values[k].until > now;
	}
	return code;
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
