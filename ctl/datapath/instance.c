// SPDX-License-Identifier: GPL-2.0-only
// Opens, makes and removes instances.
#include "ctl/datapath/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/probe.h"
#include "ctl/datapath/seed.h"
#include "ctl/datapath/sharing.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

// Every pinned thing of an instance and where its descriptor goes.
static const struct pin {
	const char *name;
	size_t offset;
} pins[] = {
	{WEIR_MAP_KNOBS, offsetof(struct instance, knobs_fd)},
	{WEIR_MAP_PROGS, offsetof(struct instance, progs)},
	{WEIR_MAP_IFACES, offsetof(struct instance, ifaces)},
	{WEIR_MAP_COUNTERS, offsetof(struct instance, counters)},
	{WEIR_MAP_EVENTS, offsetof(struct instance, events)},
	{WEIR_MAP_HOSTS4, offsetof(struct instance, hosts4)},
	{WEIR_MAP_HOSTS6, offsetof(struct instance, hosts6)},
	{WEIR_MAP_NETS4, offsetof(struct instance, nets4)},
	{WEIR_MAP_NETS6, offsetof(struct instance, nets6)},
	{WEIR_MAP_RULES, offsetof(struct instance, rulecounters)},
	{WEIR_MAP_STATIONS, offsetof(struct instance, stations)},
	{WEIR_MAP_IDENTITIES, offsetof(struct instance, identities)},
	{"clock", offsetof(struct instance, clock_prog)},
};

static int *pin_fd(struct instance *i, size_t pin)
{
	return (int *)(void *)((char *)i + pins[pin].offset);
}

static struct instance *instance_new(const char *name)
{
	struct instance *i = mem_new(struct instance);

	snprintf(i->name, sizeof(i->name), "%s", name);
	i->folder = mem_printf("%s/%s", BPFFS_ROOT, name);
	for (size_t p = 0; p < ARRAY_SIZE(pins); p++)
		*pin_fd(i, p) = -1;
	return i;
}

void instance_free(struct instance *i)
{
	if (!i)
		return;
	for (size_t p = 0; p < ARRAY_SIZE(pins); p++)
		fd_close(*pin_fd(i, p));
	if (i->knobs)
		munmap(i->knobs, sizeof(*i->knobs));
	free(i->folder);
	free(i);
}

void instance_cleanup(struct instance **i)
{
	instance_free(*i);
}

static int map_knobs(struct instance *i, struct err *err)
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

static int netns_of_this(__u64 *ret_cookie, __u64 *ret_inode, struct err *err)
{
	CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(*ret_cookie);
	struct stat st;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, ret_cookie, &size) ||
	    stat("/proc/self/ns/net", &st))
		return err_system(err, errno, "cannot tell the network namespace");
	*ret_inode = st.st_ino;
	return 0;
}

static int other_layout(const struct instance *i, struct err *err)
{
	err_refused(
		err,
		"instance '%s' was made by another version of Weir (layout %u, this one has %u)",
		i->name, i->meta.layout, WEIR_LAYOUT);
	return err_hint(err,
			"weir -n %s detach --force takes it off its interfaces and removes it; "
			"then attach again: what was blocked is kept",
			i->name);
}

static int other_netns(const struct instance *i, struct err *err)
{
	err_refused(err, "instance '%s' belongs to another network namespace (net:[%llu])", i->name,
		    (unsigned long long)i->meta.netns_inode);
	return err_hint(
		err,
		"weir -N NETNS enters the namespace, weir -n NAME names another instance; if "
		"the namespace is gone, weir -n %s detach --force removes what is left",
		i->name);
}

// Whoever forgets -n, or comes back after a reboot.
static void hint_instances(struct err *err)
{
	struct text names = {0};
	char **list = NULL;
	size_t n = 0;

	if (!bpffs_list(&list, &n, NULL))
		for (size_t at = 0; at < n; at++)
			text_addf(&names, "%s%s", at ? ", " : "", list[at]);
	if (names.len)
		err_hint(err, "weir -n NAME: %s", text_get(&names));
	else
		err_hint(err,
			 "weir attach IFACE; what was in force there before comes back with it");
	for (size_t at = 0; at < n; at++)
		free(list[at]);
	free(list);
	text_free(&names);
}

// Another version's row may be of another size, and the kernel writes a whole one; only its layout, which is
// the first word in all of them, is understood then.
static int read_meta(struct instance *i, int fd, struct err *err)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info), zero = 0;
	CLEANUP_FREE char *row = NULL;

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return err_system(err, errno, "cannot read the pins of instance '%s'", i->name);
	row = mem_zalloc(1, info.value_size > sizeof(i->meta) ? info.value_size : sizeof(i->meta));
	if (bpf_map_lookup_elem(fd, &zero, row))
		return err_system(err, errno, "cannot read the pins of instance '%s'", i->name);
	memcpy(&i->meta, row, sizeof(i->meta));
	return i->meta.layout != WEIR_LAYOUT || info.value_size != sizeof(i->meta)
		       ? other_layout(i, err)
		       : 0;
}

