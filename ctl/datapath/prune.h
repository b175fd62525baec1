// SPDX-License-Identifier: GPL-2.0-only
// Removes the instructions of a program that nothing leads to, or that do nothing.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <linux/bpf.h>

// An instruction that does nothing and does not remain.
#define PRUNE_NOTHING ((struct bpf_insn){.code = BPF_JMP | BPF_JA, .imm = 1})

// Records of lines or functions, which begin with the index of an instruction, ascending.
struct prune_records {
	void *at;
	size_t n, bytes; // bytes: of a record
};

// Removes the instructions that nothing leads to, because the verifier refuses a program that has
// some, and PRUNE_NOTHING. insns: the instructions of a program with all functions that it calls.
// Lines and functions follow those that remain. Jumps to a jump lead to its end. Returns how many
// instructions remain.
size_t prune(struct bpf_insn *insns, size_t n, struct prune_records *lines,
	     struct prune_records *functions);
