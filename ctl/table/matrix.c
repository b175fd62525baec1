// SPDX-License-Identifier: GPL-2.0-only
// Rows by field first, then their final numbers, then the bytes of the tables.
#include "ctl/table/matrix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/matrix.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/policy/names.h"
#include "ctl/table/fields.h"
#include "ctl/table/number.h"
#include "ctl/table/rows.h"
#include "ctl/table/sweep.h"
#include "ctl/table/table4.h"
#include "ctl/table/table6.h"

#define ROWS_BYTES (128ull << 20)
#define WORST_SETS 3 // named when there are too many rows

struct matrix_build {
	const struct resolved *in;
	enum table_matrix which;
	const struct compile_options *options;
	struct diag *diag;
	struct tables *out;
	struct matrix_built *built;
	uint64_t rows_max;
	uint64_t *new_rows; // by resolved.addresses
	struct rows rows;
	struct field_rows fields;
	size_t base; // with more than one word: first rows of BASE_* in fields.cells
	struct regions space[MATRIX_SPACES];
};

static enum policy_field space_field(int space)
{
	return space < 2 ? FIELD_SOURCE : FIELD_DESTINATION;
}

static int space_family(int space)
{
	return space % 2 ? 6 : 4;
}

// ---- too many rows ------------------------------------------------------------------------------

// The set with the most new rows that is not named yet; n_addresses: none.
static size_t worst_set(const struct matrix_build *b, const bool *named)
{
	size_t worst = b->in->n_addresses;

	for (size_t i = 0; i < b->in->n_addresses; i++)
		if (!named[i] && b->new_rows[i] &&
		    (worst == b->in->n_addresses || b->new_rows[i] > b->new_rows[worst]))
			worst = i;
	return worst;
}

static void name_set(const struct matrix_build *b, size_t set, struct text *t)
{
	const struct resolved_addresses *s = &b->in->addresses[set];
	num_text rows;

	num_format_grouped(b->new_rows[set], rows);
	text_add(t, t->len ? ", " : "");
	if (s->name)
		text_addf(t, "'@%s' (%s)", s->name, rows);
	else
		text_addf(t, "the list at %s (%s)", diag_place(b->diag, s->at, true), rows);
}

static struct diag_at first_user(const struct resolved *r, size_t set)
{
	for (size_t i = 0; i < r->n_rules; i++) {
		const struct resolved_rule *rule = &r->rules[i];

		if (rule->impossible)
			continue;
		if ((rule->from.kind == RESOLVED_SET && rule->from.index == set) ||
		    (rule->to.kind == RESOLVED_SET && rule->to.index == set))
			return rule->at;
	}
	return r->rules[0].at;
}

// Names the sets at whose edges most rows began.
static int refuse_rows(const struct matrix_build *b)
{
	CLEANUP_FREE bool *named = mem_zalloc(b->in->n_addresses, sizeof(*named));
	size_t worst = worst_set(b, named);
	struct diag_at at = first_user(b->in, worst);
	struct text sets = {0};
	num_text bytes;

	for (int i = 0; i < WORST_SETS && worst < b->in->n_addresses; i++) {
		name_set(b, worst, &sets);
		named[worst] = true;
		worst = worst_set(b, named);
	}
	num_format_bytes(b->rows_max, bytes);
	diag_error(b->diag, at,
		   "rules that share a set, and sets that do not overlap, have fewer combinations",
		   "the rules have too many different combinations (more than %s)%s%s", bytes,
		   sets.len ? "; most come from " : "", text_get(&sets));
	text_free(&sets);
	return -EINVAL;
}

// ---- rows ---------------------------------------------------------------------------------------

// Row 1: all rules that can match at all.
static int add_row_all(struct matrix_build *b)
{
	struct row row;

	row_init(&row, b->built->words);
	for (size_t i = 0; i < b->in->n_rules; i++)
		if (!b->in->rules[i].impossible)
			row_flip_rule(&row, i);
	return rows_add(&b->rows, &row) == POLICY_ROW_ALL ? 0 : -ENOSPC;
}

static int sweep_spaces(struct matrix_build *b, int first)
{
	struct sweep_side side;
	bool ok = true;

	if (!b->fields.use[space_field(first)])
		return 0;
	side_init(&side, b->in, space_field(first), b->built->words);
	for (int i = first; i < first + 2 && ok; i++)
		ok = sweep(&side, space_family(i), &b->rows, b->new_rows, &b->space[i]);
	side_free(&side);
	return ok ? 0 : -ENOSPC;
}

// ---- the rows of common packets -----------------------------------------------------------------

