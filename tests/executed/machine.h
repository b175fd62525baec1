// SPDX-License-Identifier: GPL-2.0-only
// The state of an emulated run: registers, stack, frame, and copies of maps, as memory of this
// process.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/executed/kernel.h"

#define CALLS_MAX   8 // nested, as in the kernel
#define STACK_BYTES 512
#define FRAME_ROOM  256 // in front of a frame, as in BPF_PROG_TEST_RUN
#define FRAME_MOST  2048
#define MAPS_MAX    64
#define CODES_MAX   8
#define HELPERS_MAX 16
#define LINES_MAX   256
#define LINE_BYTES  64
#define LARGE_BYTES 1048576 // a map that the second cache of a processor does not hold

// struct xdp_buff, as far as translated programs read it; `rxq` leads to the device.
struct buff {
	uint64_t data, data_end, data_meta, data_hard_start, rxq, txq;
	uint32_t frame_bytes, flags;
};

// A call that returns here.
struct caller {
	size_t at;
	uint64_t saved[5]; // R6 to R10
};

// Executed calls of one function.
struct helper {
	const char *name;
	size_t calls;
};

struct machine {
	uint64_t r[11];
	const struct code *code;
	size_t at; // next instruction
	uint64_t executed;
	struct caller links[CALLS_MAX];
	size_t n_links;
	uint64_t jiffies; // what the kernel's clock shows
	struct helper helpers[HELPERS_MAX];
	size_t n_helpers;
	struct buff buff;
	uint64_t rxq[8];      // its first word is the device
	uint32_t device[512]; // each word is the ifindex, wherever the kernel has it
	uint64_t cpu;         // its number
	uint8_t stack[CALLS_MAX * STACK_BYTES];
	uint8_t frame[FRAME_MOST];
	struct copied_map maps[MAPS_MAX];
	size_t n_maps;
	struct code codes[CODES_MAX];
	size_t n_codes;
	// cache lines of maps that the run has touched; further ones are not counted
	const uint8_t *lines[LINES_MAX];
	size_t n_lines, n_large; // all; only of large maps
	char why[160];           // the emulation failed; empty: it did not
};

// Memory. A failure sets `why`; the value read is then 0.
uint64_t machine_load(struct machine *m, uint64_t address, size_t bytes);
void machine_store(struct machine *m, uint64_t address, size_t bytes, uint64_t value);
// `bytes` of memory, or NULL with `why` set.
uint8_t *machine_memory(struct machine *m, uint64_t address, size_t bytes);
bool machine_is_memory(const struct machine *m, uint64_t address);

__attribute__((format(printf, 2, 3))) void machine_fail(struct machine *m, const char *fmt, ...);

// The address of a map and of an element of a hash. Both are not memory: programs only add the
// offset of the values, which differs from kernel to kernel, so that any number added gives the
// values.
uint64_t machine_map(uint32_t id);
bool machine_is_handle(uint64_t address);
uint64_t machine_values(struct machine *m, uint64_t handle);
// The copy of a map, made when it is first used; NULL with `why` set if it is not the address of a
// map.
struct copied_map *machine_copy(struct machine *m, uint64_t handle);
uint64_t machine_element(const uint8_t *value);

// Calls a function of the kernel. R0 has the result.
void machine_call(struct machine *m, int32_t function);
// Continues at the first instruction of the program. 0 or -errno.
int machine_enter(struct machine *m, int program);
void machine_count(struct machine *m, const char *helper);
