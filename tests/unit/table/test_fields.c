// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/fields.c: every entry of every table against what the rules say.
#include "tests/unit/table/random.h"

#include "common/matrix.h"
#include "ctl/table/fields.h"

static bool satisfies_l4(const struct resolved_rule *rule, uint32_t index)
{
	uint8_t family = index < POLICY_L4_ICMP6 ? 4 : 6;
	bool neighbour = index >= POLICY_L4_NEIGHBOUR;
	uint32_t type, code;

	if (neighbour && !rule->icmp.given)
		return false;
	if (index < POLICY_L4_NONE)
		return !rule->icmp.given &&
		       (!rule->flags.given || (index & rule->flags.mask) == rule->flags.set);
	if (index == POLICY_L4_NONE || !rule->icmp.given)
		return !rule->icmp.given && !rule->flags.given;
	index -= neighbour     ? POLICY_L4_NEIGHBOUR - 133 * 256
		 : family == 4 ? POLICY_L4_ICMP
			       : POLICY_L4_ICMP6;
	type = index / 256;
	code = index % 256;
	for (size_t i = 0; i < rule->icmp.n; i++)
		if (rule->icmp.at[i].family == family && rule->icmp.at[i].type == type &&
		    code >= rule->icmp.at[i].code_first && code <= rule->icmp.at[i].code_last)
			return true;
	return false;
}

static bool satisfies_port(const struct resolved_ranges *r, uint32_t index)
{
	return !r->given || (index < POLICY_NO_PORT && made_in_ranges(r, index));
}

// From the comments of common/policy.h, field by field.
static bool satisfies_field(const struct resolved_rule *rule, int field, uint32_t index)
{
	if (rule->impossible)
		return false;
	switch (field) {
	case FIELD_VLAN:
		return !rule->vlan.given || made_in_ranges(&rule->vlan, index);
	case FIELD_IFACE:
		return !rule->on.given || (index && rule->on.bits[0] >> (index - 1) & 1);
	case FIELD_ETHERTYPE:
		return rule->ethertype.given ? made_in_ranges(&rule->ethertype, index)
					     : index == 0x0800 || index == 0x86dd;
	}
	if (rule->ethertype.given)
		return field != FIELD_L4 || index < POLICY_L4_NEIGHBOUR;
	switch (field) {
	case FIELD_SPORT:
		return satisfies_port(&rule->sport, index);
	case FIELD_DPORT:
		return satisfies_port(&rule->dport, index);
	case FIELD_PROTO:
		return (!rule->fragment || index >= 512) &&
		       (!rule->proto.given ||
			rule->proto.bits[index % 256 / 64] >> (index % 64) & 1);
	default:
		return satisfies_l4(rule, index);
	}
}

static const uint32_t size[POLICY_FIELDS] = {
	[FIELD_SPORT] = 65537,     [FIELD_DPORT] = 65537,
	[FIELD_PROTO] = 3 * 256,   [FIELD_L4] = 257 + 2 * 65536 + 4 * 256,
	[FIELD_VLAN] = 4096,       [FIELD_IFACE] = 65,
	[FIELD_ETHERTYPE] = 65536,
};

static void check_field(const struct resolved *r, int field, const struct rows *rows,
			const __u32 *table)
{
	for (uint32_t index = 0; index < size[field]; index++) {
		const uint64_t *row = rows->at + (size_t)table[index] * rows->words;

		assert_int_not_equal(table[index], 0);
		for (size_t n = 0; n < r->n_rules; n++)
			if ((row[n / 64] >> (n % 64) & 1) !=
			    satisfies_field(&r->rules[n], field, index))
				fail_msg("field %d, index %u, rule %zu", field, index, n);
		for (size_t n = r->n_rules; n < rows->words * 64; n++)
			if (row[n / 64] >> (n % 64) & 1)
				fail_msg("field %d, index %u: there is no rule %zu", field, index,
					 n);
	}
}

static void check_all(const struct resolved *r)
{
	struct field_rows f = {0};
	struct rows rows;

	fields_use(r, &f);
	rows_init(&rows, (r->n_rules + 63) / 64, 64 << 20);
	assert_true(fields_build(r, &rows, &f));
	for (int field = FIELD_SPORT; field < POLICY_FIELDS; field++)
		if (f.use[field])
			check_field(r, field, &rows, f.cells.at + f.base[field]);
	rows_free(&rows);
	vec_free(&f.cells);
}

