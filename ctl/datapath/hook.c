// SPDX-License-Identifier: GPL-2.0-only
// The attach of programs through libxdp and the kernel, with errors in words.
#include "ctl/datapath/hook.h"

#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "common/decap.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/confined.h"
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

// The instance whose link holds this program, if it is one of Weir.
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
		return err_hint(err, "remove it first: weir decap %s --off", name);
	if (there->shared)
		return err_hint(err, "remove it first: xdp-loader unload -a %s", name);
	if (!link) // "xdp" without a suffix would mean native mode, if the driver has it
		return err_hint(err, "remove it first: ip link set dev %s %s off", name,
				there->mode == IFACE_GENERIC ? "xdpgeneric" : "xdp");
	if (find_instance(there->link_prog_id, instance))
		return err_hint(err, "remove it first: weir -n %s detach %s", instance, name);
	return err_hint(err, "remove it first: bpftool link detach id %u", link);
}

static const char *why_apart(const struct hook_program *program, const struct attached_list *there,
			     const struct err *why)
{
	return program->can_share && !there->shared ? "it was attached without libxdp's dispatcher"
						    : why->text;
}

// why: the failure of the attempt to share.
static int occupied(const struct hook_target *target, const struct hook_program *program,
		    const struct attached_list *there, const struct err *why, struct err *err)
{
	err_refused(err,
		    "'%s' already carries the XDP program '%s' (id %u), and the two cannot "
		    "share it: %.200s",
		    target->name, there->n ? there->at[0].name : "?", there->link_prog_id,
		    why_apart(program, there, why));
	return hint_removal(target->name, there, err);
}

// The kernel's message may name a limit; the reason also has the command that fixes it.
static int attach_failed(const struct hook_target *target, enum iface_mode mode, int code,
			 struct err *err)
{
	const char *said = probe_kernel_said(), *driver = target->driver;
	const char *reason = mode == IFACE_NATIVE && target->reason ? target->reason : "";

	err_system(err, -code, "cannot attach to '%s' in %s mode", target->name,
		   hook_mode_name(mode));
	if (said[0] || reason[0])
		err_hint(err, "%s%s%s: %s%s%s", driver[0] ? "driver '" : "", driver,
			 driver[0] ? "'" : "the kernel says", said,
			 said[0] && reason[0] ? "; " : "", reason);
	else if (driver[0])
		err_hint(err, "driver '%s'", driver);
	confined_explain(err, CONFINED_ATTACH);
	return code;
}

static void notice_alone(const struct hook_target *target, const char *why,
			 char notice[HOOK_NOTICE])
{
	size_t len = strlen(notice);

	snprintf(notice + len, HOOK_NOTICE - len,
		 "%s'%s' is not shared with other XDP programs: %.200s", len ? "; " : "",
		 target->name, why);
}

// If the kernel refuses the dispatcher, libxdp attaches the program without it and reports success.
static void notice_fallback(const struct hook_target *target, char notice[HOOK_NOTICE])
{
	struct attached_list there;

	if (!attach_query(target->ifindex, 0, &there, NULL) && !there.shared)
		notice_alone(target, "this kernel refuses libxdp's dispatcher", notice);
}

// why: the failure of the attempt to share.
static int attach_apart(const struct hook_target *target, enum iface_mode mode,
			const struct hook_program *program, const struct err *why,
			char notice[HOOK_NOTICE], struct err *err)
{
	struct attached_list there;
	int code = attach_query(target->ifindex, 0, &there, err);

	if (code)
		return code;
	if (there.link_prog_id)
		return occupied(target, program, &there, why, err);
	probe_kernel_said(); // forgets the kernel's messages about the attempt to share
	if ((code = program->alone(program->ctx, mode)))
		return attach_failed(target, mode, code, err);
	notice_alone(target, why->text, notice);
	return 0;
}

static int attach_in(const struct hook_target *target, enum iface_mode mode,
		     const struct hook_program *program, char notice[HOOK_NOTICE], struct err *err)
{
	struct err why = {0};

	if (program->shared(program->ctx, mode, &why))
		return attach_apart(target, mode, program, &why, notice, err);
	notice_fallback(target, notice);
	return 0;
}

static void notice_generic(const struct hook_target *target, const struct hook_program *program,
			   const struct err *native, char notice[HOOK_NOTICE])
{
	bool hint = native->hint[0];

	snprintf(notice, HOOK_NOTICE,
		 "generic mode, slower: %.200s%s%.512s%s; the stack may merge packets before %s: "
		 "ethtool -K %.16s gro off",
		 native->text, hint ? " (" : "", native->hint, hint ? ")" : "", program->before,
		 target->name);
}

int hook_attach(const struct hook_target *target, enum attach_mode mode, const struct err *unfit,
		const struct hook_program *program, char notice[HOOK_NOTICE], struct err *err)
{
	struct err native = {0};
	int code;

	notice[0] = '\0';
	if (mode == ATTACH_GENERIC)
		return attach_in(target, IFACE_GENERIC, program, notice, err);
	if (unfit)
		native = *unfit;
	code = unfit ? -unfit->code : attach_in(target, IFACE_NATIVE, program, notice, &native);
	if (!code)
		return 0;
	if (mode == ATTACH_NATIVE || native.kind == ERR_REFUSED) {
		*err = native;
		return code;
	}
	notice_generic(target, program, &native, notice);
	return attach_in(target, IFACE_GENERIC, program, notice, err);
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

// Only if it is still there: the kernel compares.
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

	return code ? err_system(err, -code, "cannot detach the program from interface %u", ifindex)
		    : 0;
}
