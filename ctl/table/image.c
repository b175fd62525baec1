// SPDX-License-Identifier: GPL-2.0-only
// The memory of an image, and the look-up of a packet in it.
#include "ctl/table/image.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/counters.h"
#include "common/table4.h"
#include "common/table6.h"
#include "ctl/base/mem.h"
#include "ctl/table/fields.h"

void image_free(struct image *i)
{
	if (!i)
		return;
	for (size_t n = 0; i->about && n < i->n_rules; n++) {
		free(i->about[n].identity);
		free(i->about[n].place);
		free(i->about[n].redirect);
	}
	for (size_t n = 0; i->services && n < i->n_services; n++) {
		free(i->services[n].name);
		free(i->services[n].place);
	}
	free(i->services);
	free(i->about);
	free(i->rules);
	tables_free(&i->tables);
	for (int m = 0; m < TABLE_MATRICES; m++)
		matrix_built_free(&i->matrix[m]);
	free(i);
}

void image_cleanup(struct image **i)
{
	image_free(*i);
}

size_t image_bytes(const struct image *i)
{
	return i->tables.n + i->n_rules * sizeof(*i->rules) +
	       i->n_bucket_lines * sizeof(struct policy_bucket_line);
}

// ---- looking up ---------------------------------------------------------------------------------

static uint64_t load64(const uint8_t *bytes)
{
	uint64_t n = 0;

	for (int b = 0; b < 8; b++)
		n = n << 8 | bytes[b];
	return n;
}

static policy_row address_row(const struct image *i, enum table_side side, int family,
			      const uint8_t *addr)
{
	if (family == 4)
		return (policy_row)table4_row(&i->tables, side, (uint32_t)(load64(addr) >> 32),
					      false);
	return (policy_row)table6_row(&i->tables, side, load64(addr), load64(addr + 8), false);
}

policy_row image_field_row(const struct image *i, enum table_matrix matrix, enum policy_field field,
			   uint32_t value)
{
	static const int names[] = {
		[FIELD_SPORT] = M_SPORT,         [FIELD_DPORT] = M_DPORT,
		[FIELD_PROTO] = M_PROTO,         [FIELD_L4] = M_L4,
		[FIELD_VLAN] = M_VLAN,           [FIELD_IFACE] = M_IFACE,
		[FIELD_ETHERTYPE] = M_ETHERTYPE,
	};

	if ((field == FIELD_SPORT || field == FIELD_DPORT) && value != POLICY_NO_PORT)
		value = htons((uint16_t)value);
	return matrix_cell(&i->tables, matrix, names[field], value);
}

static policy_row row_of(const struct image *i, enum table_matrix matrix, enum policy_field field,
			 const struct image_packet *p)
{
	if (field == FIELD_SOURCE)
		return address_row(i, SIDE_SOURCE, p->family, p->source);
	if (field == FIELD_DESTINATION)
		return address_row(i, matrix == MATRIX_MEMBERS ? SIDE_MEMBER : SIDE_DESTINATION,
				   p->family, p->destination);
	return image_field_row(i, matrix, field, p->index[field]);
}

static bool looked_up(const struct matrix_built *m, const struct image_packet *p, int field)
{
	return m->use[field] && (p->family || matrix_fields[field].frame);
}

// common/policy.h, FIELD_L4 and FIELD_ETHERTYPE.
static bool matchable(const struct matrix_built *m, const struct image_packet *p)
{
	if (p->family && p->index[FIELD_L4] >= POLICY_L4_NEIGHBOUR)
		return m->use[FIELD_L4];
	return p->family || m->use[FIELD_ETHERTYPE];
}

bool image_match(const struct image *i, enum table_matrix matrix, const struct image_packet *p,
		 uint64_t *ret_words)
{
	const struct matrix_built *m = &i->matrix[matrix];
	size_t bits = matrix == MATRIX_RULES ? i->n_rules : i->n_services;

	memset(ret_words, 0, m->words * sizeof(*ret_words));
	if (!m->words || !matchable(m, p))
		return true;
	for (size_t n = 0; n < bits; n++)
		ret_words[n / 64] |= 1ull << (n % 64);
	for (int field = 0; field < POLICY_FIELDS; field++) {
		policy_row number;
		const __u64 *row;

		if (!looked_up(m, p, field))
			continue;
		number = row_of(i, matrix, (enum policy_field)field, p);
		row = matrix_row(&i->tables, matrix, number);
		if (!number || !row)
			return false;
		for (uint32_t w = 0; w < m->words; w++)
			ret_words[w] &= row[matrix_place(w, m->words)];
	}
	return true;
}

// ---- actions ------------------------------------------------------------------------------------

static int32_t action_reason(const struct policy_rule *rule)
{
	return rule->action == ACTION_PASS   ? REASON_PASS_RULE
	       : rule->action == ACTION_DROP ? REASON_DROP_RULE
					     : MATRIX_ASK;
}

// The short program knows what follows the limit of a rule: another rule of the same word, or the
// default.
static bool decides_limits(const struct image *i)
{
	return i->matrix[MATRIX_RULES].words == 1 && !i->n_services;
}

// Rules that need more than the headers that the short program reads are left to the general one,
// except rules with only a limit.
static int32_t reason(const struct image *i, uint32_t number)
{
	const struct policy_rule *rule = &i->rules[number];
	uint32_t more = rule->flags & (RULE_CONDITIONS | RULE_LOG | RULE_ADD);
	int32_t reason = action_reason(rule);

	if (!more || reason == MATRIX_ASK)
		return reason;
	if (more != RULE_LIMIT || !decides_limits(i))
		return MATRIX_ASK;
	return matrix_limit(number, (uint32_t)reason);
}

static size_t actions_offset(const struct image *i)
{
	return (size_t)i->tables.constant[MATRIX_CONSTANT(MATRIX_RULES, M_ACTIONS)].value;
}

void image_write_tables(const struct image *i, uint8_t *to)
{
	struct matrix_action *actions = (struct matrix_action *)(to + actions_offset(i));

	if (i->tables.n)
		memcpy(to, i->tables.at, i->tables.n);
	for (uint32_t n = 0; n < i->n_rules; n++)
		actions[n / 64 * 64 + matrix_action_place(1ull << n % 64)] = (struct matrix_action){
			.counter = i->rules[n].counter,
			.reason = reason(i, n),
		};
}
