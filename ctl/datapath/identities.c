// SPDX-License-Identifier: GPL-2.0-only
// Identity -> row, kept in a pinned map.
#include "ctl/datapath/identities.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/generation.h"

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

static int zero_row(const struct instance *i, uint32_t row)
{
	int cpus = libbpf_num_possible_cpus();
	CLEANUP_FREE struct counter *zeros =
		mem_zalloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*zeros));

	return bpf_map_update_elem(i->rulecounters, &row, zeros, BPF_ANY) ? -errno : 0;
}

struct used {
	uint8_t row[WEIR_RULE_COUNTERS]; // taken by an identity
};

// Rows of all identities; with drop_unused those that the image does not have lose theirs.
static int scan(const struct instance *i, struct used *used)
{
	struct identity_key key, next, *at = NULL;
	uint32_t row;

	while (!bpf_map_get_next_key(i->identities, at, &next)) {
		key = next;
		at = &key;
		if (!bpf_map_lookup_elem(i->identities, &key, &row) && row < WEIR_RULE_COUNTERS)
			used->row[row] = 1;
	}
	return 0;
}

// Takes back the rows of identities that the image does not name and whose rows are not in `keep`.
static void take_back(const struct instance *i, const struct image *image, const struct used *keep,
		      struct used *used)
{
	CLEANUP_FREE struct identity_key *gone = mem_zalloc(WEIR_RULE_COUNTERS, sizeof(*gone));
	CLEANUP_FREE uint8_t *named = mem_zalloc(WEIR_RULE_COUNTERS, 1);
	struct identity_key key, next, *at = NULL;
	size_t n = 0;
	uint32_t row;

	for (size_t r = 0; r < image->n_rules; r++) {
		key = key_of(image->about[r].identity);
		if (!bpf_map_lookup_elem(i->identities, &key, &row) && row < WEIR_RULE_COUNTERS)
			named[row] = 1;
	}
	while (n < WEIR_RULE_COUNTERS && !bpf_map_get_next_key(i->identities, at, &next)) {
		key = next;
		at = &key;
		if (bpf_map_lookup_elem(i->identities, &key, &row) || row >= WEIR_RULE_COUNTERS)
			continue;
		if (!named[row] && !keep->row[row])
			gone[n++] = key;
	}
	for (size_t g = 0; g < n; g++) {
		if (bpf_map_lookup_elem(i->identities, &gone[g], &row))
			continue;
		bpf_map_delete_elem(i->identities, &gone[g]);
		used->row[row] = 0;
	}
}

static int give_row(const struct instance *i, const char *identity, struct used *used,
		    uint32_t *next, uint32_t *ret)
{
	struct identity_key key = key_of(identity);

	if (!bpf_map_lookup_elem(i->identities, &key, ret))
		return 0;
	while (*next < WEIR_RULE_COUNTERS && used->row[*next])
		++*next;
	if (*next >= WEIR_RULE_COUNTERS)
		return -ENOSPC;
	if (zero_row(i, *next) || bpf_map_update_elem(i->identities, &key, next, BPF_ANY))
		return -errno;
	used->row[*next] = 1;
	*ret = *next;
	return 0;
}

int identities_assign(const struct instance *i, struct image *image, struct err *err)
{
	CLEANUP_FREE struct used *used = mem_new(struct used);
	CLEANUP_FREE struct used *keep = mem_new(struct used);
	uint32_t next = 0;
	int code = scan(i, used);

	if (!code)
		code = generation_rows(i, keep->row, err);
	if (code)
		return code;
	take_back(i, image, keep, used);
	for (size_t r = 0; !code && r < image->n_rules; r++)
		code = give_row(i, image->about[r].identity, used, &next, &image->rules[r].counter);
	return code ? err_system(err, -code, "cannot give the rules their counters") : 0;
}

int identities_row(const struct instance *i, const char *identity, uint32_t *ret_row)
{
	struct identity_key key = key_of(identity);

	return bpf_map_lookup_elem(i->identities, &key, ret_row) ? -errno : 0;
}

int identities_count(const struct instance *i, const char *identity, struct counter *ret,
		     struct err *err)
{
	int cpus = libbpf_num_possible_cpus();
	CLEANUP_FREE struct counter *values =
		mem_zalloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*values));
	struct counter sum = {0};
	uint32_t row;

	if (!identities_row(i, identity, &row)) {
		if (cpus < 0 || bpf_map_lookup_elem(i->rulecounters, &row, values))
			return err_system(err, cpus < 0 ? -cpus : errno,
					  "cannot read the rule counters");
		for (int cpu = 0; cpu < cpus; cpu++) {
			sum.packets += values[cpu].packets;
			sum.bytes += values[cpu].bytes;
		}
	}
	*ret = sum;
	return 0;
}
