// SPDX-License-Identifier: GPL-2.0-only
// Calls of kernel functions that are no helpers ("kfuncs"), for connection tracking.
//
// libbpf would resolve them too, but for each object that has such a call, whether or not a rule
// needs it: it reads all types of the kernel, which takes longer than the rest of a load.
#pragma once

#include <stddef.h>

struct bpf_insn;

// Puts the functions in place of their numbers (common/markers.h). A function that the kernel does
// not have stays a number, which the verifier refuses. Returns the descriptors that the calls need,
// for bpf_prog_load_opts.fd_array, valid until this process ends; NULL: there is no call.
const int *kernel_calls_put(struct bpf_insn *insns, size_t n);
