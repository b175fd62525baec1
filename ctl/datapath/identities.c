// SPDX-License-Identifier: GPL-2.0-only
// Maps identities to indexes of rule counters, in a pinned map.
#include "ctl/datapath/identities.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/percpu.h"

// 128 bits of FNV-1a: names, not secrets.
static struct identity_key key_of(const char *identity)
{
	unsigned __int128 hash =
		((unsigned __int128)0x6c62272e07bb0142ull << 64) | 0x62b821756295c58dull;
	const unsigned __int128 prime = ((unsigned __int128)0x1000000ull << 64) | 0x13bull;
	struct identity_key key;

	for (const char *c = identity; *c; c++)
		hash = (hash ^ (unsigned char)*c) * prime;
	memcpy(&key, &hash, sizeof(key));
	return key;
}

// Sorting: the values order by their bytes, which is any order but always the same.

static int compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct identity_key));
}

static int read_all(const struct instance *i, struct identity_rows *ret)
{
	struct identity_key key, next, *at = NULL;
	struct identity_row one;
	int code;

	while (!(code = bpf_map_get_next_key(i->identities, at, &next))) {
		key = next;
		at = &key;
		one.key = key;
		if ((code = bpf_map_lookup_elem(i->identities, &key, &one.row)))
			return code;
		vec_push(ret, one);
	}
	return code == -ENOENT ? 0 : code;
}

// Those whose row a generation uses stay in `rows`, sorted; the others go to `gone`.
static void sort_out(struct identity_rows *rows, const uint8_t *used, struct identity_rows *gone)
{
	size_t kept = 0;

	vec_each (rows, one)
		if (one->row < WEIR_RULE_COUNTERS && used[one->row])
			rows->at[kept++] = *one;
		else
			vec_push(gone, *one);
	rows->n = kept;
	if (kept)
		qsort(rows->at, kept, sizeof(*rows->at), compare_keys);
}

struct wish {
	struct identity_key key;
	size_t rule;
};

static struct wish *wishes_of(const struct image *image)
{
	struct wish *wishes = mem_zalloc(image->n_rules, sizeof(*wishes));

	for (size_t r = 0; r < image->n_rules; r++)
		wishes[r] = (struct wish){key_of(image->about[r].identity), r};
	if (image->n_rules)
		qsort(wishes, image->n_rules, sizeof(*wishes), compare_keys);
	return wishes;
}

// A row for the key: the one it has, else the first free one from *next on.
static int pick(const struct identity_key *key, const struct identity_rows *have, uint8_t *used,
		uint32_t *next, struct identity_rows *fresh, uint32_t *ret)
{
	const struct identity_row *found =
		have->n ? bsearch(key, have->at, have->n, sizeof(*have->at), compare_keys) : NULL;

	if (found) {
		*ret = found->row;
		return 0;
	}
	while (*next < WEIR_RULE_COUNTERS && used[*next])
		++*next;
	if (*next >= WEIR_RULE_COUNTERS)
		return -ENOSPC;
	used[*next] = 1;
	vec_push(fresh, ((struct identity_row){*key, *next}));
	*ret = *next;
	return 0;
}

// Rules of one identity share a row; sorted, they stand together.
static int give_rows(struct image *image, const struct identity_rows *have, uint8_t *used,
		     struct identity_rows *fresh)
{
	CLEANUP_FREE struct wish *wishes = wishes_of(image);
	uint32_t next = 0, row = 0;

	for (size_t w = 0; w < image->n_rules; w++) {
		int code = w && !compare_keys(&wishes[w].key, &wishes[w - 1].key)
				   ? 0
				   : pick(&wishes[w].key, have, used, &next, fresh, &row);

		if (code)
			return code;
		image->rules[wishes[w].rule].counter = row;
	}
	return 0;
}

void identities_free(struct identities *ids)
{
	vec_free(&ids->gone);
	vec_free(&ids->fresh);
}

int identities_plan(const struct instance *i, struct image *image, struct identities *ret,
		    struct err *err)
{
	CLEANUP_FREE uint8_t *used = mem_zalloc(WEIR_RULE_COUNTERS, 1);
	struct identity_rows have = {0};
	struct identities ids = {0};
	int code = read_all(i, &have);

	if (code)
		err_system(err, -code, "cannot read the rules' counters");
	else if (!(code = generation_rows(i, used, err))) {
		sort_out(&have, used, &ids.gone);
		if ((code = give_rows(image, &have, used, &ids.fresh)))
			err_system(err, -code, "cannot give the rules their counters");
	}
	vec_free(&have);
	if (code)
		identities_free(&ids);
	else
		*ret = ids;
	return code;
}

static int delete_key(const struct instance *i, const struct identity_key *key)
{
	int code = bpf_map_delete_elem(i->identities, key);

	return code == -ENOENT ? 0 : code;
}

// zeros: a row of the rules' counters.
static int enter(const struct instance *i, const struct identities *ids, const void *zeros)
{
	int code = 0;

	for (size_t n = 0; !code && n < ids->gone.n; n++)
		code = delete_key(i, &ids->gone.at[n].key);
	for (size_t n = 0; !code && n < ids->fresh.n; n++) {
		const struct identity_row *one = &ids->fresh.at[n];

		code = bpf_map_update_elem(i->rulecounters, &one->row, zeros, BPF_ANY);
		if (!code)
			code = bpf_map_update_elem(i->identities, &one->key, &one->row, BPF_ANY);
	}
	return code;
}

int identities_enter(const struct instance *i, const struct identities *ids, struct err *err)
{
	CLEANUP_FREE struct counter *zeros = NULL;
	size_t cpus;
	int code = percpu_rows(1, sizeof(*zeros), &zeros, &cpus, err);

	if (code || !(code = enter(i, ids, zeros)))
		return code;
	identities_leave(i, ids);
	return err_system(err, -code, "cannot give the rules their counters");
}

void identities_leave(const struct instance *i, const struct identities *ids)
{
	vec_each (&ids->fresh, one)
		delete_key(i, &one->key);
	vec_each (&ids->gone, one)
		bpf_map_update_elem(i->identities, &one->key, &one->row, BPF_ANY);
}

int identities_row(const struct instance *i, const char *identity, uint32_t *ret_row)
{
	struct identity_key key = key_of(identity);

	return bpf_map_lookup_elem(i->identities, &key, ret_row) ? -errno : 0;
}

int identities_count(const struct instance *i, const char *identity, struct counter *ret,
		     struct err *err)
{
	CLEANUP_FREE struct counter *values = NULL;
	struct counter sum = {0};
	uint32_t row;
	size_t cpus;
	int code = percpu_rows(1, sizeof(*values), &values, &cpus, err), found;

	if (code)
		return code;
	found = identities_row(i, identity, &row);
	if (found && found != -ENOENT)
		return err_system(err, -found, "cannot read the rules' counters");
	if (!found) {
		if (bpf_map_lookup_elem(i->rulecounters, &row, values))
			return err_system(err, errno, "cannot read the rules' counters");
		for (size_t cpu = 0; cpu < cpus; cpu++) {
			sum.packets += values[cpu].packets;
			sum.bytes += values[cpu].bytes;
		}
	}
	*ret = sum;
	return 0;
}
