// SPDX-License-Identifier: GPL-2.0-only
// Finds, writes and reads the maps of the decapsulating program.
#include "ctl/datapath/decap_maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/maps.h"

#define MAPS_MAX 16

void decap_maps_close(struct decap_maps *m)
{
	fd_close(m->settings);
	fd_close(m->here);
	fd_close(m->nets);
	fd_close(m->counts);
	*m = (struct decap_maps)DECAP_NO_MAPS;
}

static int *place_of(struct decap_maps *m, const struct bpf_map_info *info)
{
	if (!strcmp(info->name, "decap_settings") && info->type == BPF_MAP_TYPE_ARRAY &&
	    info->value_size == sizeof(struct decap_settings))
		return &m->settings;
	if (!strcmp(info->name, "decap_here"))
		return &m->here;
	if (!strcmp(info->name, "decap_nets"))
		return &m->nets;
	if (!strcmp(info->name, "decap_counts"))
		return &m->counts;
	return NULL;
}

static void take_map(uint32_t id, struct decap_maps *m)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	CLEANUP_FD int fd = bpf_map_get_fd_by_id(id);
	int *place;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return;
	place = place_of(m, &info);
	if (place && *place < 0)
		*place = TAKE_FD(fd);
}

bool decap_maps_of(uint32_t prog_id, struct decap_maps *ret)
{
	CLEANUP_DECAP_MAPS struct decap_maps m = DECAP_NO_MAPS;
	uint32_t ids[MAPS_MAX] = {0};
	struct bpf_prog_info info = {.nr_map_ids = MAPS_MAX, .map_ids = (uint64_t)(uintptr_t)ids};
	uint32_t size = sizeof(info);
	CLEANUP_FD int fd = bpf_prog_get_fd_by_id(prog_id);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return false;
	for (uint32_t i = 0; i < info.nr_map_ids && i < MAPS_MAX; i++)
		take_map(ids[i], &m);
	if (m.settings < 0 || m.here < 0 || m.counts < 0)
		return false;
	*ret = m;
	m = (struct decap_maps)DECAP_NO_MAPS;
	return true;
}

// Keys

static struct decap_address address_key(const struct prefix *p)
{
	struct decap_address key = {.family = p->addr.family};

	memcpy(key.addr, p->addr.bytes, sizeof(key.addr));
	return key;
}

static struct decap_prefix prefix_key(const struct prefix *p, enum decap_kind kind)
{
	struct decap_prefix key = {
		.length = DECAP_PREFIX_HEAD + p->len,
		.kind = (uint8_t)kind,
		.family = p->addr.family,
	};

	memcpy(key.addr, p->addr.bytes, sizeof(key.addr));
	return key;
}

static struct prefix prefix_from(uint8_t family, const uint32_t *addr, uint32_t len)
{
	struct prefix p = {.addr.family = family, .len = (uint8_t)len};

	memcpy(p.addr.bytes, addr, sizeof(p.addr.bytes));
	return p;
}

// The keys of one of the two maps, of one size, each once.
struct decap_table {
	int fd;
	size_t key_size, n;
	char *keys;
};

static void table_cleanup(struct decap_table *t)
{
	free(t->keys);
}
#define CLEANUP_TABLE CLEANUP(table_cleanup)

static struct decap_table table_for(int fd, size_t key_size, size_t max)
{
	return (struct decap_table){
		.fd = fd,
		.key_size = key_size,
		.keys = mem_zalloc(max, key_size),
	};
}

static void table_add(struct decap_table *t, const void *key)
{
	memcpy(t->keys + t->n++ * t->key_size, key, t->key_size);
}

static const void *table_key(const struct decap_table *t, size_t i)
{
	return t->keys + i * t->key_size;
}

static bool table_has(const struct decap_table *t, const void *key)
{
	for (size_t i = 0; i < t->n; i++)
		if (!memcmp(table_key(t, i), key, t->key_size))
			return true;
	return false;
}

// The keys in the map now; keys that are added or removed in the meantime may be missing or not.
static struct decap_table table_read(int fd, size_t key_size, size_t max)
{
	struct decap_table t = table_for(fd, key_size, max);
	const void *last = NULL;

	while (t.n < max && !bpf_map_get_next_key(fd, last, t.keys + t.n * key_size))
		last = table_key(&t, t.n++);
	return t;
}

static int cannot_write(struct err *err)
{
	return err_system(err, errno, "cannot write the settings of the decapsulating program");
}

static int table_put(const struct decap_table *t, struct err *err)
{
	const uint32_t one = 1;

	for (size_t i = 0; i < t->n; i++)
		if (bpf_map_update_elem(t->fd, table_key(t, i), &one, BPF_ANY))
			return cannot_write(err);
	return 0;
}

static int table_drop(const struct decap_table *old, const struct decap_table *t, struct err *err)
{
	for (size_t i = 0; i < old->n; i++)
		if (!table_has(t, table_key(old, i)) &&
		    bpf_map_delete_elem(t->fd, table_key(old, i)) && errno != ENOENT)
			return cannot_write(err);
	return 0;
}

// Old keys are removed first only if the map has no room for both.
static int table_write(const struct decap_table *t, size_t max, struct err *err)
{
	CLEANUP_TABLE struct decap_table old = table_read(t->fd, t->key_size, max);
	int code = old.n + t->n <= max ? table_put(t, err) : 0;

	if (code || (code = table_drop(&old, t, err)))
		return code;
	return table_put(t, err);
}

