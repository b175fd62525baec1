/* SPDX-License-Identifier: GPL-2.0-only */
/* Matching the rules in the short way: the rows of a common packet in the bit matrix, the first
 * match in their AND, and its action. */
#pragma once

#include "xdp/classify.bpf.h"
#include "xdp/short-read.bpf.h"

/* ---- the cells of a common packet ------------------------------------------------------------ */

static __always_inline __u64 sport_cell(const struct view v, const int family,
					const struct arrival p)
{
	return port_of(v, family, 0);
}

static __always_inline __u64 dport_cell(const struct view v, const int family,
					const struct arrival p)
{
	return port_of(v, family, 2);
}

/* Type and code of ICMP are not in the base. */
static __always_inline __u64 icmp_cell(const struct view v, const int family,
				       const struct arrival p)
{
	return (family == 4 ? POLICY_L4_ICMP : POLICY_L4_ICMP6) + BOUND(icmp_of(v, family), 0xffff);
}

static __always_inline __u64 vlan_cell(const struct view v, const int family,
				       const struct arrival p)
{
	return BOUND(p.vlan, ROOM_VLAN - 1);
}

static __always_inline __u64 iface_cell(const struct view v, const int family,
					const struct arrival p)
{
	return BOUND(p.class, ROOM_IFACE - 1);
}

/* For a field with APART_NONE: no such cell is looked up. */
static __always_inline __u64 in_base(const struct view v, const int family, const struct arrival p)
{
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static __always_inline bool uses(const int field)
{
	return matrix_uses(NULL, MATRIX_RULES, field);
}

/* Adds the row that a cell of a small field has. */
static __always_inline bool add_cell(struct matrix *m, const int field, const int name, __u64 index)
{
	return matrix_add(m, MATRIX_RULES, field, matrix_cell(NULL, MATRIX_RULES, name, index));
}

/* All fields in the order of their look-ups: addresses, which need most registers, are the last. */
#define COMMON_FIELDS(CELL, SIDE) MATRIX_OTHERS(CELL) MATRIX_PORTS(CELL) MATRIX_SIDES(SIDE)

/* Do rules test a field that the base does not have for all packets? A marker that is tested
 * costs an instruction even if nothing follows. */
static __always_inline bool uses_cells(const int field, const enum matrix_apart apart)
{
	return apart != APART_NONE && uses(field);
}

/* Does the packet have a cell in the table of a field? Otherwise the base has the field. */
static __always_inline bool is_apart(const enum matrix_apart apart, const struct view v)
{
	return apart == APART_ALL || (apart == APART_ICMP && is_icmp_view(v));
}

/* Protocol, flags and ethertype at once: the fields in the base have no separate rows. */
static __always_inline bool add_base(struct matrix *m, const struct view v, const int family)
{
#define ADD_BASE(field, room, row_of, cell, apart) \
	if (apart != APART_ALL)                    \
		m->row[FIELD_##field] = row;
	const __u8 *at = TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_BASE));
	__u64 index = BOUND(v.base, MATRIX_BASES - 1) + (family == 6 ? MATRIX_BASES : 0);
	const __u64 *row;

	if (RULES_ARE(M_WORDS, 1)) {
		m->word = ((const __u64 *)at)[index];
		return true;
	}
	row = matrix_row(NULL, MATRIX_RULES, ((const __u32 *)at)[index]);
	MATRIX_CELLS(ADD_BASE)
	return row != NULL;
#undef ADD_BASE
}

/* A constant row and a variable one would be two states at the words. */
static __always_inline bool add_address(struct matrix *m, const struct view v, const int family,
					const int side)
{
	__u64 row = address_row_of(v, family, side, false);

	return matrix_add(m, MATRIX_RULES, side == SIDE_SOURCE ? FIELD_SOURCE : FIELD_DESTINATION,
			  BOUND_FORGET(row, read32(v.ip + 12)));
}