static int check_meta(struct instance *i, struct err *err)
{
	CLEANUP_FD int fd = -1;
	__u64 cookie, inode;
	int code = bpffs_get(i->folder, WEIR_MAP_META, &fd, err);

	if (code == -ENOENT) {
		err_input(err, "there is no instance '%s': nothing is attached", i->name);
		hint_instances(err);
		return -ENOENT;
	}
	if (code)
		return code;
	if ((code = read_meta(i, fd, err)) || (code = netns_of_this(&cookie, &inode, err)))
		return code;
	return cookie != i->meta.netns_cookie ? other_netns(i, err) : 0;
}

static int missing_pin(const struct instance *i, const char *pin, struct err *err)
{
	err_system(err, ENOENT, "instance '%s' has lost its pin '%s'", i->name, pin);
	return err_hint(err, "weir -n %s detach --force removes what is left, then attach again",
			i->name);
}

int instance_open(const char *name, struct instance **ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = instance_new(name);
	int code = check_meta(i, err);

	for (size_t p = 0; !code && p < ARRAY_SIZE(pins); p++) {
		code = bpffs_get(i->folder, pins[p].name, pin_fd(i, p), err);
		if (code == -ENOENT)
			return missing_pin(i, pins[p].name, err);
	}
	if (code || (code = map_knobs(i, err)))
		return code;
	*ret = TAKE_PTR(i);
	return 0;
}

static int make_map(const char *name, uint32_t value_size, uint32_t rows, int *ret_fd,
		    struct err *err)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), value_size, rows, NULL);

	if (fd < 0)
		return err_system(err, -fd, "cannot make the map '%s'", name);
	*ret_fd = fd;
	return 0;
}

static int make_identities(int *ret_fd, struct err *err)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "weir_identities", sizeof(struct identity_key),
				sizeof(uint32_t), WEIR_RULE_COUNTERS, NULL);

	if (fd < 0)
		return err_system(err, -fd, "cannot make the map of rule identities");
	*ret_fd = fd;
	return 0;
}

// The folder that is being built ('+' is in no instance's name, and bpffs allows no '.'): everything in it is removed by the next attempt if this one dies.
static int make_folder(const struct instance *i, char **ret, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s+new", BPFFS_ROOT, i->name);
	int code = file_remove_tree(folder, err);

	if (!code)
		code = file_mkdirs(folder, 0700, err);
	if (code)
		return code;
	*ret = TAKE_PTR(folder);
	return 0;
}

static int pin_meta(const struct instance *i, const char *folder, struct err *err)
{
	CLEANUP_FD int fd = -1;
	uint32_t zero = 0;
	int code = make_map("weir_meta", sizeof(struct meta), 1, &fd, err);

	if (code)
		return code;
	if (bpf_map_update_elem(fd, &zero, &i->meta, BPF_ANY))
		return err_system(err, errno, "cannot write the pins of instance '%s'", i->name);
	return bpffs_put(folder, WEIR_MAP_META, fd, err);
}

static int fill_programs(const struct instance *i, int program, struct err *err)
{
	for (uint32_t which = 0; which < PROGS; which++)
		if (bpf_map_update_elem(i->progs, &which, &program, BPF_ANY))
			return err_system(err, errno,
					  "cannot put the policy into program array index %u",
					  which);
	return 0;
}

static int load_all(struct instance *i, struct generation **ret_first, struct err *err)
{
	int code = generation_load_first(i, ret_first, err);

	if (!code)
		code = clock_load(&i->clock_prog, err);
	if (!code)
		code = make_map("weir_ifaces", sizeof(struct iface), WEIR_IFACES, &i->ifaces, err);
	if (!code)
		code = make_identities(&i->identities, err);
	if (!code)
		code = map_knobs(i, err);
	if (code)
		return code;
	i->knobs->snap = WEIR_SNAP_DEFAULT;
	iface_table_begin(i->knobs);
	if (getrandom(&i->knobs->seed, sizeof(i->knobs->seed), 0) < 0)
		return err_system(err, errno, "cannot draw a random seed");
	return fill_programs(i, generation_program(*ret_first), err);
}

static int pin_all(struct instance *i, struct generation *first, const char *folder,
		   struct err *err)
{
	static const struct generation_about nobody;
	int code = generation_pin(folder, first, 1, &nobody, err);

	if (!code)
		code = pin_meta(i, folder, err);
	for (size_t p = 0; !code && p < ARRAY_SIZE(pins); p++)
		code = bpffs_put(folder, pins[p].name, *pin_fd(i, p), err);
	if (code)
		return code;
	free(i->folder);
	i->folder = mem_strdup(folder);
	return 0;
}

int instance_publish(struct instance *i, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", BPFFS_ROOT, i->name);

	if (rename(i->folder, folder))
		return err_system(err, errno, "cannot make '%s'", folder);
	free(i->folder);
	i->folder = TAKE_PTR(folder);
	return 0;
}

