// SPDX-License-Identifier: GPL-2.0-only
// Programs and maps of the kernel, copied: what the emulator runs, and what it reads and writes in
// place of the maps themselves.
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A program as the kernel runs it: with inlined look-ups and addresses, before the JIT.
struct code {
	uint32_t id;
	struct bpf_insn *insns;
	size_t n;
};

// An element of a hash map that was looked up or written.
struct element {
	uint8_t *key, *value;
};

// A map. Arrays are copied whole, elements of other maps when they are first used.
struct copied_map {
	uint32_t id, type, key_bytes, value_bytes, entries;
	int fd;
	size_t stride;     // from one element of an array to the next
	uint8_t *values;   // values of an array; per CPU: the values of CPU 0
	uint64_t *per_cpu; // addresses of the elements of an array per CPU; NULL: another type
	struct element *elements;
	size_t n_elements;
};

// Each returns 0 or -errno.
int code_read(int program, struct code *ret);
int copy_read(uint32_t id, struct copied_map *ret);
// The bytes of a key of a hash or trie; NULL: no such key.
uint8_t *copy_find(struct copied_map *t, const void *key);
// Adds or replaces an element of a hash.
void copy_put(struct copied_map *t, const void *key, const void *value);
// The map in an element of an array of maps; its id, 0: none. `values` is for the caller to fill.
uint32_t copy_inner(const struct copied_map *t, uint32_t index);
// The program in an element of a program array; its descriptor, or -errno.
int copy_program(const struct copied_map *t, uint32_t index);
void code_free(struct code *c);
void copy_free(struct copied_map *t);

// The kernel function that a call instruction of a program calls, from /proc/kallsyms; NULL:
// unknown.
const char *kernel_function(int32_t call);
