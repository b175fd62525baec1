// SPDX-License-Identifier: GPL-2.0-only
// Opens the table of connections with its blocks.
#include "ctl/datapath/nat_maps.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/parts.h"

struct nat_maps {
	const struct instance *instance;
	struct nat_tables tables;
	struct mapping table;
	struct mapping blocks[2][NAT_BLOCKS]; // [1]: of IPv6
	struct mapping backends[2];
};

static int cannot_read(int code, struct err *err)
{
	return err_system(err, -code, "cannot read the table of connections");
}

static int outer_of(const struct instance *i, int family)
{
	return family == 4 ? i->nat4 : i->nat6;
}

static size_t block_bytes(int family)
{
	return NAT_PLACES * (family == 4 ? sizeof(struct nat_entry4) : sizeof(struct nat_entry6));
}

// The descriptor of a block; -ENOENT: it does not exist, or no longer.
static int open_block(const struct instance *i, int family, uint32_t block)
{
	uint32_t id;

	if (bpf_map_lookup_elem(outer_of(i, family), &block, &id))
		return -errno;
	return bpf_map_get_fd_by_id(id);
}

static int map_block(struct nat_maps *m, int family, uint32_t block, int fd, struct err *err)
{
	struct mapping *mapping = &m->blocks[family == 6][block];
	int code = mapping_open(mapping, fd, block_bytes(family), err);

	if (code)
		return code;
	if (family == 4)
		m->tables.places4[block] = mapping->at;
	else
		m->tables.places6[block] = mapping->at;
	return 0;
}

static void unmap_block(struct nat_maps *m, int family, uint32_t block)
{
	mapping_close(&m->blocks[family == 6][block]);
	if (family == 4)
		m->tables.places4[block] = NULL;
	else
		m->tables.places6[block] = NULL;
}

static int map_blocks(struct nat_maps *m, int family, struct err *err)
{
	for (uint32_t block = 0; block < NAT_BLOCKS; block++) {
		CLEANUP_FD int fd = open_block(m->instance, family, block);
		int code;

		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return cannot_read(fd, err);
		if ((code = map_block(m, family, block, fd, err)))
			return code;
	}
	return 0;
}

int nat_maps_open(const struct instance *i, struct nat_maps **ret, struct err *err)
{
	CLEANUP_NAT_MAPS struct nat_maps *m = mem_new(struct nat_maps);
	int code = mapping_open(&m->table, i->nat, sizeof(struct nat_table), err);

	if (code)
		return code;
	m->instance = i;
	m->tables.nat = m->table.at;
	if ((code = map_blocks(m, 4, err)) || (code = map_blocks(m, 6, err)))
		return code;
	*ret = TAKE_PTR(m);
	return 0;
}

void nat_maps_close(struct nat_maps *m)
{
	if (!m)
		return;
	for (uint32_t block = 0; block < NAT_BLOCKS; block++) {
		unmap_block(m, 4, block);
		unmap_block(m, 6, block);
	}
	for (size_t n = 0; n < ARRAY_SIZE(m->backends); n++)
		mapping_close(&m->backends[n]);
	mapping_close(&m->table);
	free(m);
}

void nat_maps_cleanup(struct nat_maps **m)
{
	nat_maps_close(*m);
}

const struct nat_tables *nat_maps_tables(const struct nat_maps *m)
{
	return &m->tables;
}

bool nat_maps_has(const struct nat_maps *m, int family, uint32_t block)
{
	return block < NAT_BLOCKS && m->blocks[family == 6][block].at;
}

int nat_maps_add_backends(struct nat_maps *m, uint32_t generation, struct err *err)
{
	CLEANUP_FREE char *folder = generation_folder(m->instance->folder, generation);
	size_t n = m->backends[0].at != NULL, bytes;
	CLEANUP_FD int fd = -1;
	int code;

	if (!generation)
		return 0;
	if ((code = bpffs_get(folder, part_name(PART_BACKENDS), &fd, err)) ||
	    (code = mapping_bytes(fd, &bytes, err)) ||
	    (code = mapping_open(&m->backends[n], fd, bytes, err)))
		return code;
	m->tables.backends[n].at = m->backends[n].at;
	m->tables.backends[n].n = bytes / sizeof(struct backend);
	return 0;
}

// Mapped before it is published, so a failure leaves no block.
int nat_maps_create(struct nat_maps *m, int family, uint32_t block, struct err *err)
{
	CLEANUP_FD int fd = -1;
	int code;

	if (block >= NAT_BLOCKS)
		return err_stated(err, E2BIG, "block %u cannot exist", block);
	if (nat_maps_has(m, family, block))
		return err_stated(err, EEXIST, "block %u is already there", block);
	fd = mapping_make(family == 4 ? "weir_nat4" : "weir_nat6", block_bytes(family));
	if (fd < 0)
		return err_system(err, -fd, "cannot create a block of connections");
	if ((code = map_block(m, family, block, fd, err)))
		return code;
	if (!bpf_map_update_elem(outer_of(m->instance, family), &block, &fd, BPF_ANY))
		return 0;
	code = err_system(err, errno, "cannot create a block of connections");
	unmap_block(m, family, block);
	return code;
}

// The kernel waits for a grace period before it returns (kernel, maybe_wait_bpf_programs()).
int nat_maps_remove(struct nat_maps *m, int family, uint32_t block, struct err *err)
{
	if (!nat_maps_has(m, family, block))
		return err_stated(err, ENOENT, "block %u does not exist", block);
	if (bpf_map_delete_elem(outer_of(m->instance, family), &block))
		return err_system(err, errno, "cannot remove a block of connections");
	unmap_block(m, family, block);
	return 0;
}

int nat_maps_used(const struct instance *i, bool *ret, struct err *err)
{
	CLEANUP_MAPPING struct mapping m = {0};
	int code = mapping_open(&m, i->nat, offsetof(struct nat_table, device), err);

	if (code)
		return code;
	*ret = ((const struct nat_table *)m.at)->shift;
	return 0;
}

int nat_maps_any(const struct instance *i, bool *ret, struct err *err)
{
	uint32_t id;
	bool used;
	int code = nat_maps_used(i, &used, err);

	*ret = false;
	if (code || !used)
		return code;
	for (uint32_t n = 0; n < 2 * NAT_BLOCKS && !*ret; n++) {
		uint32_t block = n / 2;

		*ret = !bpf_map_lookup_elem(n % 2 ? i->nat6 : i->nat4, &block, &id);
		if (!*ret && errno != ENOENT)
			return cannot_read(-errno, err);
	}
	return 0;
}
