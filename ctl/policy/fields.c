// SPDX-License-Identifier: GPL-2.0-only
// The table of fields, from ctl/policy/rule_fields.h.
#include "ctl/policy/fields.h"

#include <string.h>

#define FIELD(symbol, member, form_, of, ...)                           \
	[AST_##symbol] = {.form = FORM_##form_,                         \
			  .at = offsetof(struct resolved_rule, member), \
			  .domain = &domain_##of,                       \
			  __VA_ARGS__},

const struct field fields[AST_RULE_FIELDS] = {RULE_FIELDS(FIELD)};

bool field_is_condition(const struct resolved_rule *rule, size_t field)
{
	const struct resolved_address *address = field_at(rule, field);

	if (!field_given(rule, field))
		return false;
	return fields[field].condition ||
	       (fields[field].form == FORM_ADDRESS && address->kind == RESOLVED_DYNAMIC);
}

size_t field_find(const char *keyword)
{
	size_t i = 0;

	while (i < AST_RULE_FIELDS &&
	       (!fields[i].keyword || strcmp(fields[i].keyword, keyword) != 0))
		i++;
	return i;
}
