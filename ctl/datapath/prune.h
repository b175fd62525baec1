// SPDX-License-Identifier: GPL-2.0-only
// Removes the instructions that nothing leads to: the verifier refuses a program that has some.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <linux/bpf.h>

// Records of lines or functions, which begin with the index of an instruction, ascending.
struct prune_records {
	void *at;
	size_t n, bytes; // bytes: of a record
};

// The instructions of a program with all functions that it calls. Lines and functions follow those
// that remain. Jumps to a jump lead to its end. Returns how many instructions remain.
size_t prune(struct bpf_insn *insns, size_t n, struct prune_records *lines,
	     struct prune_records *functions);
