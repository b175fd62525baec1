// SPDX-License-Identifier: GPL-2.0-only
// Marks reachable instructions, then moves them to the front.
#include "ctl/datapath/prune.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

struct pruned {
	struct bpf_insn *insns;
	size_t n;
	bool *kept;
	size_t *place;   // new index of each instruction
	size_t *waiting; // reached, not yet followed
	size_t n_waiting;
};

static bool is_wide(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

static bool is_jump(const struct bpf_insn *insn)
{
	uint8_t op = BPF_OP(insn->code);

	return (BPF_CLASS(insn->code) == BPF_JMP || BPF_CLASS(insn->code) == BPF_JMP32) &&
	       op != BPF_CALL && op != BPF_EXIT;
}

static bool is_always(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_JA);
}

// PRUNE_NOTHING continues with the next instruction, which may be a jump.
static bool is_nothing(const struct bpf_insn *insn)
{
	return is_always(insn) && insn->imm;
}

// A call of a function of the program itself.
static bool is_call(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL;
}

static bool has_next(const struct bpf_insn *insn)
{
	return !is_always(insn) && insn->code != (BPF_JMP | BPF_EXIT);
}

static size_t target(const struct pruned *p, size_t i)
{
	const struct bpf_insn *insn = &p->insns[i];

	return i + 1 + (size_t)(int64_t)(is_call(insn) ? insn->imm : insn->off);
}

// ---- marks --------------------------------------------------------------------------------------

// A jump to a jump leads to its end. Not further than all instructions: a loop may have no end.
static void shorten(struct pruned *p, size_t i)
{
	size_t to = target(p, i);

	for (size_t n = 0; n < p->n && to < p->n && is_always(&p->insns[to]); n++)
		to = target(p, to);
	if (to - i - 1 == (size_t)(int16_t)(to - i - 1))
		p->insns[i].off = (int16_t)(to - i - 1);
}

static void reach(struct pruned *p, size_t i)
{
	if (i >= p->n || p->kept[i])
		return;
	p->kept[i] = true;
	p->waiting[p->n_waiting++] = i;
}

static void follow(struct pruned *p, size_t i)
{
	const struct bpf_insn *insn = &p->insns[i];
	bool wide = is_wide(insn) && i + 1 < p->n;

	if (is_jump(insn) && !is_nothing(insn))
		shorten(p, i);
	if (is_jump(insn) || is_call(insn))
		reach(p, target(p, i));
	p->kept[i + wide] = true;
	if (has_next(insn))
		reach(p, i + 1 + wide);
}

static void mark(struct pruned *p)
{
	reach(p, 0);
	while (p->n_waiting)
		follow(p, p->waiting[--p->n_waiting]);
}

static void drop_nothings(struct pruned *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (is_nothing(&p->insns[i]))
			p->kept[i] = false;
		i += is_wide(&p->insns[i]);
	}
}

// ---- moves --------------------------------------------------------------------------------------

static size_t number(struct pruned *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		p->place[i] = n;
		n += p->kept[i];
	}
	p->place[p->n] = n;
	return n;
}

// Offset of a jump or a call.
static void redirect(struct pruned *p, size_t i)
{
	struct bpf_insn *insn = &p->insns[i];
	size_t distance = p->place[target(p, i)] - p->place[i] - 1;

	if (is_call(insn))
		insn->imm = (int32_t)distance;
	else
		insn->off = (int16_t)distance;
}

static void move_instructions(struct pruned *p)
{
	for (size_t i = 0; i < p->n; i++) {
		bool wide = is_wide(&p->insns[i]);

		if (p->kept[i] && (is_jump(&p->insns[i]) || is_call(&p->insns[i])) &&
		    target(p, i) < p->n)
			redirect(p, i);
		i += wide;
	}
	for (size_t i = 0; i < p->n; i++)
		if (p->kept[i])
			p->insns[p->place[i]] = p->insns[i];
}

// The first kept instruction of a record, else n.
static size_t first_kept(const struct pruned *p, size_t from, size_t to)
{
	while (from < to && !p->kept[from])
		from++;
	return from < to ? from : p->n;
}

static uint32_t record_index(const struct prune_records *r, size_t i)
{
	uint32_t index;

	memcpy(&index, (uint8_t *)r->at + i * r->bytes, sizeof(index));
	return index;
}

static void move_records(const struct pruned *p, struct prune_records *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n; i++) {
		size_t end = i + 1 < r->n ? record_index(r, i + 1) : p->n;
		size_t first = first_kept(p, record_index(r, i), end);
		uint8_t *to = (uint8_t *)r->at + kept * r->bytes;
		uint32_t index;

		if (first == p->n)
			continue;
		index = (uint32_t)p->place[first];
		memmove(to, (uint8_t *)r->at + i * r->bytes, r->bytes);
		memcpy(to, &index, sizeof(index));
		kept++;
	}
	r->n = kept;
}

size_t prune(struct bpf_insn *insns, size_t n, struct prune_records *lines,
	     struct prune_records *functions)
{
	CLEANUP_FREE bool *kept = mem_zalloc(n + 1, sizeof(*kept));
	CLEANUP_FREE size_t *place = mem_zalloc(n + 1, sizeof(*place));
	CLEANUP_FREE size_t *waiting = mem_zalloc(n + 1, sizeof(*waiting));
	struct pruned p = {
		.insns = insns, .n = n, .kept = kept, .place = place, .waiting = waiting};
	size_t left;

	mark(&p);
	drop_nothings(&p);
	left = number(&p);
	move_instructions(&p);
	move_records(&p, lines);
	move_records(&p, functions);
	return left;
}
