// SPDX-License-Identifier: GPL-2.0-only
// New instances, built around the empty policy, and their removal.
#include "ctl/datapath/instance_create.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/outgoing.h"
#include "ctl/datapath/probe.h"
#include "ctl/datapath/seed.h"
#include "ctl/datapath/sharing.h"

// An attempt that was killed may have left the folder.
static int make_folder(const struct instance *i, char **ret, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s+new", BPFFS_ROOT, i->name);
	int code = file_remove_tree(folder, err);

	if (code || (code = file_mkdirs(folder, 0700, err)))
		return code;
	*ret = TAKE_PTR(folder);
	return 0;
}

static int pin_meta(const struct instance *i, const char *folder, struct err *err)
{
	CLEANUP_FD int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_meta", sizeof(uint32_t),
					   sizeof(struct meta), 1, NULL);
	uint32_t zero = 0;

	if (fd < 0)
		return err_system(err, -fd, "cannot create the map 'weir_meta'");
	if (bpf_map_update_elem(fd, &zero, &i->meta, BPF_ANY))
		return err_system(err, errno, "cannot write the description of instance '%s'",
				  i->name);
	return bpffs_put(folder, WEIR_META, fd, err);
}

static int fill_programs(const struct instance *i, int program, struct err *err)
{
	for (uint32_t which = 0; which < PROGS; which++)
		if (bpf_map_update_elem(i->progs, &which, &program, BPF_ANY))
			return err_system(err, errno, "cannot make the empty policy the %s program",
					  which == PROG_ACTIVE ? "active" : "previous");
	return 0;
}

// The seed, and the first epoch: a journal that another instance of this name has left must not
// have one of ours.
static int draw_numbers(struct knobs *knobs, struct err *err)
{
	__u64 drawn[2];

	if (getrandom(drawn, sizeof(drawn), 0) != sizeof(drawn))
		return err_system(err, errno, "cannot generate a random seed");
	knobs->seed = drawn[0];
	knobs->epoch = knobs->staging = knobs->settled = drawn[1] >> 16 | 1;
	return 0;
}

static int load_all(struct instance *i, struct generation **ret_first, struct err *err)
{
	int code = generation_load_first(i, ret_first, err);

	if (code || (code = clock_load(&i->clock_prog, err)) ||
	    (code = instance_make_maps(i, err)) || (code = instance_map_knobs(i, err)))
		return code;
	i->knobs->snap = WEIR_SNAP_DEFAULT;
	iface_table_begin(i->knobs);
	if ((code = draw_numbers(i->knobs, err)))
		return code;
	return fill_programs(i, generation_program(*ret_first), err);
}

static int pin_all(struct instance *i, struct generation *first, const char *folder,
		   struct err *err)
{
	static const struct generation_about empty;
	int code = generation_pin(folder, first, 1, &empty, err);

	if (code || (code = pin_meta(i, folder, err)) || (code = instance_pin(i, folder, err)))
		return code;
	free(i->folder);
	i->folder = mem_strdup(folder);
	return 0;
}

int instance_publish(struct instance *i, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", BPFFS_ROOT, i->name);

	if (rename(i->folder, folder))
		return err_system(err, errno, "cannot create '%s'", folder);
	free(i->folder);
	i->folder = TAKE_PTR(folder);
	return 0;
}

static int describe(struct instance *i, uint32_t max_entries, struct err *err)
{
	int code = probe_kernel(err);
	struct hash_key key;
	size_t cpus;

	i->meta = (struct meta){
		.layout = WEIR_LAYOUT,
		.max_entries = max_entries,
		.created_s = (uint64_t)time(NULL),
	};
	if (code || (code = percpu_online(&cpus, err)))
		return code;
	i->meta.cpus = (uint32_t)cpus;
	sharing_probe(&i->meta);
	// A damaged seed does not prevent an attach: the apply that needs the seed reports it.
	code = seed_read(i->name, &key, err);
	if (code == -EBADMSG)
		code = seed_read("", &key, err);
	if (code)
		return code;
	i->meta.ring_key[0] = key.word[0];
	i->meta.ring_key[1] = key.word[1];
	return instance_netns(&i->meta.netns_cookie, &i->meta.netns_inode, err);
}

static int build(struct instance *i, const char *folder, struct err *err)
{
	CLEANUP_GENERATION struct generation *first = NULL;
	int code = load_all(i, &first, err);

	return code ? code : pin_all(i, first, folder, err);
}

int instance_create(const char *name, uint32_t max_entries, struct instance **ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = instance_new(name);
	CLEANUP_FREE char *folder = NULL;
	int code = describe(i, max_entries, err);

	if (code || (code = make_folder(i, &folder, err)))
		return code;
	if ((code = build(i, folder, err))) {
		file_remove_tree(folder, NULL);
		return code;
	}
	*ret = TAKE_PTR(i);
	return 0;
}

int instance_create_private(uint32_t max_entries, struct instance **ret,
			    struct generation **ret_first, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = instance_new("");
	CLEANUP_GENERATION struct generation *first = NULL;
	int code = describe(i, max_entries, err);

	if (code || (code = load_all(i, &first, err)))
		return code;
	*ret_first = TAKE_PTR(first);
	*ret = TAKE_PTR(i);
	return 0;
}

int instance_remove(const char *name, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", BPFFS_ROOT, name);
	CLEANUP_FREE char *old = mem_printf("%s/%s+old", BPFFS_ROOT, name);
	int code = file_remove_tree(old, err);

	if (code || (code = outgoing_detach(folder, err)))
		return code;
	// Out of sight first: a half-removed instance must not be found.
	if (rename(folder, old) && errno != ENOENT)
		return err_system(err, errno, "cannot remove '%s'", folder);
	// Packets that arrived before the programs were detached may need the policy's program
	// array.
	if ((code = grace_wait(err)))
		return code;
	return file_remove_tree(old, err);
}

int instance_sweep(const char *name, struct err *err)
{
	CLEANUP_FREE char *new = mem_printf("%s/%s+new", BPFFS_ROOT, name);
	CLEANUP_FREE char *old = mem_printf("%s/%s+old", BPFFS_ROOT, name);
	int code = file_remove_tree(new, err);

	return code ? code : file_remove_tree(old, err);
}
