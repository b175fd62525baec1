// SPDX-License-Identifier: GPL-2.0-only
// Tries what libxdp will do at attach, early enough to load the policies for it.
#include "ctl/datapath/sharing.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>
#include <xdp/prog_dispatcher.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/instance.h"
#include "xdp/root.skel.h"

#define DISPATCHER_FILE "xdp-dispatcher.o"
#define DISPATCHER      "xdp_dispatcher"
#define PLACE           "prog0" // the first of the dispatcher's functions that extensions replace
#define LOG_BYTES       (64 << 10)

static void close_program(struct xdp_program **program)
{
	if (*program)
		xdp_program__close(*program);
}

static void close_root(struct root_bpf **skel)
{
	root_bpf__destroy(*skel);
}

// The dispatcher for two programs, as libxdp makes it if another program is on the interface.
static int configure(struct bpf_object *obj)
{
	struct xdp_dispatcher_config config = {
		.magic = XDP_DISPATCHER_MAGIC,
		.dispatcher_version = XDP_DISPATCHER_VERSION,
		.num_progs_enabled = 2,
		.is_xdp_frags = 1,
	};
	struct bpf_program *program = bpf_object__find_program_by_name(obj, DISPATCHER);
	struct bpf_map *rodata = bpf_object__next_map(obj, NULL);

	for (size_t p = 0; p < config.num_progs_enabled; p++) {
		config.chain_call_actions[p] = 1u << XDP_PASS | 1u << XDP_DISPATCHER_RETVAL;
		config.program_flags[p] = BPF_F_XDP_HAS_FRAGS;
	}
	if (!program || !rodata)
		return -ENOENT;
	bpf_program__set_autoload(program, true);
	bpf_program__set_flags(program, BPF_F_XDP_HAS_FRAGS);
	return bpf_map__set_initial_value(rodata, &config, sizeof(config));
}

// *ret_fd belongs to *ret.
static int load_dispatcher(struct xdp_program **ret, int *ret_fd)
{
	DECLARE_LIBXDP_OPTS(xdp_program_opts, opts, .find_filename = DISPATCHER_FILE,
			    .prog_name = DISPATCHER);
	CLEANUP(close_program) struct xdp_program *program = xdp_program__create(&opts);
	int code = (int)libxdp_get_error(program);
	struct bpf_object *obj;

	if (code) {
		program = NULL;
		return code;
	}
	obj = xdp_program__bpf_obj(program);
	if ((code = configure(obj)) || (code = bpf_object__load(obj)))
		return code;
	*ret_fd = bpf_program__fd(bpf_object__find_program_by_name(obj, DISPATCHER));
	*ret = TAKE_PTR(program);
	return 0;
}

static int load_extension(struct root_bpf *skel, int dispatcher, char *log)
{
	struct bpf_program *root = skel->progs.weir_root;
	int code = bpf_program__set_attach_target(root, dispatcher, PLACE);

	if (code)
		return code;
	bpf_program__set_type(root, BPF_PROG_TYPE_EXT);
	bpf_program__set_expected_attach_type(root, 0);
	bpf_program__set_log_buf(root, log, LOG_BYTES);
	return root_bpf__load(skel);
}

// Does a program array that an extension uses accept a program that is loaded with sharing_flags()?
static int fill_program(const struct root_bpf *skel)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	CLEANUP_FD int program = bpf_prog_load(BPF_PROG_TYPE_XDP, "weir_probe", "GPL", insns,
					       ARRAY_SIZE(insns), NULL);
	uint32_t which = PROG_ACTIVE;

	if (program < 0)
		return program;
	return bpf_map_update_elem(bpf_map__fd(skel->maps.progs), &which, &program, BPF_ANY)
		       ? -errno
		       : 0;
}

static enum weir_sharing judge(int code, const char *log)
{
	if (!code)
		return SHARING_WORKS;
	if (strstr(log, "changes packet data"))
		return SHARING_OLD_LIBXDP;
	return code == -EPERM ? SHARING_NO_EXTENSIONS : SHARING_REFUSED;
}

static int try_root(int dispatcher, char *log)
{
	CLEANUP(close_root) struct root_bpf *skel = root_bpf__open();
	int code = skel ? load_extension(skel, dispatcher, log) : -errno;

	return code ? code : fill_program(skel);
}

static void try_it(struct meta *ret)
{
	CLEANUP(close_program) struct xdp_program *dispatcher = NULL;
	CLEANUP_FREE char *log = mem_zalloc(1, LOG_BYTES);
	int fd = -1, code = load_dispatcher(&dispatcher, &fd);

	if (code) {
		ret->sharing = SHARING_NO_DISPATCHER;
	} else {
		code = try_root(fd, log);
		ret->sharing = judge(code, log);
	}
	ret->sharing_code = (uint32_t)-code;
}

void sharing_probe(struct meta *ret)
{
	static struct meta known;
	static bool tried;

	if (!tried)
		try_it(&known);
	tried = true;
	ret->sharing = known.sharing;
	ret->sharing_code = known.sharing_code;
}

int sharing_check(const struct meta *meta, struct err *err)
{
	static const char *const reasons[] = {
		[SHARING_NO_DISPATCHER] = "libxdp's dispatcher cannot be loaded",
		[SHARING_NO_EXTENSIONS] =
			"this kernel allows no extension programs, which libxdp's dispatcher needs",
		[SHARING_OLD_LIBXDP] =
			"this kernel requires the dispatcher of libxdp 1.5.5 or later",
		[SHARING_REFUSED] = "this kernel refuses Weir under libxdp's dispatcher",
	};
	uint32_t sharing = meta->sharing < ARRAY_SIZE(reasons) ? meta->sharing : SHARING_REFUSED;

	if (sharing == SHARING_WORKS)
		return 0;
	if (sharing != SHARING_REFUSED)
		return err_stated(err, (int)meta->sharing_code, "%s", reasons[sharing]);
	return err_system(err, (int)meta->sharing_code, "%s", reasons[sharing]);
}

uint32_t sharing_flags(const struct instance *i)
{
	return i && i->meta.sharing == SHARING_WORKS ? 0 : BPF_F_XDP_HAS_FRAGS;
}
