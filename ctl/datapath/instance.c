// SPDX-License-Identifier: GPL-2.0-only
// Instances: opened, with maps that are found, made, shared and pinned by one table.
#include "ctl/datapath/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "common/overlay.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/nat_device.h"
#include "ctl/datapath/netns.h"
#include "ctl/datapath/probe.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

// ---- the table ----------------------------------------------------------------------------------

enum object_size {
	SIZE_DEFINED, // as in xdp/
	SIZE_SHARDS4, // their maps have counters of each CPU
	SIZE_SHARDS6,
	// meta.max_entries and one that stays free: kernels before 6.13 refuse to replace an entry
	// in a full trie
	SIZE_NETS,
};

static const struct instance_object {
	const char *file; // in bpffs
	size_t offset;    // offset of its descriptor in struct instance
	const char *map;  // its name in programs; NULL: no program has it
	enum object_size size;
	enum bpf_map_type type; // type of a map that no policy has; 0: it is a program
	uint32_t key_size, value_size, max_entries, flags;
} objects[] = {
#define X(member, name, ...) \
	{.file = (name), .offset = offsetof(struct instance, member), __VA_ARGS__},
	INSTANCE_OBJECTS(X)
#undef X
};

static int *object_fd(struct instance *i, const struct instance_object *o)
{
	return (int *)(void *)((char *)i + o->offset);
}

static int object_of(const struct instance *i, const struct instance_object *o)
{
	return *(const int *)(const void *)((const char *)i + o->offset);
}

#define each_object(o) \
	for (const struct instance_object *o = objects; (o) < objects + ARRAY_SIZE(objects); (o)++)

// An array of maps whose elements have counters for CPUs.
static int make_shards(struct instance *i, const struct instance_object *o, struct bpf_map *map,
		       struct err *err)
{
	size_t cpus = i->meta.cpus;
	CLEANUP_FD int inner =
		mapping_make("weir_hosts",
			     o->size == SIZE_SHARDS6 ? OVERLAY_BYTES6(cpus) : OVERLAY_BYTES4(cpus));
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)inner);
	int code;

	if (inner < 0)
		return err_system(err, -inner, "cannot create a map for hosts");
	*object_fd(i, o) = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, o->map, sizeof(uint32_t),
					  sizeof(uint32_t), OVERLAY_SHARDS, &opts);
	code = object_of(i, o) < 0 ? object_of(i, o) : bpf_map__reuse_fd(map, object_of(i, o));
	return code ? err_system(err, -code, "cannot create the map '%s'", o->map) : 0;
}

static int size_map(struct instance *i, const struct instance_object *o, struct bpf_map *map,
		    struct err *err)
{
	int code;

	if (o->size == SIZE_SHARDS4 || o->size == SIZE_SHARDS6)
		return make_shards(i, o, map, err);
	code = o->size == SIZE_NETS ? bpf_map__set_max_entries(map, i->meta.max_entries + 1) : 0;
	return code ? err_system(err, -code, "cannot size the map '%s'", o->map) : 0;
}

int instance_size_maps(struct instance *i, const struct bpf_object *obj, struct err *err)
{
	each_object(o)
	{
		struct bpf_map *map = o->map ? bpf_object__find_map_by_name(obj, o->map) : NULL;
		int code = map ? size_map(i, o, map, err) : 0;

		if (code)
			return code;
	}
	return 0;
}

int instance_take_maps(struct instance *i, const struct bpf_object *obj, struct err *err)
{
	each_object(o)
	{
		if (!o->map || o->type || object_of(i, o) >= 0)
			continue;
		*object_fd(i, o) =
			fcntl(bpf_object__find_map_fd_by_name(obj, o->map), F_DUPFD_CLOEXEC, 0);
		if (object_of(i, o) < 0)
			return err_system(err, errno, "cannot pin the map '%s' of instance '%s'",
					  o->file, i->name);
	}
	return 0;
}

int instance_make_maps(struct instance *i, struct err *err)
{
	each_object(o)
	{
		CLEANUP_FREE char *name = mem_printf("weir_%s", o->file);
		LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = o->flags);

		if (!o->type)
			continue;
		*object_fd(i, o) = bpf_map_create(
			o->type, name, o->key_size, o->value_size,
			o->max_entries ? o->max_entries : i->meta.max_entries + 1, &opts);
		if (object_of(i, o) < 0)
			return err_system(err, -object_of(i, o), "cannot create the map '%s'",
					  name);
	}
	return 0;
}