// The number of the row of a small field; POLICY_ROW_ALL if no rule tests the field.
static policy_row field_row(const struct matrix_build *b, enum policy_field field, size_t index)
{
	return b->fields.use[field] ? b->fields.cells.at[b->fields.base[field] + index]
				    : POLICY_ROW_ALL;
}

// The AND of the rows that a cell of M_BASE has.
static uint64_t base_word(const struct matrix_build *b, int family, uint32_t cell, uint32_t word)
{
	uint64_t bits = rows_word(&b->rows, POLICY_ROW_ALL, word);

	for (int field = FIELD_SPORT; field < POLICY_FIELDS; field++) {
		int index = fields_base((enum policy_field)field, family, cell);

		if (index >= 0)
			bits &= rows_word(&b->rows,
					  field_row(b, (enum policy_field)field, (size_t)index),
					  word);
	}
	return bits;
}

// With more than one word the cells are rows of their own, which take part in the numbering.
static int add_base_rows(struct matrix_build *b)
{
	b->base = b->fields.cells.n;
	if (b->built->words == 1)
		return 0;
	for (uint32_t i = 0; i < 2 * BASE_CELLS; i++) {
		struct row row;
		policy_row number;

		row_init(&row, b->built->words);
		for (uint32_t w = 0; w < b->built->words; w++)
			row_flip(&row, w, base_word(b, i < BASE_CELLS ? 4 : 6, i % BASE_CELLS, w));
		if (!(number = rows_add(&b->rows, &row)))
			return -ENOSPC;
		vec_push(&b->fields.cells, number);
	}
	return 0;
}

// ---- bytes --------------------------------------------------------------------------------------

static void put_number(struct matrix_build *b, int name, uint64_t value)
{
	tables_number(b->out, MATRIX_CONSTANT(b->which, name), value);
}

static void put_address(struct matrix_build *b, int name, size_t offset)
{
	tables_address(b->out, MATRIX_CONSTANT(b->which, name), offset);
}

static void put_rows(struct matrix_build *b)
{
	uint32_t words = b->built->words;
	size_t bytes = matrix_row_words(words) * sizeof(uint64_t), n = b->rows.n;
	bool small = words == 1 && n <= MATRIX_SMALL;
	size_t offset = tables_add(b->out, (small ? MATRIX_SMALL : n) * bytes);

	for (size_t r = 0; r < n; r++) {
		uint64_t *to = (uint64_t *)(b->out->at + offset + r * bytes);

		for (uint32_t w = 0; w < words; w++) {
			uint64_t word = rows_word(&b->rows, (policy_row)r, w);

			to[matrix_place(w, words)] = word;
			if (words > 1)
				to[0] |= (uint64_t) !!word << w;
		}
	}
	put_number(b, M_WORDS, words);
	put_number(b, M_SMALL, small);
	put_address(b, M_ROWS, offset);
	put_number(b, M_ROWS_N, n);
	put_number(b, M_ROW_BYTES, bytes);
	b->built->n_rows = n;
}

static unsigned cell_bytes(const struct matrix_build *b)
{
	return b->rows.n <= UINT8_MAX + 1 ? 1 : b->rows.n <= UINT16_MAX + 1 ? 2 : 4;
}

static void put_cell(struct matrix_build *b, size_t offset, size_t index, policy_row row)
{
	unsigned bytes = cell_bytes(b);
	uint8_t *to = b->out->at + offset + index * bytes;

	if (bytes == 1)
		*to = (uint8_t)row;
	else if (bytes == 2)
		*(uint16_t *)to = (uint16_t)row;
	else
		*(uint32_t *)to = row;
}

static bool is_port(enum policy_field field)
{
	return field == FIELD_SPORT || field == FIELD_DPORT;
}

// The index in the order of the datapath: ports are in network order.
static size_t cell_place(enum policy_field field, size_t index)
{
	return is_port(field) && index < POLICY_NO_PORT ? __builtin_bswap16((uint16_t)index)
							: index;
}

// room: cells that an index can reach.
static void put_field(struct matrix_build *b, enum policy_field field, int name, size_t room)
{
	size_t n = fields_size(field), offset;

	if (!b->fields.use[field])
		return;
	offset = tables_add(b->out, room * cell_bytes(b));
	for (size_t i = 0; i < n; i++)
		put_cell(b, offset, cell_place(field, i),
			 b->fields.cells.at[b->fields.base[field] + i]);
	put_address(b, name, offset);
}

static void put_fields(struct matrix_build *b)
{
	for (int field = 0; field < POLICY_FIELDS; field++)
		put_number(b, M_USES + field, b->fields.use[field]);
	put_number(b, M_CELL, cell_bytes(b));
#define PUT_FIELD(field, ...) put_field(b, FIELD_##field, M_##field, ROOM_##field);
	MATRIX_CELLS(PUT_FIELD)
#undef PUT_FIELD
}

