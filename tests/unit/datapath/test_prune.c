// SPDX-License-Identifier: GPL-2.0-only
// Programs without what nothing leads to.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/prune.h"

#define EXIT                               \
	{                                  \
		.code = BPF_JMP | BPF_EXIT \
	}
#define ALWAYS(distance)                                    \
	{                                                   \
		.code = BPF_JMP | BPF_JA, .off = (distance) \
	}
#define IF_ZERO(distance)                                            \
	{                                                            \
		.code = BPF_JMP | BPF_JEQ | BPF_K, .off = (distance) \
	}
#define CALL(distance)                                                                    \
	{                                                                                 \
		.code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = (distance) \
	}
#define WIDE(n)                                          \
	{.code = BPF_LD | BPF_IMM | BPF_DW, .imm = (n)}, \
	{                                                \
		.imm = 0                                 \
	}
#define SET(n)                                                  \
	{                                                       \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = (n) \
	}

struct record {
	uint32_t index, name;
};

static void check_programs(const struct bpf_insn *found, size_t n, const struct bpf_insn *expected,
			   size_t expected_n)
{
	assert_int_equal(n, expected_n);
	assert_memory_equal(found, expected, n * sizeof(*found));
}

static void test_nothing_unreachable(void **state)
{
	struct bpf_insn program[] = {SET(1), IF_ZERO(1), SET(2), EXIT}, before[4];
	struct record lines[] = {{0, 1}, {2, 2}};
	struct prune_records l = {lines, 2, sizeof(*lines)}, none = {0};

	memcpy(before, program, sizeof(before));
	check_programs(program, prune(program, 4, &l, &none), before, 4);
	assert_int_equal(l.n, 2);
	assert_int_equal(lines[1].index, 2);
}

// The jump over it, a jump back, and a call across it.
static void test_gap(void **state)
{
	struct bpf_insn program[] = {
		CALL(7), ALWAYS(3), WIDE(5), SET(6), SET(7), IF_ZERO(-2), EXIT, SET(8), EXIT,
	};
	static const struct bpf_insn expected[] = {
		CALL(4), ALWAYS(0), SET(7), IF_ZERO(-2), EXIT, SET(8), EXIT,
	};

	check_programs(program,
		       prune(program, ARRAY_SIZE(program), &(struct prune_records){0},
			     &(struct prune_records){0}),
		       expected, ARRAY_SIZE(expected));
}

static void test_jump_to_jump(void **state)
{
	struct bpf_insn program[] = {IF_ZERO(1), ALWAYS(2), ALWAYS(0), ALWAYS(0), SET(1), EXIT};
	static const struct bpf_insn expected[] = {IF_ZERO(1), ALWAYS(0), SET(1), EXIT};

	check_programs(program,
		       prune(program, ARRAY_SIZE(program), &(struct prune_records){0},
			     &(struct prune_records){0}),
		       expected, ARRAY_SIZE(expected));
}

// A jump leads past it, and the record of a function that begins with it to the next instruction.
static void test_nothing(void **state)
{
	struct bpf_insn program[] = {IF_ZERO(2), CALL(3),       PRUNE_NOTHING, PRUNE_NOTHING,
				     EXIT,       PRUNE_NOTHING, SET(1),        EXIT};
	static const struct bpf_insn expected[] = {IF_ZERO(1), CALL(1), EXIT, SET(1), EXIT};
	struct record functions[] = {{0, 1}, {5, 2}};
	struct prune_records f = {functions, ARRAY_SIZE(functions), sizeof(*functions)};

	check_programs(program, prune(program, ARRAY_SIZE(program), &(struct prune_records){0}, &f),
		       expected, ARRAY_SIZE(expected));
	assert_int_equal(f.n, 2);
	assert_int_equal(functions[1].index, 3);
}

// It is no jump to the end of the jump after it.
static void test_nothing_before_a_jump(void **state)
{
	struct bpf_insn program[] = {IF_ZERO(2), PRUNE_NOTHING, ALWAYS(2), SET(1),
				     EXIT,       SET(2),        EXIT};
	static const struct bpf_insn expected[] = {IF_ZERO(1), ALWAYS(2), SET(1),
						   EXIT,       SET(2),    EXIT};

	check_programs(program,
		       prune(program, ARRAY_SIZE(program), &(struct prune_records){0},
			     &(struct prune_records){0}),
		       expected, ARRAY_SIZE(expected));
}

static void test_endless(void **state)
{
	struct bpf_insn program[] = {IF_ZERO(1), EXIT, ALWAYS(-1)};

	assert_int_equal(prune(program, ARRAY_SIZE(program), &(struct prune_records){0},
			       &(struct prune_records){0}),
			 3);
}

// Lines begin at their first instruction that is left; functions that are not called have no
// record.
static void test_records(void **state)
{
	struct bpf_insn program[] = {ALWAYS(2), SET(1), SET(2), SET(3), CALL(3),
				     EXIT,      SET(4), EXIT,   SET(5), EXIT};
	struct record lines[] = {{0, 1}, {1, 2}, {2, 3}, {4, 4}, {6, 5}, {8, 6}, {9, 7}};
	struct record functions[] = {{0, 1}, {6, 2}, {8, 3}};
	struct prune_records l = {lines, ARRAY_SIZE(lines), sizeof(*lines)};
	struct prune_records f = {functions, ARRAY_SIZE(functions), sizeof(*functions)};
	static const struct record lines_left[] = {{0, 1}, {1, 3}, {2, 4}, {4, 6}, {5, 7}};
	static const struct record functions_left[] = {{0, 1}, {4, 3}};

	assert_int_equal(prune(program, ARRAY_SIZE(program), &l, &f), 6);
	assert_int_equal(l.n, ARRAY_SIZE(lines_left));
	assert_memory_equal(lines, lines_left, sizeof(lines_left));
	assert_int_equal(f.n, ARRAY_SIZE(functions_left));
	assert_memory_equal(functions, functions_left, sizeof(functions_left));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_unreachable),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_jump_to_jump),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_nothing_before_a_jump),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
