// SPDX-License-Identifier: GPL-2.0-only
// Attaches programs through libxdp and the kernel, and explains their errors.
#include "ctl/datapath/hook.h"

#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/decap.h"
#include "ctl/datapath/linked.h"
#include "ctl/datapath/probe.h"

const char *hook_mode_name(enum iface_mode mode)
{
	return mode == IFACE_NATIVE ? "native" : "generic";
}

static enum xdp_attach_mode libxdp_mode(enum iface_mode mode)
{
	return mode == IFACE_NATIVE ? XDP_MODE_NATIVE : XDP_MODE_SKB;
}

static uint32_t kernel_mode(enum iface_mode mode)
{
	return mode == IFACE_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
}

int hook_attach_shared(struct xdp_program *program, uint32_t ifindex, enum iface_mode mode)
{
	return xdp_program__attach(program, (int)ifindex, libxdp_mode(mode), 0);
}

int hook_attach_alone(int fd, uint32_t ifindex, enum iface_mode mode)
{
	return bpf_xdp_attach((int)ifindex, fd, kernel_mode(mode) | XDP_FLAGS_UPDATE_IF_NOEXIST,
			      NULL);
}

int hook_attach_failed(const char *name, const char *driver, enum iface_mode mode, int code,
		       struct err *err)
{
	const char *said = probe_kernel_said();

	err_system(err, -code, "cannot attach to '%s' in %s mode", name, hook_mode_name(mode));
	if (said[0])
		err_hint(err, "%s%s%s: %s", driver[0] ? "driver '" : "", driver,
			 driver[0] ? "'" : "the kernel says", said);
	else if (driver[0])
		err_hint(err, "driver '%s'", driver);
	return code;
}

// The instance, if it is one of Weir's, that holds this program.
static bool find_instance(uint32_t prog_id, char ret[WEIR_NAME_MAX])
{
	char **names = NULL;
	size_t n = 0;
	bool found = false;

	bpffs_list(&names, &n, NULL);
	for (size_t at = 0; at < n; at++) {
		CLEANUP_FREE char *folder = mem_printf("%s/%s", BPFFS_ROOT, names[at]);

		if (!found && (found = linked_holds(folder, prog_id)))
			snprintf(ret, WEIR_NAME_MAX, "%s", names[at]);
		free(names[at]);
	}
	free(names);
	return found;
}

static int hint_removal(const char *name, const struct attached_list *there, struct err *err)
{
	char instance[WEIR_NAME_MAX];
	uint32_t link = there->shared ? 0 : linked_holder(there->link_prog_id);

	if (there->n == 1 && !strcmp(there->at[0].name, DECAP_PROGRAM))
		return err_hint(err, "take it away first: weir decap %s --off", name);
	if (there->shared)
		return err_hint(err, "take it away first: xdp-loader unload -a %s", name);
	if (!link) // "xdp" alone would mean native mode, wherever the driver knows it
		return err_hint(err, "take it away first: ip link set dev %s %s off", name,
				there->mode == IFACE_GENERIC ? "xdpgeneric" : "xdp");
	if (find_instance(there->link_prog_id, instance))
		return err_hint(err, "take it away first: weir -n %s detach %s", instance, name);
	return err_hint(err, "take it away first: bpftool link detach id %u", link);
}

int hook_occupied(const char *name, const struct attached_list *there, const char *why,
		  struct err *err)
{
	err_refused(err,
		    "'%s' already carries the XDP program '%s' (id %u), and the two cannot "
		    "share it%s%.200s",
		    name, there->n ? there->at[0].name : "?", there->link_prog_id,
		    why ? ": " : " here", why ? why : "");
	return hint_removal(name, there, err);
}

static int remove_shared(uint32_t ifindex, uint32_t prog_id, enum iface_mode mode)
{
	struct xdp_program *program = xdp_program__from_id(prog_id);
	int code = (int)libxdp_get_error(program);

	if (code)
		return code;
	code = xdp_program__detach(program, (int)ifindex, libxdp_mode(mode), 0);
	xdp_program__close(program);
	return code;
}

// Only if it is still this one that is there: the kernel compares.
static int remove_alone(uint32_t ifindex, uint32_t prog_id, enum iface_mode mode)
{
	CLEANUP_FD int fd = bpf_prog_get_fd_by_id(prog_id);
	LIBBPF_OPTS(bpf_xdp_attach_opts, opts, .old_prog_fd = fd);

	if (fd < 0)
		return fd;
	return bpf_xdp_detach((int)ifindex, kernel_mode(mode), &opts);
}

int hook_remove(uint32_t ifindex, const struct attached_list *there, uint32_t prog_id,
		struct err *err)
{
	int code = there->shared ? remove_shared(ifindex, prog_id, there->mode)
				 : remove_alone(ifindex, prog_id, there->mode);

	return code ? err_system(err, -code, "cannot take the program off interface %u", ifindex)
		    : 0;
}