// Cells of words or of row numbers; the cells of IPv6 are MATRIX_BASES later.
static void put_base(struct matrix_build *b)
{
	bool words = b->built->words == 1;
	size_t offset = tables_add(b->out, 2 * MATRIX_BASES *
						   (words ? sizeof(uint64_t) : sizeof(uint32_t)));

	for (uint32_t i = 0; i < 2 * BASE_CELLS; i++) {
		uint32_t six = i >= BASE_CELLS, cell = i % BASE_CELLS;
		uint32_t to = six * MATRIX_BASES + cell;

		if (words)
			((uint64_t *)(b->out->at + offset))[to] =
				base_word(b, six ? 6 : 4, cell, 0);
		else
			((uint32_t *)(b->out->at + offset))[to] = b->fields.cells.at[b->base + i];
	}
	put_address(b, M_BASE, offset);
}

// Filled when the counters of the rules are known: image_set_actions().
static void put_actions(struct matrix_build *b)
{
	// With several words there is room for each number that the datapath can look up.
	uint32_t words = b->built->words > 1 ? POLICY_WORDS_MAX : 1;

	put_address(b, M_ACTIONS, tables_add(b->out, words * 64 * sizeof(struct matrix_action)));
}

static int put_spaces(struct matrix_build *b)
{
	for (int i = 0; i < MATRIX_SPACES; i++) {
		enum table_side side = b->which == MATRIX_MEMBERS ? SIDE_MEMBER
				       : i < 2                    ? SIDE_SOURCE
								  : SIDE_DESTINATION;
		int code;

		if (!b->space[i].n)
			continue;
		code = space_family(i) == 4
			       ? table4_build(b->out, side, &b->space[i], b->options->seed)
			       : table6_build(b->out, side, &b->space[i], b->options->seed);
		if (code)
			return code;
		if (b->options->keep_regions)
			b->built->space[i] = b->space[i];
		else
			vec_free(&b->space[i]);
		b->space[i] = (struct regions){0};
	}
	return 0;
}

// ---- all ----------------------------------------------------------------------------------------

static void number(struct matrix_build *b)
{
	struct number_regions list[MATRIX_SPACES];

	for (int i = 0; i < MATRIX_SPACES; i++)
		list[i] = (struct number_regions){&b->space[i], space_family(i), true};
	number_rows(&b->rows, b->fields.cells.at, b->fields.cells.n, list, MATRIX_SPACES);
}

static int refuse_bytes(const struct matrix_build *b)
{
	num_text bytes;

	num_format_bytes(TABLES_BYTES_MAX, bytes);
	diag_error(b->diag, b->in->rules[0].at, "fewer or smaller sets",
		   "the tables of the policy take more than %s", bytes);
	return -EINVAL;
}

static int build(struct matrix_build *b)
{
	if (add_row_all(b) || !fields_build(b->in, &b->rows, &b->fields) || add_base_rows(b) ||
	    sweep_spaces(b, 0) || sweep_spaces(b, 2))
		return refuse_rows(b);
	number(b);
	put_rows(b);
	put_base(b);
	put_actions(b);
	put_fields(b);
	return put_spaces(b) || b->out->n > TABLES_BYTES_MAX ? refuse_bytes(b) : 0;
}

static void build_free(struct matrix_build *b)
{
	rows_free(&b->rows);
	vec_free(&b->fields.cells);
	for (int i = 0; i < MATRIX_SPACES; i++)
		vec_free(&b->space[i]);
	free(b->new_rows);
}

void matrix_built_free(struct matrix_built *m)
{
	for (int i = 0; i < MATRIX_SPACES; i++)
		vec_free(&m->space[i]);
}

int matrix_build(const struct resolved *in, enum table_matrix which,
		 const struct compile_options *options, struct diag *d, struct tables *t,
		 struct matrix_built *ret)
{
	struct matrix_build b = {
		.in = in,
		.which = which,
		.options = options,
		.diag = d,
		.out = t,
		.built = ret,
		.rows_max = options->rows_max ? options->rows_max : ROWS_BYTES,
	};
	int code;

	*ret = (struct matrix_built){.words = (uint32_t)((in->n_rules + 63) / 64)};
	if (!in->n_rules)
		return 0;
	fields_use(in, &b.fields);
	memcpy(ret->use, b.fields.use, sizeof(ret->use));
	b.new_rows = mem_zalloc(in->n_addresses, sizeof(*b.new_rows));
	rows_init(&b.rows, ret->words, b.rows_max);
	code = build(&b);
	build_free(&b);
	return code;
}
