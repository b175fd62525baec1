// SPDX-License-Identifier: GPL-2.0-only
// The instructions of BPF (Documentation/bpf/standardization/instruction-set.rst), and the kernel's
// own additions.
#include "tests/executed/emulate.h"

#include <endian.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"

#define EXECUTED_MAX 1000000 // more: it does not end
// in a move: the address on this CPU (include/linux/filter.h, BPF_ADDR_PERCPU)
#define PER_CPU    (-1)
#define TAIL_CALL  12 // BPF_FUNC_tail_call, for any tail call
#define ATOMIC_OPS (BPF_ADD | BPF_OR | BPF_AND | BPF_XOR)

static int64_t sign(uint64_t n, unsigned bits)
{
	return (int64_t)(n << (64 - bits)) >> (64 - bits);
}

static uint64_t cut(uint64_t n, unsigned bits)
{
	return bits < 64 ? n & ((1ull << bits) - 1) : n;
}

static size_t size_of(uint8_t opcode)
{
	static const size_t bytes[] = {4, 2, 1, 8};

	return bytes[BPF_SIZE(opcode) >> 3];
}

static uint64_t operand(const struct machine *m, const struct bpf_insn *i)
{
	return BPF_SRC(i->code) == BPF_X ? m->r[i->src_reg] : (uint64_t)(int64_t)i->imm;
}

// ---- arithmetic ---------------------------------------------------------------------------------

static uint64_t calculate(struct machine *m, uint8_t op, uint64_t a, uint64_t b, unsigned bits)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_MOD:
		return b ? a % b : a;
	case BPF_OR:
		return a | b;
	case BPF_AND:
		return a & b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return a << (b & (bits - 1));
	case BPF_RSH:
		return a >> (b & (bits - 1));
	case BPF_ARSH:
		return (uint64_t)(sign(a, bits) >> (b & (bits - 1)));
	case BPF_NEG:
		return -a;
	default:
		machine_fail(m, "unknown operation 0x%x", op);
		return 0;
	}
}

// Reversed, or only cut: from the order of the frame or to it, on a little-endian host.
static uint64_t swap(const struct bpf_insn *i, uint64_t n)
{
	bool reverse = BPF_CLASS(i->code) == BPF_ALU64 || BPF_SRC(i->code) == BPF_TO_BE;

	n = cut(n, (unsigned)i->imm);
	return reverse ? htobe64(n) >> (64 - i->imm) : n;
}

// The address of a variable of each CPU that is not in a map: of the CPU's number.
static uint64_t on_this_cpu(const struct machine *m, uint64_t address)
{
	return machine_is_memory(m, address) ? address : (uint64_t)(uintptr_t)&m->cpu;
}

static uint64_t moved(struct machine *m, const struct bpf_insn *i, unsigned bits)
{
	uint64_t b = cut(operand(m, i), bits);

	if (i->off == 8 || i->off == 16 || i->off == 32)
		return (uint64_t)sign(b, (unsigned)i->off);
	if (i->off == PER_CPU)
		return on_this_cpu(m, b);
	if (i->off)
		machine_fail(m, "unknown move %d", i->off);
	return b;
}

static void arithmetic(struct machine *m, const struct bpf_insn *i)
{
	unsigned bits = BPF_CLASS(i->code) == BPF_ALU64 ? 64 : 32;
	uint64_t a = m->r[i->dst_reg], *ret = &m->r[i->dst_reg];
	uint8_t op = BPF_OP(i->code);

	if (op == BPF_END)
		*ret = swap(i, a);
	else if (op == BPF_MOV)
		*ret = cut(moved(m, i, bits), bits);
	else if (op == BPF_ADD && BPF_SRC(i->code) == BPF_K && machine_is_handle(a))
		*ret = machine_values(m, a);
	else if (i->off)
		machine_fail(m, "unknown variant %d of operation 0x%x", i->off, op);
	else
		*ret = cut(calculate(m, op, cut(a, bits), cut(operand(m, i), bits), bits), bits);
}

// ---- memory -------------------------------------------------------------------------------------

static void load(struct machine *m, const struct bpf_insn *i)
{
	size_t bytes = size_of(i->code);
	uint64_t n = machine_load(m, m->r[i->src_reg] + (uint64_t)(int64_t)i->off, bytes);

	if (BPF_MODE(i->code) != BPF_MEM)
		machine_fail(m, "unknown load 0x%x", i->code);
	m->r[i->dst_reg] = n;
}

