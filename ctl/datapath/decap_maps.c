// SPDX-License-Identifier: GPL-2.0-only
// Finds, writes and reads the maps of the decapsulating program.
#include "ctl/datapath/decap_maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/vec.h"
#include "ctl/datapath/percpu.h"

#define MAPS_MAX 16

void decap_maps_close(struct decap_maps *m)
{
	fd_close(m->settings);
	fd_close(m->here);
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

// Addresses

static struct decap_address key_of(const struct addr *a)
{
	struct decap_address key = {.family = a->family};

	memcpy(key.addr, a->bytes, sizeof(key.addr));
	return key;
}

static bool wanted(const struct decap_address *key, const struct decap_end *end)
{
	for (size_t i = 0; i < end->n; i++) {
		struct decap_address one = key_of(&end->addrs[i]);

		if (!memcmp(key, &one, sizeof(one)))
			return true;
	}
	return false;
}

struct keys {
	VEC(struct decap_address) all;
};

static void keys_cleanup(struct keys *k)
{
	vec_free(&k->all);
}

static void read_keys(int fd, struct keys *ret)
{
	struct decap_address key, *last = NULL;

	while (!bpf_map_get_next_key(fd, last, &key)) {
		vec_push(&ret->all, key);
		last = vec_last(&ret->all);
	}
}

static int cannot_write(struct err *err)
{
	return err_system(err, errno, "cannot tell the decapsulating program its addresses");
}

// The old ones go first only where both together find no room.
static int write_addresses(int fd, const struct decap_end *end, struct err *err)
{
	CLEANUP(keys_cleanup) struct keys old = {0};
	const uint32_t one = 1;

	read_keys(fd, &old);
	for (size_t i = 0; old.all.n + end->n <= DECAP_ADDRESSES && i < end->n; i++) {
		struct decap_address key = key_of(&end->addrs[i]);

		if (bpf_map_update_elem(fd, &key, &one, BPF_ANY))
			return cannot_write(err);
	}
	vec_each (&old.all, key)
		if (!wanted(key, end) && bpf_map_delete_elem(fd, key) && errno != ENOENT)
			return cannot_write(err);
	for (size_t i = 0; i < end->n; i++) {
		struct decap_address key = key_of(&end->addrs[i]);

		if (bpf_map_update_elem(fd, &key, &one, BPF_ANY))
			return cannot_write(err);
	}
	return 0;
}

int decap_maps_tell(const struct decap_maps *m, const struct decap_end *end, struct err *err)
{
	const struct decap_settings settings = {.version = DECAP_VERSION, .port = end->port};
	uint32_t zero = 0;
	int code;

	if (end->n > DECAP_ADDRESSES)
		return err_refused(err, "this host has %zu addresses, more than %d", end->n,
				   DECAP_ADDRESSES);
	if ((code = write_addresses(m->here, end, err)))
		return code;
	return bpf_map_update_elem(m->settings, &zero, &settings, BPF_ANY) ? cannot_write(err) : 0;
}

int decap_maps_settings(const struct decap_maps *m, struct decap_settings *ret,
			size_t *ret_addresses, struct err *err)
{
	CLEANUP(keys_cleanup) struct keys keys = {0};
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(m->settings, &zero, ret))
		return err_system(err, errno, "cannot read the decapsulating program's settings");
	if (ret->version == DECAP_VERSION)
		read_keys(m->here, &keys);
	*ret_addresses = keys.all.n;
	return 0;
}

int decap_maps_counts(const struct decap_maps *m, struct decap_counter ret[DECAP_ROW_COUNT],
		      struct err *err)
{
	CLEANUP_FREE struct decap_counter *cpus = NULL;
	size_t n;
	int code = percpu_rows(1, sizeof(*cpus), &cpus, &n, err);

	if (code)
		return code;
	memset(ret, 0, DECAP_ROW_COUNT * sizeof(*ret));
	for (uint32_t row = 0; row < DECAP_ROW_COUNT; row++) {
		if (bpf_map_lookup_elem(m->counts, &row, cpus))
			return err_system(err, errno, "cannot read the counters of decapsulation");
		for (size_t cpu = 0; cpu < n; cpu++) {
			ret[row].packets += cpus[cpu].packets;
			ret[row].bytes += cpus[cpu].bytes;
		}
	}
	return 0;
}