/* false: a look-up has failed, which is impossible. */
static __always_inline bool add_all(struct matrix *m, const struct view v, const int family,
				    const struct arrival p)
{
#define ADD_CELL(field, room, row, cell, apart)                        \
	&&(!uses_cells(FIELD_##field, apart) || !is_apart(apart, v) || \
	   add_cell(m, FIELD_##field, M_##field, cell(v, family, p)))
#define ADD_SIDE(field) &&(!uses(FIELD_##field) || add_address(m, v, family, SIDE_##field))
	return add_base(m, v, family) COMMON_FIELDS(ADD_CELL, ADD_SIDE);
#undef ADD_CELL
#undef ADD_SIDE
}

/* The AND in word `place`. The fields of the base have its row, except type and code of ICMP. */
static __always_inline __u64 word_at(const struct matrix *m, __u32 place)
{
#define AND_CELL(field, room, row, cell, apart) \
	if (apart != APART_NONE)                \
		word = matrix_and(m, FIELD_##field, place, word);
#define AND_SIDE(field) word = matrix_and(m, FIELD_##field, place, word);
	__u64 word = m->row[FIELD_PROTO][place];

	COMMON_FIELDS(AND_CELL, AND_SIDE)
	return word;
#undef AND_CELL
#undef AND_SIDE
}

/* word & bits, in the register of `word`. */
static __always_inline __u64 and_bits(__u64 word, __u64 bits)
{
	asm("%0 &= %1" : "+r"(word) : "r"(bits));
	return word;
}

#define SHORT_BLOCK 4

/* Four words of the AND. */
struct and_block {
	__u64 word[SHORT_BLOCK];
};

static __always_inline void and_row(const struct matrix *m, const int field, __u32 place,
				    struct and_block *b)
{
	const __u64 *row = m->row[field] + place;

	b->word[0] = and_bits(b->word[0], row[0]);
	b->word[1] = and_bits(b->word[1], row[1]);
	b->word[2] = and_bits(b->word[2], row[2]);
	b->word[3] = and_bits(b->word[3], row[3]);
}

/* The words from `place` on. A field at a time, so that they stay in registers. */
static __always_inline struct and_block block_at(const struct matrix *m, __u32 place)
{
#define AND_CELL(field, room, row, cell, apart) \
	if (uses_cells(FIELD_##field, apart))   \
		and_row(m, FIELD_##field, place, &b);
#define AND_SIDE(field)          \
	if (uses(FIELD_##field)) \
		and_row(m, FIELD_##field, place, &b);
	const __u64 *base = m->row[FIELD_PROTO] + place;
	struct and_block b = {{base[0], base[1], base[2], base[3]}};

	COMMON_FIELDS(AND_CELL, AND_SIDE)
	return b;
#undef AND_CELL
#undef AND_SIDE
}

/* A word of the AND that is not 0, and its number. */
struct and_found {
	__u64 word; /* 0: no rule matches */
	__u32 number;
};

/* Are there no more words? Separate from the next test: the compiler would put the result of the
 * search before the marker. */
static __always_inline bool is_end(const int number)
{
	if (!RULES_ARE(M_WORDS, number))
		return false;
	asm volatile("");
	return true;
}

/* Is the search at its end, with this word or after the last one? */
static __always_inline bool is_word_found(__u64 word, const int number, struct and_found *f)
{
	if (is_end(number))
		return true;
	if (!word)
		return false;
	f->word = word;
	f->number = number;
	return true;
}

static __always_inline bool is_last_block(const int first)
{
	return is_end(first + 1) || is_end(first + 2) || is_end(first + 3) || is_end(first + 4);
}

/* The same with the four words from `first` on. some: the summary, with bits for words that may be
 * not 0. */
static __always_inline bool is_block_found(const struct matrix *m, const int first, __u64 some,
					   struct and_found *f)
{
	struct and_block b;

	if (some >> first & ((1 << SHORT_BLOCK) - 1)) {
		b = block_at(m, first + 1);
		if (is_word_found(b.word[0], first, f) || is_word_found(b.word[1], first + 1, f) ||
		    is_word_found(b.word[2], first + 2, f) ||
		    is_word_found(b.word[3], first + 3, f))
			return true;
	}
	return is_last_block(first);
}

/* The first word of the AND that is not 0; its summary is `some`. Written out: the position of a
 * word is then a constant, and so is the number of the marker that ends the search; and at the head
 * of a loop the verifier keeps few states, so that it would follow each path through a block to the
 * end of all. */
static __always_inline struct and_found search_words(const struct matrix *m, __u64 some)
{
	struct and_found f = {};

#define BLOCK(n) is_block_found(m, (n)*SHORT_BLOCK, some, &f)
	_Static_assert(POLICY_WORDS_MAX == 16 * SHORT_BLOCK, "each block is written out");
	(void)(BLOCK(0) || BLOCK(1) || BLOCK(2) || BLOCK(3) || BLOCK(4) || BLOCK(5) || BLOCK(6) ||
	       BLOCK(7) || BLOCK(8) || BLOCK(9) || BLOCK(10) || BLOCK(11) || BLOCK(12) ||
	       BLOCK(13) || BLOCK(14) || BLOCK(15));
#undef BLOCK
	return f;
}

/* The first word of the AND that is not 0, and its number; 0: no rule matches. More than one word
 * of rules. A bit of the summary can be set without a match; if there is one bit, it leads straight
 * to the word. */
static __always_inline __u64 first_word(const struct matrix *m, __u32 *ret_number)
{
	__u64 some = word_at(m, 0);
	struct and_found f;

	*ret_number = 0;
	if (!some)
		return 0;
	if (!(some & (some - 1))) {
		*ret_number = lowest_bit(some);
		return *ret_number < RULES(M_WORDS) ? word_at(m, *ret_number + 1) : 0;
	}
	f = search_words(m, some);
	/* Otherwise the rest would be verified for each word. */
	*ret_number = BOUND_FORGET(f.number, some);
	return f.word;
}

/* ---- one word, few rows ---------------------------------------------------------------------- */

/* The same for most policies, without unnecessary tests: no row can be out of bounds. */
static __always_inline __u64 small_row(__u64 row)
{
	return ((const __u64 *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_ROWS)))[row];
}

static __always_inline __u64 small_cell(const int name, __u64 index)
{
	return small_row(TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, name))[index]);
}

static __always_inline __u64 small_address(const struct view v, const int family, const int side)
{
	return small_row(address_row_of(v, family, side, true));
}

/* The row of an address is not read from a table. */
static __always_inline bool is_address_plain(const int family, const int side)
{
	if (family == 4)
		return TABLE_IS(NULL, SIDE_CONSTANT(side, H4_KIND), HOSTS4_NONE) &&
		       (TABLE_IS(NULL, SIDE_CONSTANT(side, T4_KIND), T4_ALL) ||
			TABLE_IS(NULL, SIDE_CONSTANT(side, T4_KIND), T4_ONE));
	return TABLE_IS(NULL, SIDE_CONSTANT(side, H6_LINES_N), 0) &&
	       TABLE_IS(NULL, SIDE_CONSTANT(side, T6_KIND), TABLE6_ONE);
}

/* Does a policy with few rows have tables of these addresses? Kernel 6.1 also verifies functions
 * that are not called. */
static __always_inline bool is_address_small(const int family, const int side)
{
	return !RULES_ARE(M_SMALL, 0) &&
	       uses(side == SIDE_SOURCE ? FIELD_SOURCE : FIELD_DESTINATION) &&
	       !is_address_plain(family, side);
}

/* With services these paths through the tables are verified once: not for each protocol, nor with
 * the code of services after them. Global; the address is in host order. */
__noinline __u64 small_source4(__u64 addr)
{
	if (!is_address_small(4, SIDE_SOURCE))
		return 0;
	return small_row(table4_row(NULL, SIDE_SOURCE, addr, true));
}

__noinline __u64 small_destination4(__u64 addr)
{
	if (!is_address_small(4, SIDE_DESTINATION))
		return 0;
	return small_row(table4_row(NULL, SIDE_DESTINATION, addr, true));
}

__noinline __u64 small_source6(__u64 hi, __u64 lo)
{
	if (!is_address_small(6, SIDE_SOURCE))
		return 0;
	return small_row(table6_row(NULL, SIDE_SOURCE, hi, lo, true));
}

__noinline __u64 small_destination6(__u64 hi, __u64 lo)
{
	if (!is_address_small(6, SIDE_DESTINATION))
		return 0;
	return small_row(table6_row(NULL, SIDE_DESTINATION, hi, lo, true));
}

static __always_inline __u64 small_by_call(const struct view v, const int family, const int side)
{
	const __u8 *at = address_at(v, family, side);

	if (family == 4)
		return side == SIDE_SOURCE ? small_source4(read32(at))
					   : small_destination4(read32(at));
	return side == SIDE_SOURCE ? small_source6(read64(at), read64(at + 8))
				   : small_destination6(read64(at), read64(at + 8));
}

static __always_inline __u64 small_side(const struct view v, const int family, const int side,
					bool balances)
{
	if (balances && !is_address_plain(family, side))
		return small_by_call(v, family, side);
	return small_address(v, family, side);
}

static __always_inline __u64 small_word(const struct view v, const int family,
					const struct arrival p)
{
#define AND_CELL(field, room, row, cell, apart)                     \
	if (uses_cells(FIELD_##field, apart) && is_apart(apart, v)) \
		word = and_bits(word, small_cell(M_##field, cell(v, family, p)));
#define AND_SIDE(field)          \
	if (uses(FIELD_##field)) \
		word = and_bits(word, small_side(v, family, SIDE_##field, p.balances));
	const __u64 *base = (const void *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_BASE));
	__u64 word = base[BOUND(v.base, MATRIX_BASES - 1) + (family == 6 ? MATRIX_BASES : 0)];

	COMMON_FIELDS(AND_CELL, AND_SIDE)
	return word;
#undef AND_CELL
#undef AND_SIDE
}

/* ---- actions --------------------------------------------------------------------------------- */

/* The position of the action of the first rule in `word`, the word of this number. */
static __always_inline __u64 action_place(__u64 word, __u32 number)
{
	const struct matrix_action *actions =
		(const void *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_ACTIONS));
	__u64 place = matrix_action_place(word);

	/* Masked: kernel 6.1 does not connect a number with its copy on the stack. */
	if (!RULES_ARE(M_WORDS, 1))
		place = BOUND(place + number * 64, POLICY_WORDS_MAX * 64 - 1);
	if (is_test() && actions[place].reason >= 0)
		test_rule(number * 64 + lowest_bit(word));
	return place;
}

/* The caller knows the length. */
static __always_inline struct fate act_at(__u64 place)
{
	const struct matrix_action *action =
		(const void *)TABLE_AT(NULL, MATRIX_CONSTANT(MATRIX_RULES, M_ACTIONS));

	action += place;
	return (struct fate){.reason = action->reason, .counter = action->counter};
}

/* The first rule in `word`, the word of this number. */
static __always_inline struct fate act_common(__u64 word, __u32 number)
{
	return act_at(action_place(word, number));
}