static int describe(struct instance *i, uint32_t max_entries, struct err *err)
{
	int code = probe_kernel(err);
	struct hash_key key;

	i->meta = (struct meta){
		.layout = WEIR_LAYOUT,
		.max_entries = max_entries,
		.created_s = (uint64_t)time(NULL),
	};
	if (code)
		return code;
	sharing_probe(&i->meta);
	// A damaged file does not prevent an attach: the apply that needs the seed reports it.
	code = seed_read(i->name, &key, err);
	if (code == -EBADMSG)
		code = seed_read("", &key, err);
	if (code)
		return code;
	i->meta.ring_key[0] = key.word[0];
	i->meta.ring_key[1] = key.word[1];
	return netns_of_this(&i->meta.netns_cookie, &i->meta.netns_inode, err);
}

int instance_create(const char *name, uint32_t max_entries, struct instance **ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = instance_new(name);
	CLEANUP_FREE char *folder = NULL;
	CLEANUP_GENERATION struct generation *first = NULL;
	int code = describe(i, max_entries, err);

	if (!code)
		code = make_folder(i, &folder, err);
	if (!code)
		code = load_all(i, &first, err);
	if (!code)
		code = pin_all(i, first, folder, err);
	if (code && folder)
		file_remove_tree(folder, NULL);
	if (code)
		return code;
	*ret = TAKE_PTR(i);
	return 0;
}

int instance_create_private(uint32_t max_entries, struct instance **ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = instance_new("");
	CLEANUP_GENERATION struct generation *first = NULL;
	int code = describe(i, max_entries, err);

	if (!code)
		code = load_all(i, &first, err);
	if (code)
		return code;
	*ret = TAKE_PTR(i);
	return 0;
}

int instance_remove(const char *name, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", BPFFS_ROOT, name);
	CLEANUP_FREE char *going = mem_printf("%s/%s+old", BPFFS_ROOT, name);
	int code = file_remove_tree(going, err);

	if (code)
		return code;
	// Out of sight first: a half-removed instance must not be found.
	if (rename(folder, going) && errno != ENOENT)
		return err_system(err, errno, "cannot remove '%s'", folder);
	return file_remove_tree(going, err);
}

int instance_sweep(const char *name, struct err *err)
{
	CLEANUP_FREE char *fresh = mem_printf("%s/%s+new", BPFFS_ROOT, name);
	CLEANUP_FREE char *going = mem_printf("%s/%s+old", BPFFS_ROOT, name);
	int code = file_remove_tree(fresh, err);

	return code ? code : file_remove_tree(going, err);
}

int instance_clock(const struct instance *i, struct clock *ret, struct err *err)
{
	return clock_read(i->clock_prog, ret, err);
}

int instance_iface_stored(const struct instance *i, uint32_t number, struct iface *ret,
			  struct err *err)
{
	if (bpf_map_lookup_elem(i->ifaces, &number, ret))
		return err_system(err, errno, "cannot read the interfaces of instance '%s'",
				  i->name);
	return 0;
}

int instance_iface(const struct instance *i, uint32_t number, struct iface *ret, struct err *err)
{
	struct iface row;
	int code = instance_iface_stored(i, number, &row, err);

	if (code)
		return code;
	if (row.state != IFACE_FREE)
		device_refresh(i, number, &row);
	*ret = row;
	return 0;
}

// What the datapath has to know of an interface's mode.
static void set_generic(const struct instance *i, uint32_t number, bool generic)
{
	uint64_t bit = 1ull << (number & (WEIR_IFACES - 1)), all = i->knobs->generic;

	__atomic_store_n(&i->knobs->generic, generic ? all | bit : all & ~bit, __ATOMIC_RELAXED);
}

int instance_set_iface(const struct instance *i, uint32_t number, const struct iface *row,
		       struct err *err)
{
	if (bpf_map_update_elem(i->ifaces, &number, row, BPF_ANY))
		return err_system(err, errno, "cannot write the interfaces of instance '%s'",
				  i->name);
	set_generic(i, number, row->state != IFACE_FREE && row->mode == IFACE_GENERIC);
	return 0;
}

int instance_find_iface(const struct instance *i, const char *name, uint32_t *ret, struct err *err)
{
	uint32_t ifindex = if_nametoindex(name), found = 0;
	struct iface row;
	int code = 0;

	for (uint32_t n = 1; !code && n < WEIR_IFACES; n++) {
		code = instance_iface(i, n, &row, err);
		if (!code && row.state != IFACE_FREE && !strcmp(row.name, name) &&
		    (!found || row.ifindex == ifindex))
			found = n;
	}
	if (!code)
		*ret = found;
	return code;
}

bool instance_has_ifaces(const struct instance *i)
{
	struct iface row;

	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (instance_iface_stored(i, n, &row, NULL) || row.state != IFACE_FREE)
			return true;
	return false;
}
