// SPDX-License-Identifier: GPL-2.0-only
// The memory of an image, and what the short program does for each rule.
#include "ctl/table/image.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/counters.h"
#include "common/matrix.h"
#include "ctl/base/mem.h"

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
	free(i->rules_of_port);
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

policy_row image_field_row(const struct image *i, enum table_matrix matrix, enum policy_field field,
			   uint32_t value)
{
#define TABLE_NAME(field, ...) [FIELD_##field] = M_##field,
	static const int names[] = {MATRIX_CELLS(TABLE_NAME)};
#undef TABLE_NAME

	if ((field == FIELD_SPORT || field == FIELD_DPORT) && value != POLICY_NO_PORT)
		value = htons((uint16_t)value);
	return matrix_cell(&i->tables, matrix, names[field], value);
}

// ---- actions ------------------------------------------------------------------------------------

static int32_t action_reason(const struct policy_rule *rule)
{
	return rule->action == ACTION_PASS   ? REASON_PASS_RULE
	       : rule->action == ACTION_DROP ? REASON_DROP_RULE
					     : MATRIX_ASK;
}

// The short program knows what follows the limit of a rule: another rule of the same word, or the
// default. The one for services leaves limits to the general program.
static bool decides_limits(const struct image *i)
{
	return i->matrix[MATRIX_RULES].words == 1 && !i->n_services && !i->answers;
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
