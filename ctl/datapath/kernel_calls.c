// SPDX-License-Identifier: GPL-2.0-only
// Finds functions by name in the types of the kernel, or of the module that has them.
#include "ctl/datapath/kernel_calls.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>
#include <linux/btf.h>

#include "common/markers.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"

#define MODULE "nf_conntrack"

static const char *const names[MARKER_CALLS] = {
	[MARKER_CALL_LOOKUP - MARKER_CALL_FIRST] = "bpf_xdp_ct_lookup",
	[MARKER_CALL_RELEASE - MARKER_CALL_FIRST] = "bpf_ct_release",
};

static struct {
	bool asked;
	int ids[MARKER_CALLS]; // types of the functions; 0 or negative: not found
	// [0]: of the kernel itself, whose types need no descriptor; [1]: of the module
	int fds[2];
	short module; // index in fds: where the functions are
} found;

static bool find_all(const struct btf *types)
{
	bool all = true;

	for (size_t n = 0; n < MARKER_CALLS; n++) {
		found.ids[n] = btf__find_by_name_kind(types, names[n], BTF_KIND_FUNC);
		all = all && found.ids[n] > 0;
	}
	return all;
}

static bool is_module(int fd)
{
	char name[sizeof(MODULE) + 1] = "";
	struct bpf_btf_info info = {.name = (uintptr_t)name, .name_len = sizeof(name)};
	uint32_t size = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &size) && info.kernel_btf &&
	       !strcmp(name, MODULE);
}

// The number of the module's types, 0: it is not loaded. *ret_fd: their descriptor.
static uint32_t find_module(int *ret_fd)
{
	uint32_t id = 0;

	while (!bpf_btf_get_next_id(id, &id)) {
		int fd = bpf_btf_get_fd_by_id(id);

		if (fd >= 0 && is_module(fd)) {
			*ret_fd = fd;
			return id;
		}
		if (fd >= 0)
			close(fd);
	}
	return 0;
}

static void find_in_module(struct btf *kernel)
{
	struct btf *types;
	uint32_t id = find_module(&found.fds[1]);

	types = id ? btf__load_from_kernel_by_id_split(id, kernel) : NULL;
	if (types && find_all(types))
		found.module = 1;
	btf__free(types);
}

static void find(void)
{
	struct btf *kernel = btf__load_vmlinux_btf();

	found.asked = true;
	if (kernel && !find_all(kernel))
		find_in_module(kernel);
	btf__free(kernel);
}

static bool is_call(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg &&
	       insn->imm >= MARKER_CALL_FIRST && insn->imm < MARKER_CALL_FIRST + MARKER_CALLS;
}

const int *kernel_calls_put(struct bpf_insn *insns, size_t n)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		int id;

		if (!is_call(&insns[i]))
			continue;
		any = true;
		if (!found.asked)
			find();
		id = found.ids[insns[i].imm - MARKER_CALL_FIRST];
		if (id <= 0)
			continue;
		insns[i].src_reg = BPF_PSEUDO_KFUNC_CALL;
		insns[i].imm = id;
		insns[i].off = found.module;
	}
	return any ? found.fds : NULL;
}
