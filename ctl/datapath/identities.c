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
#include "ctl/datapath/maps.h"

#define WORDS128(high, low) ((unsigned __int128)(high) << 64 | (low))
#define FNV_BASIS           WORDS128(0x6c62272e07bb0142ull, 0x62b821756295c58dull)
#define FNV_PRIME           WORDS128(0x1000000ull, 0x13bull)

// 128 bits of FNV-1a: it distinguishes names and keeps no secrets.
static struct identity_key key_of(const char *identity)
{
	unsigned __int128 hash = FNV_BASIS;
	struct identity_key key;

	for (const char *c = identity; *c; c++)
		hash = (hash ^ (unsigned char)*c) * FNV_PRIME;
	memcpy(&key, &hash, sizeof(key));
	return key;
}

// Compares bytes: any order works if it is always the same.
static int compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct identity_key));
}

// All at once: a thousand rules are two thousand calls otherwise.
static int read_all(const struct instance *i, struct identity_counters *ret)
{
	CLEANUP_FREE struct identity_key *keys = NULL;
	CLEANUP_FREE uint32_t *indexes = NULL;
	uint32_t n, next;
	int code = mapping_entries(i->identities, &n, NULL);

	if (code)
		return code;
	keys = mem_zalloc(n, sizeof(*keys));
	indexes = mem_zalloc(n, sizeof(*indexes));
	// ENOENT: that was the last one.
	if (bpf_map_lookup_batch(i->identities, NULL, &next, keys, indexes, &n, NULL) &&
	    errno != ENOENT)
		return -errno;
	for (uint32_t k = 0; k < n; k++)
		vec_push(ret, ((struct identity_counter){.key = keys[k], .index = indexes[k]}));
	return 0;
}

// Those whose counter a generation uses stay in `all`, sorted; the others move to `gone`.
static void sort_out(struct identity_counters *all, const uint8_t *used,
		     struct identity_counters *gone)
{
	size_t kept = 0;

	vec_each (all, one)
		if (one->index < WEIR_RULE_COUNTERS && used[one->index])
			all->at[kept++] = *one;
		else
			vec_push(gone, *one);
	all->n = kept;
	if (kept)
		qsort(all->at, kept, sizeof(*all->at), compare_keys);
}

struct rule_identity {
	struct identity_key key;
	size_t rule;
};

// Sorted by key.
static struct rule_identity *identities_of(const struct image *image)
{
	struct rule_identity *rules = mem_zalloc(image->n_rules, sizeof(*rules));

	for (size_t r = 0; r < image->n_rules; r++)
		rules[r] = (struct rule_identity){
			.key = key_of(image->about[r].identity),
			.rule = r,
		};
	if (image->n_rules)
		qsort(rules, image->n_rules, sizeof(*rules), compare_keys);
	return rules;
}

// The counter of the key: the one it has, else the first free one from *next on.
static int pick(const struct identity_key *key, const struct identity_counters *have, uint8_t *used,
		uint32_t *next, struct identity_counters *fresh, uint32_t *ret)
{
	const struct identity_counter *found =
		have->n ? bsearch(key, have->at, have->n, sizeof(*have->at), compare_keys) : NULL;

	if (found) {
		*ret = found->index;
		return 0;
	}
	while (*next < WEIR_RULE_COUNTERS && used[*next])
		++*next;
	if (*next >= WEIR_RULE_COUNTERS)
		return -ENOSPC;
	used[*next] = 1;
	vec_push(fresh, ((struct identity_counter){.key = *key, .index = *next}));
	*ret = *next;
	return 0;
}

// Rules of one identity share a counter; after sorting they are neighbours.
static int assign_counters(struct image *image, const struct identity_counters *have, uint8_t *used,
			   struct identity_counters *fresh)
{
	CLEANUP_FREE struct rule_identity *rules = identities_of(image);
	uint32_t next = 0, index = 0;

	for (size_t r = 0; r < image->n_rules; r++) {
		bool same = r && !compare_keys(&rules[r].key, &rules[r - 1].key);
		int code = same ? 0 : pick(&rules[r].key, have, used, &next, fresh, &index);

		if (code)
			return code;
		image->rules[rules[r].rule].counter = index;
	}
	return 0;
}

void identities_free(struct identities *ids)
{
	vec_free(&ids->gone);
	vec_free(&ids->fresh);
}

static void counters_free(struct identity_counters *c)
{
	vec_free(c);
}

static int cannot_read(int code, struct err *err)
{
	return err_system(err, -code, "cannot read the rules' counters");
}

static int cannot_assign(int code, struct err *err)
{
	return err_system(err, -code, "cannot assign counters to the rules");
}

int identities_plan(const struct instance *i, struct image *image, struct identities *ret,
		    struct err *err)
{
	CLEANUP_FREE uint8_t *used = mem_zalloc(WEIR_RULE_COUNTERS, 1);
	CLEANUP(counters_free) struct identity_counters have = {0};
	CLEANUP(identities_free) struct identities ids = {0};
	int code = read_all(i, &have);

	if (code)
		return cannot_read(code, err);
	if ((code = generation_counters(i, used, err)))
		return code;
	sort_out(&have, used, &ids.gone);
	if ((code = assign_counters(image, &have, used, &ids.fresh)))
		return cannot_assign(code, err);
	*ret = ids;
	ids = (struct identities){0};
	return 0;
}

static int delete_key(const struct instance *i, const struct identity_key *key)
{
	int code = bpf_map_delete_elem(i->identities, key);

	return code == -ENOENT ? 0 : code;
}

// zeros: of a counter, for all CPUs.
static int enter(const struct instance *i, const struct identities *ids, const void *zeros)
{
	int code;

	vec_each (&ids->gone, one)
		if ((code = delete_key(i, &one->key)))
			return code;
	vec_each (&ids->fresh, one) {
		code = bpf_map_update_elem(i->rulecounters, &one->index, zeros, BPF_ANY);
		if (code)
			return code;
		code = bpf_map_update_elem(i->identities, &one->key, &one->index, BPF_ANY);
		if (code)
			return code;
	}
	return 0;
}

int identities_enter(const struct instance *i, const struct identities *ids, struct err *err)
{
	CLEANUP_FREE struct counter *zeros = NULL;
	size_t cpus;
	int code = percpu_values(1, sizeof(*zeros), &zeros, &cpus, err);

	if (code)
		return code;
	code = enter(i, ids, zeros);
	if (!code)
		return 0;
	identities_leave(i, ids);
	return cannot_assign(code, err);
}

void identities_leave(const struct instance *i, const struct identities *ids)
{
	vec_each (&ids->fresh, one)
		delete_key(i, &one->key);
	vec_each (&ids->gone, one)
		bpf_map_update_elem(i->identities, &one->key, &one->index, BPF_ANY);
}

int identities_index(const struct instance *i, const char *identity, uint32_t *ret_index)
{
	struct identity_key key = key_of(identity);

	return bpf_map_lookup_elem(i->identities, &key, ret_index) ? -errno : 0;
}