static void test_every_entry(void **state)
{
	uint64_t s = 21;

	for (int round = 0; round < 6; round++) {
		const struct random_shape shape = {round < 3 ? 20 : 70, 0, 0, 2};
		struct made m;

		random_policy(&m, &s, &shape);
		check_all(&m.r);
		made_free(&m);
	}
}

// Which fields are looked up, for one rule each.
static unsigned used(const struct made *m)
{
	struct field_rows f = {0};
	unsigned bits = 0;

	fields_use(&m->r, &f);
	for (unsigned field = 0; field < POLICY_FIELDS; field++)
		bits |= (unsigned)f.use[field] << field;
	return bits;
}

#define ONLY(field) (1u << (field))

static void test_use(void **state)
{
	struct resolved_rule *rule;
	struct made m;

	made_init(&m, 1, 1);
	rule = m.r.rules;
	assert_int_equal(used(&m), 0);
	rule->from.kind = RESOLVED_DYNAMIC;
	assert_int_equal(used(&m), 0);
	rule->from.kind = RESOLVED_SET;
	assert_int_equal(used(&m), ONLY(FIELD_SOURCE));
	rule->from.kind = RESOLVED_ANY;
	rule->flags.given = true;
	assert_int_equal(used(&m), ONLY(FIELD_L4));
	rule->flags.given = false;
	rule->fragment = true;
	assert_int_equal(used(&m), ONLY(FIELD_PROTO));
	rule->fragment = false;
	rule->ethertype = made_range(&m, 0x806, 0x806);
	assert_int_equal(used(&m), ONLY(FIELD_ETHERTYPE));
	rule->impossible = true; // by itself it needs a row that does not have it
	assert_int_equal(used(&m), ONLY(FIELD_PROTO));
	made_free(&m);
}

// The base has what the short way does not look up, and no more; a table has room for its field.
static void check_lists(int field, size_t room, enum matrix_apart apart)
{
	const struct matrix_field *f = &matrix_fields[field];

	assert_true(fields_size((enum policy_field)field) <= room);
	assert_int_equal(!f->base, apart == APART_ALL);
	for (int family = 4; f->base && family <= 6; family += 2) {
		for (uint32_t cell = 0; cell < BASE_ICMP; cell++)
			assert_in_range(f->base(family, cell), 0, room - 1);
		assert_int_equal(f->base(family, BASE_ICMP) < 0, apart == APART_ICMP);
	}
}

static void test_lists(void **state)
{
	(void)state;
#define CHECK_FIELD(field, room, row, cell, apart) check_lists(FIELD_##field, room, apart);
	MATRIX_CELLS(CHECK_FIELD)
#undef CHECK_FIELD
}

// Twice the rows: 4096 rules with one port each; the table is still made in one sweep.
static void test_many_ports(void **state)
{
	struct field_rows f = {0};
	struct rows rows;
	struct made m;

	made_init(&m, 4096, 0);
	for (size_t n = 0; n < m.r.n_rules; n++)
		m.r.rules[n].dport = made_range(&m, (uint16_t)(n * 16), (uint16_t)(n * 16 + 7));
	fields_use(&m.r, &f);
	rows_init(&rows, 64, 64 << 20);
	assert_true(fields_build(&m.r, &rows, &f));
	assert_int_equal(rows.n, 1 + 4096 + 1); // none for row 1 here: compile adds it
	for (uint32_t port = 0; port < 65536; port++) {
		const uint64_t *row = rows.at + (size_t)f.cells.at[port] * rows.words;
		uint32_t rule = port / 16;

		assert_int_equal(row[rule / 64], port % 16 < 8 ? 1ull << (rule % 64) : 0);
	}
	rows_free(&rows);
	vec_free(&f.cells);
	made_free(&m);
}

static void test_no_room(void **state)
{
	struct field_rows f = {0};
	struct rows rows;
	struct made m;

	made_init(&m, 100, 0);
	for (size_t n = 0; n < m.r.n_rules; n++)
		m.r.rules[n].sport = made_range(&m, (uint16_t)(n * 2), (uint16_t)(n * 2));
	fields_use(&m.r, &f);
	rows_init(&rows, 2, 50 * 3 * 8);
	assert_false(fields_build(&m.r, &rows, &f));
	rows_free(&rows);
	vec_free(&f.cells);
	made_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_entry), cmocka_unit_test(test_use),
		cmocka_unit_test(test_lists),       cmocka_unit_test(test_many_ports),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