// Telling

#define NETS_MAX (4 * DECAP_PREFIXES + 1) // entries of both kinds, old and new

static size_t count_hosts(const struct decap_end *end)
{
	size_t n = 0;

	for (size_t i = 0; i < end->n_here; i++)
		n += prefix_is_host(&end->here[i]);
	return n;
}

static int check_room(const struct decap_end *end, struct err *err)
{
	size_t hosts = count_hosts(end);

	if (hosts > DECAP_ADDRESSES)
		return err_refused(err, "this host has more than %d addresses: %zu",
				   DECAP_ADDRESSES, hosts);
	if (end->n_here - hosts > DECAP_PREFIXES)
		return err_refused(err, "this host has more than %d local prefixes: %zu",
				   DECAP_PREFIXES, end->n_here - hosts);
	if (end->n_from > DECAP_PREFIXES)
		return err_refused(err, "more than %d prefixes of tunnel sources: %zu",
				   DECAP_PREFIXES, end->n_from);
	return 0;
}

static int write_tables(const struct decap_maps *m, const struct decap_end *end, struct err *err)
{
	CLEANUP_TABLE struct decap_table hosts =
		table_for(m->here, sizeof(struct decap_address), end->n_here + 1);
	CLEANUP_TABLE struct decap_table nets =
		table_for(m->nets, sizeof(struct decap_prefix), end->n_here + end->n_from + 1);
	int code;

	for (size_t i = 0; i < end->n_here; i++) {
		struct decap_address host = address_key(&end->here[i]);
		struct decap_prefix net = prefix_key(&end->here[i], DECAP_HERE);

		if (prefix_is_host(&end->here[i]))
			table_add(&hosts, &host);
		else
			table_add(&nets, &net);
	}
	for (size_t i = 0; i < end->n_from; i++) {
		struct decap_prefix net = prefix_key(&end->from[i], DECAP_FROM);

		table_add(&nets, &net);
	}
	code = table_write(&hosts, DECAP_ADDRESSES, err);
	return code ? code : table_write(&nets, NETS_MAX, err);
}

int decap_maps_tell(const struct decap_maps *m, const struct decap_end *end, struct err *err)
{
	struct decap_settings settings = {
		.version = DECAP_VERSION,
		.port = end->port,
		.flags = end->forward ? DECAP_FORWARD : 0,
	};
	uint32_t zero = 0;
	int code = check_room(end, err);

	if (code || (code = write_tables(m, end, err)))
		return code;
	if (count_hosts(end) < end->n_here)
		settings.flags |= DECAP_HERE_NETS;
	return bpf_map_update_elem(m->settings, &zero, &settings, BPF_ANY) ? cannot_write(err) : 0;
}

// Reading

int decap_maps_settings(const struct decap_maps *m, struct decap_settings *ret, struct err *err)
{
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(m->settings, &zero, ret))
		return err_system(err, errno, "cannot read the decapsulating program's settings");
	return 0;
}

static int compare_prefixes(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

int decap_maps_told(const struct decap_maps *m, struct decap_state *ret, struct err *err)
{
	CLEANUP_TABLE struct decap_table hosts =
		table_read(m->here, sizeof(struct decap_address), DECAP_ADDRESSES);
	CLEANUP_TABLE struct decap_table nets =
		table_read(m->nets, sizeof(struct decap_prefix), NETS_MAX);

	if (m->nets < 0)
		return err_stated(err, ENOENT,
				  "the decapsulating program has no table of prefixes");
	ret->here = mem_zalloc(hosts.n + nets.n + 1, sizeof(*ret->here));
	ret->from = mem_zalloc(nets.n + 1, sizeof(*ret->from));
	for (size_t i = 0; i < hosts.n; i++) {
		const struct decap_address *key = table_key(&hosts, i);

		ret->here[ret->n_here++] =
			prefix_from((uint8_t)key->family, key->addr, key->family == 4 ? 32 : 128);
	}
	for (size_t i = 0; i < nets.n; i++) {
		const struct decap_prefix *key = table_key(&nets, i);
		struct prefix p =
			prefix_from(key->family, key->addr, key->length - DECAP_PREFIX_HEAD);

		if (key->kind == DECAP_FROM)
			ret->from[ret->n_from++] = p;
		else
			ret->here[ret->n_here++] = p;
	}
	qsort(ret->here, ret->n_here, sizeof(*ret->here), compare_prefixes);
	qsort(ret->from, ret->n_from, sizeof(*ret->from), compare_prefixes);
	return 0;
}

// Counters

int decap_maps_counts(const struct decap_maps *m, struct decap_counter ret[DECAP_REASON_COUNT],
		      struct err *err)
{
	CLEANUP_FREE struct decap_counter *cpus = NULL;
	size_t n;
	int code = percpu_values(1, sizeof(*cpus), &cpus, &n, err);

	if (code)
		return code;
	memset(ret, 0, DECAP_REASON_COUNT * sizeof(*ret));
	for (uint32_t reason = 0; reason < DECAP_REASON_COUNT; reason++) {
		if (bpf_map_lookup_elem(m->counts, &reason, cpus))
			return err_system(err, errno, "cannot read the counters of decapsulation");
		for (size_t cpu = 0; cpu < n; cpu++) {
			ret[reason].packets += cpus[cpu].packets;
			ret[reason].bytes += cpus[cpu].bytes;
		}
	}
	return 0;
}
