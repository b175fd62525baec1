// SPDX-License-Identifier: GPL-2.0-only
// The load of the programs of a policy, and why the kernel refuses one.
#pragma once

#include <stdbool.h>

#include "ctl/base/err.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/markers.h"

struct bpf_program *program_of(const struct policy_bpf *skel, enum generation_program program);

// Loads an object of markers_open(), as markers_load(). The last words of the verifier become the
// hint of err.
int program_load(struct policy_bpf *skel, const struct markers *markers, bool *ret_short,
		 struct err *err);

// Why the kernel refuses the short program, as a message contains it: "E2BIG (BPF program is too
// large)"; "": it does not.
typedef char program_refused[320];
void program_refusal(const struct err *refusal, program_refused ret);