int instance_share_maps(const struct instance *i, const struct bpf_object *obj)
{
	each_object(o)
	{
		struct bpf_map *map = o->map ? bpf_object__find_map_by_name(obj, o->map) : NULL;
		int code = map ? bpf_map__reuse_fd(map, object_of(i, o)) : 0;

		if (code)
			return code;
	}
	return 0;
}

int instance_pin(const struct instance *i, const char *folder, struct err *err)
{
	each_object(o)
	{
		int code = bpffs_put(folder, o->file, object_of(i, o), err);

		if (code)
			return code;
	}
	return 0;
}

// ---- opening ------------------------------------------------------------------------------------

struct instance *instance_new(const char *name)
{
	struct instance *i = mem_new(struct instance);

	snprintf(i->name, sizeof(i->name), "%s", name);
	i->folder = mem_printf("%s/%s", BPFFS_ROOT, name);
	each_object(o) * object_fd(i, o) = -1;
	return i;
}

void instance_free(struct instance *i)
{
	if (!i)
		return;
	each_object(o) fd_close(object_of(i, o));
	if (i->knobs)
		munmap(i->knobs, sizeof(*i->knobs));
	free(i->folder);
	free(i);
}

void instance_cleanup(struct instance **i)
{
	instance_free(*i);
}

int instance_map_knobs(struct instance *i, struct err *err)
{
	void *knobs =
		mmap(NULL, sizeof(*i->knobs), PROT_READ | PROT_WRITE, MAP_SHARED, i->knobs_fd, 0);
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	if (knobs == MAP_FAILED)
		return err_system(err, errno, "cannot map the settings of instance '%s'", i->name);
	i->knobs = knobs;
	if (bpf_obj_get_info_by_fd(i->progs, &info, &size))
		return err_system(err, errno, "cannot read the program array of instance '%s'",
				  i->name);
	i->progs_id = info.id;
	return 0;
}

int instance_netns(__u64 *ret_cookie, __u64 *ret_inode, struct err *err)
{
	CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(*ret_cookie);
	struct stat st;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, ret_cookie, &size) ||
	    stat("/proc/self/ns/net", &st))
		return err_system(err, errno, "cannot identify the network namespace");
	*ret_inode = st.st_ino;
	return 0;
}

static int other_layout(const struct instance *i, struct err *err)
{
	err_refused(
		err,
		"instance '%s' was created by another version of Weir (layout %u, this one has %u)",
		i->name, i->meta.layout, WEIR_LAYOUT);
	return err_hint(
		err,
		"weir -n %s detach --force removes it from its interfaces; then attach again: "
		"blocked addresses are kept",
		i->name);
}

static int other_netns(const struct instance *i, struct err *err)
{
	CLEANUP_FREE char *name = netns_name((ino_t)i->meta.netns_inode);

	err_refused(err, "instance '%s' belongs to another network namespace (net:[%llu])", i->name,
		    (unsigned long long)i->meta.netns_inode);
	if (name)
		return err_hint(err,
				"weir -N %s enters the namespace, weir -n NAME names another "
				"instance",
				name);
	return err_hint(
		err,
		"weir -N NETNS enters the namespace, weir -n NAME names another instance; if "
		"the namespace no longer exists, weir -n %s detach --force removes the instance",
		i->name);
}

// For a missing -n, and after a reboot.
#define SHOWN_MAX 8 // instances in a hint

static void hint_instances(struct err *err)
{
	struct text names = {0};
	char **list = NULL;
	size_t n = 0;

	if (!bpffs_list(&list, &n, NULL))
		for (size_t at = 0; at < n && at < SHOWN_MAX; at++)
			text_addf(&names, "%s%s", at ? ", " : "", list[at]);
	if (names.len)
		err_hint(err, "weir -n NAME: %s%s", text_get(&names), n > SHOWN_MAX ? ", …" : "");
	else
		err_hint(err, "weir attach IFACE; this restores the policy and the entries");
	for (size_t at = 0; at < n; at++)
		free(list[at]);
	free(list);
	text_free(&names);
}

// The value of another version may have another size, and the kernel writes the whole value. Its
// first word is the layout in every version.
static int read_meta(struct instance *i, int fd, struct err *err)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info), zero = 0;
	CLEANUP_FREE char *meta = NULL;

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return err_system(err, errno, "cannot read the description of instance '%s'",
				  i->name);
	meta = mem_zalloc(1, info.value_size > sizeof(i->meta) ? info.value_size : sizeof(i->meta));
	if (bpf_map_lookup_elem(fd, &zero, meta))
		return err_system(err, errno, "cannot read the description of instance '%s'",
				  i->name);
	memcpy(&i->meta, meta, sizeof(i->meta));
	return i->meta.layout != WEIR_LAYOUT || info.value_size != sizeof(i->meta)
		       ? other_layout(i, err)
		       : 0;
}