static void atomic(struct machine *m, const struct bpf_insn *i)
{
	size_t bytes = size_of(i->code);
	unsigned bits = (unsigned)bytes * 8;
	uint64_t address = m->r[i->dst_reg] + (uint64_t)(int64_t)i->off;
	uint64_t old = machine_load(m, address, bytes), operand = cut(m->r[i->src_reg], bits);

	if (i->imm == BPF_CMPXCHG) {
		if (old == cut(m->r[0], bits))
			machine_store(m, address, bytes, operand);
		m->r[0] = old;
		return;
	}
	if (i->imm == BPF_XCHG)
		machine_store(m, address, bytes, operand);
	else if (!(i->imm & ~(ATOMIC_OPS | BPF_FETCH)))
		machine_store(m, address, bytes,
			      calculate(m, (uint8_t)(i->imm & ATOMIC_OPS), old, operand, bits));
	else
		machine_fail(m, "unknown atomic operation 0x%x", (unsigned)i->imm);
	if (i->imm & BPF_FETCH)
		m->r[i->src_reg] = old;
}

static void store(struct machine *m, const struct bpf_insn *i)
{
	uint64_t value =
		BPF_CLASS(i->code) == BPF_STX ? m->r[i->src_reg] : (uint64_t)(int64_t)i->imm;

	if (BPF_MODE(i->code) == BPF_ATOMIC)
		atomic(m, i);
	else if (BPF_MODE(i->code) == BPF_MEM)
		machine_store(m, m->r[i->dst_reg] + (uint64_t)(int64_t)i->off, size_of(i->code),
			      value);
	else
		machine_fail(m, "unknown store 0x%x", i->code);
}

// A constant of 64 bits in two instructions: a number, the address of a map, or one in its only
// value.
static void constant(struct machine *m, const struct bpf_insn *i)
{
	uint64_t high = (uint64_t)(uint32_t)i[1].imm;

	m->at++;
	switch (i->src_reg) {
	case 0:
		m->r[i->dst_reg] = high << 32 | (uint32_t)i->imm;
		return;
	case BPF_PSEUDO_MAP_FD:
		m->r[i->dst_reg] = machine_map((uint32_t)i->imm);
		return;
	case BPF_PSEUDO_MAP_VALUE:
		m->r[i->dst_reg] = machine_values(m, machine_map((uint32_t)i->imm)) + high;
		return;
	default:
		machine_fail(m, "unknown constant of kind %d", i->src_reg);
	}
}

// ---- jumps --------------------------------------------------------------------------------------

static bool holds(struct machine *m, uint8_t op, uint64_t a, uint64_t b, unsigned bits)
{
	int64_t x = sign(a, bits), y = sign(b, bits);

	switch (op) {
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JSET:
		return a & b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JLT:
		return a < b;
	case BPF_JLE:
		return a <= b;
	case BPF_JSGT:
		return x > y;
	case BPF_JSGE:
		return x >= y;
	case BPF_JSLT:
		return x < y;
	case BPF_JSLE:
		return x <= y;
	default:
		machine_fail(m, "unknown jump 0x%x", op);
		return false;
	}
}

// A function of the program itself: R6 to R9 are kept, and the stack is its own.
static void enter_function(struct machine *m, const struct bpf_insn *i)
{
	struct caller *link;

	if (m->n_links == CALLS_MAX - 1) {
		machine_fail(m, "more than %d nested calls", CALLS_MAX);
		return;
	}
	link = &m->links[m->n_links++];
	link->at = m->at;
	memcpy(link->saved, &m->r[6], sizeof(link->saved));
	m->r[10] -= STACK_BYTES;
	m->at += (size_t)(int64_t)i->off;
}

static void leave_function(struct machine *m)
{
	const struct caller *link = &m->links[--m->n_links];

	m->at = link->at;
	memcpy(&m->r[6], link->saved, sizeof(link->saved));
}

