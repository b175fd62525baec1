// SPDX-License-Identifier: GPL-2.0-only
// Loads, attaches and detaches the programs for outgoing calls.
#include "ctl/datapath/outgoing.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/cgroup.h"
#include "ctl/datapath/confined.h"
#include "ctl/datapath/overlay_table.h"
#include "xdp/outgoing.skel.h"

static const struct {
	const char *name; // the program; without "weir_" the pin
	enum bpf_attach_type type;
} hooks[OUTGOING_HOOKS] = {
	{"weir_connect4", BPF_CGROUP_INET4_CONNECT},
	{"weir_connect6", BPF_CGROUP_INET6_CONNECT},
	{"weir_sendmsg4", BPF_CGROUP_UDP4_SENDMSG},
	{"weir_sendmsg6", BPF_CGROUP_UDP6_SENDMSG},
};

static char *folder_of(const char *instance_folder)
{
	return mem_printf("%s/out", instance_folder);
}

static char *path_of(const char *instance_folder, size_t hook)
{
	return mem_printf("%s/out/%s", instance_folder, hooks[hook].name + strlen("weir_"));
}

// The cgroup of the pinned link; 0: there is no link, or it was detached.
static uint64_t cgroup_of(const struct instance *i, size_t hook)
{
	CLEANUP_FREE char *path = path_of(i->folder, hook);
	CLEANUP_FD int fd = bpf_obj_get(path);
	struct bpf_link_info info = {0};
	uint32_t size = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) || info.type != BPF_LINK_TYPE_CGROUP)
		return 0;
	return info.cgroup.cgroup_id;
}

// Does a link to this cgroup see all calls that one to the visible root would see? A command in a
// container leaves the links of the machine.
static bool is_enough(uint64_t cgroup, uint64_t root)
{
	return cgroup == CGROUP_ROOT || (cgroup && cgroup == root);
}

struct outgoing_links outgoing_links(const struct instance *i)
{
	struct outgoing_links links = {0};
	CLEANUP_FD int fd = -1;
	uint64_t root = 0;
	bool visible = !cgroup_open_root(&fd, &root, NULL);

	for (size_t hook = 0; hook < OUTGOING_HOOKS; hook++) {
		uint64_t cgroup = cgroup_of(i, hook);

		links.attached += cgroup != 0;
		links.narrow += cgroup && visible && !is_enough(cgroup, root);
		links.part += cgroup && cgroup != CGROUP_ROOT;
	}
	return links;
}

bool outgoing_wanted(const struct instance *i)
{
	static const enum overlay_table tables[] = {TABLE_OUT4, TABLE_OUT6};

	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++)
			if (i->knobs->entries[tables[t]][kind] && !overlay_is_allow(kind))
				return true;
	return false;
}

// ---- attaching ----------------------------------------------------------------------------------

static void skeleton_cleanup(struct outgoing_bpf **skel)
{
	outgoing_bpf__destroy(*skel);
}

static int load_into(const struct instance *i, struct outgoing_bpf *skel)
{
	int code;

	if (!skel)
		return -errno;
	skel->rodata->home = i->meta.netns_cookie;
	code = instance_share_maps(i, skel->obj);
	return code ? code : outgoing_bpf__load(skel);
}

static int load(const struct instance *i, struct outgoing_bpf **ret, struct err *err)
{
	CLEANUP(skeleton_cleanup) struct outgoing_bpf *skel = outgoing_bpf__open();
	int code = load_into(i, skel);

	if (code) {
		err_system(err, -code, "this kernel refuses the programs for outgoing connections");
		confined_explain(err, CONFINED_LOAD);
		return code;
	}
	*ret = TAKE_PTR(skel);
	return 0;
}

static int refused(size_t hook, int code, struct err *err)
{
	err_system(err, -code, "cannot attach '%s' to the root of cgroup 2", hooks[hook].name);
	if (code == -EPERM)
		err_hint(err, "another program may be attached there for itself only: bpftool "
			      "cgroup show /sys/fs/cgroup");
	confined_explain(err, CONFINED_LOAD);
	return code;
}

// Before the pin there is no way back to the link: it is detached at once.
static int attach_hook(const struct instance *i, const struct outgoing_bpf *skel, size_t hook,
		       int cgroup, struct err *err)
{
	CLEANUP_FREE char *path = path_of(i->folder, hook);
	const struct bpf_program *program =
		bpf_object__find_program_by_name(skel->obj, hooks[hook].name);
	CLEANUP_FD int fd =
		bpf_link_create(bpf_program__fd(program), cgroup, hooks[hook].type, NULL);
	int code;

	if (fd < 0)
		return refused(hook, fd, err);
	code = unlink(path) && errno != ENOENT ? -errno : bpf_obj_pin(fd, path);
	if (code) {
		bpf_link_detach(fd);
		return err_system(err, -code, "cannot create '%s'", path);
	}
	return 0;
}

static int attach_missing(const struct instance *i, int cgroup, uint64_t root, struct err *err)
{
	CLEANUP(skeleton_cleanup) struct outgoing_bpf *skel = NULL;
	CLEANUP_FREE char *folder = folder_of(i->folder);
	int code = load(i, &skel, err);

	if (code || (code = file_mkdirs(folder, 0700, err)))
		return code;
	for (size_t hook = 0; hook < OUTGOING_HOOKS; hook++)
		if (!is_enough(cgroup_of(i, hook), root) &&
		    (code = attach_hook(i, skel, hook, cgroup, err)))
			return code;
	return 0;
}

int outgoing_attach(const struct instance *i, bool *ret_whole, struct err *err)
{
	struct outgoing_links links = outgoing_links(i);
	CLEANUP_FD int cgroup = -1;
	uint64_t root;
	int code = cgroup_open_root(&cgroup, &root, err);

	if (code && links.attached < OUTGOING_HOOKS)
		return code;
	err_clear(err); // attached, although cgroup 2 is not visible here
	if (links.attached < OUTGOING_HOOKS || links.narrow) {
		if ((code = attach_missing(i, cgroup, root, err)))
			return code;
		links = outgoing_links(i);
	}
	*ret_whole = !links.part;
	return 0;
}

// ---- detaching ----------------------------------------------------------------------------------

static int detach_hook(const char *path, struct err *err)
{
	CLEANUP_FD int fd = bpf_obj_get(path);
	int code;

	if (fd == -ENOENT)
		return 0;
	// After the last close the kernel detaches a link only a moment later.
	code = fd < 0 ? fd : bpf_link_detach(fd);
	if (code == 0 && unlink(path))
		code = -errno;
	return code ? err_system(err, -code, "cannot detach '%s'", path) : 0;
}

int outgoing_detach(const char *instance_folder, struct err *err)
{
	CLEANUP_FREE char *folder = folder_of(instance_folder);

	if (!file_exists(folder))
		return 0;
	for (size_t hook = 0; hook < OUTGOING_HOOKS; hook++) {
		CLEANUP_FREE char *path = path_of(instance_folder, hook);
		int code = detach_hook(path, err);

		if (code)
			return code;
	}
	return file_remove_tree(folder, err);
}

// Before instance_publish, programs of a killed command would have no instance that detaches them.
static bool is_visible(const struct instance *i)
{
	const char *name = strrchr(i->folder, '/');

	return name && !strcmp(name + 1, i->name);
}

int outgoing_follow(const struct instance *i, bool *ret_whole, struct err *err)
{
	*ret_whole = true;
	if (!is_visible(i))
		return 0;
	return outgoing_wanted(i) ? outgoing_attach(i, ret_whole, err)
				  : outgoing_detach(i->folder, err);
}