// Where nothing works, the probe of the kernel has the better sentence.
static int without_meta(int code, struct err *err)
{
	int refused = probe_kernel(err);

	return refused ? refused : code;
}

static int check_meta(struct instance *i, struct err *err)
{
	CLEANUP_FD int fd = -1;
	__u64 cookie, inode;
	int code = bpffs_get(i->folder, WEIR_META, &fd, err);

	if (code == -ENOENT) {
		err_input(err, "instance '%s' does not exist: nothing is attached", i->name);
		hint_instances(err);
		return -ENOENT;
	}
	if (code)
		return without_meta(code, err);
	if ((code = read_meta(i, fd, err)) || (code = instance_netns(&cookie, &inode, err)))
		return code;
	return cookie != i->meta.netns_cookie ? other_netns(i, err) : 0;
}

int instance_home(const char *name, __u64 *ret_inode, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = instance_new(name);
	CLEANUP_FD int fd = -1;
	int code = bpffs_get(i->folder, WEIR_META, &fd, err);

	if (code)
		return code;
	if ((code = read_meta(i, fd, err)))
		return code;
	*ret_inode = i->meta.netns_inode;
	return 0;
}

static int missing_object(const struct instance *i, const char *file, struct err *err)
{
	err_stated(err, ENOENT, "'%s' is missing in '%s'", file, i->folder);
	return err_hint(err, "weir -n %s detach --force removes the instance; then attach again",
			i->name);
}

int instance_open(const char *name, struct instance **ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = instance_new(name);
	int code = check_meta(i, err);

	if (code)
		return code;
	each_object(o)
	{
		code = bpffs_get(i->folder, o->file, object_fd(i, o), err);
		if (code)
			return code == -ENOENT ? missing_object(i, o->file, err) : code;
	}
	if ((code = instance_map_knobs(i, err)))
		return code;
	*ret = TAKE_PTR(i);
	return 0;
}

int instance_clock(const struct instance *i, struct clock *ret, struct err *err)
{
	return clock_read(i->clock_prog, ret, err);
}

// ---- the interface table ------------------------------------------------------------------------

int instance_iface_stored(const struct instance *i, uint32_t number, struct iface *ret,
			  struct err *err)
{
	if (bpf_map_lookup_elem(i->ifaces, &number, ret))
		return err_system(err, errno, "cannot read the interfaces of instance '%s'",
				  i->name);
	return 0;
}

int instance_ifaces_stored(const struct instance *i, struct iface ret[WEIR_IFACES], struct err *err)
{
	uint32_t keys[WEIR_IFACES], next, n = WEIR_IFACES;
	struct iface at[WEIR_IFACES];
	int code = bpf_map_lookup_batch(i->ifaces, NULL, &next, keys, at, &n, NULL);

	if (code && code != -ENOENT) // -ENOENT: these are the last ones
		return err_system(err, -code, "cannot read the interfaces of instance '%s'",
				  i->name);
	memset(ret, 0, sizeof(*ret) * WEIR_IFACES);
	for (uint32_t e = 0; e < n; e++)
		ret[iface_index(keys[e])] = at[e];
	return 0;
}

// The datapath has to know whether an interface is in generic mode.
static void set_generic(const struct instance *i, uint32_t number, bool generic)
{
	uint64_t bit = iface_bit(number), all = i->knobs->generic;

	__atomic_store_n(&i->knobs->generic, generic ? all | bit : all & ~bit, __ATOMIC_RELAXED);
}

int instance_set_iface(const struct instance *i, uint32_t number, const struct iface *iface,
		       struct err *err)
{
	uint32_t ifindex = iface->state == IFACE_FREE ? 0 : iface->ifindex;
	int code = nat_device_set(i->nat, iface_index(number), ifindex, err);

	if (code)
		return code;
	if (bpf_map_update_elem(i->ifaces, &number, iface, BPF_ANY))
		return err_system(err, errno, "cannot write the interfaces of instance '%s'",
				  i->name);
	set_generic(i, number, iface->state != IFACE_FREE && iface->mode == IFACE_GENERIC);
	return 0;
}

int instance_find_any_iface(const struct instance *i, bool *ret, struct err *err)
{
	struct iface ifaces[WEIR_IFACES];
	int code = instance_ifaces_stored(i, ifaces, err);

	*ret = false;
	for (uint32_t n = 1; code == 0 && n < WEIR_IFACES; n++)
		*ret = *ret || ifaces[n].state != IFACE_FREE;
	return code;
}

bool instance_has_ifaces(const struct instance *i)
{
	bool any;

	return instance_find_any_iface(i, &any, NULL) || any;
}
