// SPDX-License-Identifier: GPL-2.0-only
// Probes the kernel by trying, and filters the messages of the libraries.
#include "ctl/datapath/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <xdp/libxdp.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/confined.h"

static bool verbose;
static char kernel_said[256];

static void remember(const char *line)
{
	static const char *const marks[] = {"Kernel error message: ", "extack: "};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		const char *found = strstr(line, marks[i]);

		if (found)
			snprintf(kernel_said, sizeof(kernel_said), "%s", found + strlen(marks[i]));
	}
	kernel_said[strcspn(kernel_said, "\n")] = '\0';
}

__attribute__((format(printf, 2, 0))) static int print(bool shown, const char *fmt, va_list ap)
{
	char line[1024];

	vsnprintf(line, sizeof(line), fmt, ap);
	remember(line);
	if (shown)
		fputs(line, stderr);
	return 0;
}

__attribute__((format(printf, 2, 0))) static int libbpf_line(enum libbpf_print_level level,
							     const char *fmt, va_list ap)
{
	return print(verbose && level != LIBBPF_DEBUG, fmt, ap);
}

__attribute__((format(printf, 2, 0))) static int libxdp_line(enum libxdp_print_level level,
							     const char *fmt, va_list ap)
{
	return print(verbose && level != LIBXDP_DEBUG, fmt, ap);
}

void probe_quiet(bool be_verbose)
{
	verbose = be_verbose;
	libbpf_set_print(libbpf_line);
	libxdp_set_print(libxdp_line);
}

const char *probe_kernel_said(void)
{
	static char said[sizeof(kernel_said)];

	memcpy(said, kernel_said, sizeof(said));
	kernel_said[0] = '\0';
	return said;
}

// r1 = ctx; call bpf_xdp_get_buff_len; r0 = XDP_PASS; exit: it needs all that the programs of Weir
// need.
static int load_probe(void)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_xdp_get_buff_len},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_XDP_HAS_FRAGS);

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "weir_probe", "GPL", insns, ARRAY_SIZE(insns),
			     &opts);
}

// Others were never tried: a machine may reorder writes too, lack a JIT compiler, or have the other
// byte order.
int probe_machine(struct err *err)
{
	static const char *const known[] = {"x86_64", "aarch64"};
	struct utsname uts;

	uname(&uts);
	for (size_t n = 0; n < ARRAY_SIZE(known) && sizeof(void *) == 8; n++)
		if (!strcmp(uts.machine, known[n]))
			return 0;
	return err_stated(err, ENOTSUP,
			  "this machine (%s) is not supported: Weir runs on x86-64 (x86_64) and "
			  "arm64 (aarch64), with programs of 64 bits",
			  uts.machine);
}

int probe_kernel(struct err *err)
{
	CLEANUP_FD int fd = -1;
	struct utsname uts;
	int code = probe_machine(err);

	if (code)
		return code;
	if ((fd = load_probe()) >= 0)
		return 0;
	uname(&uts);
	if (fd == -ENOSYS)
		return err_stated(err, ENOSYS, "this kernel (%s) has no BPF", uts.release);
	if (fd == -EPERM) {
		err_stated(err, EPERM, "no privilege to load BPF programs");
		err_hint(err, "the kernel is locked down, or a seccomp filter denies it");
		confined_explain(err, CONFINED_LOAD);
		return -EPERM;
	}
	if (fd == -EINVAL)
		return err_stated(err, EINVAL,
				  "this kernel (%s) is too old for Weir: XDP with "
				  "multi-buffer packets needs Linux 5.18 or later",
				  uts.release);
	return err_system(err, -fd, "cannot load a BPF program");
}

bool probe_jit(void)
{
	CLEANUP_FD int fd = load_probe();
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) && info.jited_prog_len;
}