// Without a program at this index, the next instruction follows.
static void tail_call(struct machine *m)
{
	const struct copied_map *t = machine_copy(m, m->r[2]);
	CLEANUP_FD int program = t ? copy_program(t, (uint32_t)m->r[3]) : -1;

	machine_count(m, "tail_call");
	if (program >= 0 && machine_enter(m, program))
		machine_fail(m, "cannot read the program of a tail call");
}

static void jump(struct machine *m, const struct bpf_insn *i)
{
	unsigned bits = BPF_CLASS(i->code) == BPF_JMP ? 64 : 32;
	uint8_t op = BPF_OP(i->code);

	if (op == BPF_CALL && i->src_reg == BPF_PSEUDO_CALL)
		enter_function(m, i);
	else if (op == BPF_CALL && i->imm == TAIL_CALL)
		tail_call(m);
	else if (op == BPF_CALL)
		machine_call(m, i->imm);
	else if (op == BPF_EXIT)
		leave_function(m);
	else if (op == BPF_JA)
		m->at += (size_t)(bits == 64 ? (int64_t)i->off : (int64_t)i->imm);
	else if (holds(m, op, cut(m->r[i->dst_reg], bits), cut(operand(m, i), bits), bits))
		m->at += (size_t)(int64_t)i->off;
}

// ---- a run --------------------------------------------------------------------------------------

static void step(struct machine *m, const struct bpf_insn *i)
{
	m->at++;
	m->executed++;
	switch (BPF_CLASS(i->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		arithmetic(m, i);
		return;
	case BPF_LDX:
		load(m, i);
		return;
	case BPF_ST:
	case BPF_STX:
		store(m, i);
		return;
	case BPF_LD:
		constant(m, i);
		return;
	default:
		jump(m, i);
	}
}

static bool ends(const struct machine *m, const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_EXIT) && !m->n_links;
}

static void run(struct machine *m)
{
	while (!m->why[0]) {
		if (m->at >= m->code->n || m->executed >= EXECUTED_MAX) {
			machine_fail(m, "the program does not end");
			return;
		}
		if (ends(m, &m->code->insns[m->at])) {
			m->executed++;
			return;
		}
		step(m, &m->code->insns[m->at]);
	}
}

static void place_frame(struct machine *m, const uint8_t *frame, size_t bytes)
{
	uint64_t first = (uint64_t)(uintptr_t)m->frame, data = first + FRAME_ROOM;

	memset(m->frame, 0, sizeof(m->frame));
	memcpy(m->frame + FRAME_ROOM, frame, bytes);
	m->buff = (struct buff){
		.data = data,
		.data_end = data + bytes,
		.data_meta = data,
		.data_hard_start = first,
		.rxq = (uint64_t)(uintptr_t)m->rxq,
		.frame_bytes = FRAME_MOST,
	};
}

const char *emulate(struct machine *m, int program, const uint8_t *frame, size_t bytes,
		    struct emulation *ret)
{
	int code;

	m->executed = m->n_helpers = m->n_lines = m->n_large = 0;
	memset(m->helpers, 0, sizeof(m->helpers));
	m->why[0] = '\0';
	place_frame(m, frame, bytes);
	if ((code = machine_enter(m, program)))
		machine_fail(m, "cannot read the program: %s", strerror(-code));
	else
		run(m);
	if (m->why[0])
		return m->why;
	*ret = (struct emulation){
		.executed = m->executed,
		.verdict = (uint32_t)m->r[0],
		.frame = (const uint8_t *)m->frame + (m->buff.data - (uint64_t)(uintptr_t)m->frame),
		.bytes = m->buff.data_end - m->buff.data,
		.helpers = m->helpers,
		.n_helpers = m->n_helpers,
		.lines = m->n_lines,
		.large = m->n_large,
	};
	return NULL;
}

struct machine *emulate_new(uint64_t jiffies, uint32_t ifindex)
{
	struct machine *m = mem_new(struct machine);

	m->jiffies = jiffies;
	m->rxq[0] = (uint64_t)(uintptr_t)m->device;
	for (size_t i = 0; i < ARRAY_SIZE(m->device); i++)
		m->device[i] = ifindex;
	return m;
}

void emulate_free(struct machine *m)
{
	for (size_t i = 0; i < m->n_maps; i++)
		copy_free(&m->maps[i]);
	for (size_t i = 0; i < m->n_codes; i++)
		code_free(&m->codes[i]);
	free(m);
}
