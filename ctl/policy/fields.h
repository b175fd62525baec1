// SPDX-License-Identifier: GPL-2.0-only
// Properties of each field and condition of a rule; ctl/policy/rule_fields.h lists them.
#pragma once

#include "ctl/policy/ast.h"
#include "ctl/policy/domain.h"
#include "ctl/policy/resolved.h"

struct field {
	const char *keyword; // NULL: it follows another field ("from … port")
	enum rule_form form;
	size_t at;                   // in struct resolved_rule
	bool condition;              // tried after the bit matrix
	bool frame;                  // may be given with `ethertype`
	bool name;                   // the keyword can also be a name
	const struct domain *domain; // of lists
	const char *what;            // of spans: "a TTL"
	uint32_t max;                // of spans
};

// By enum ast_field.
extern const struct field fields[AST_RULE_FIELDS];

// Where the field lies in a rule.
static inline const void *field_at(const struct resolved_rule *rule, size_t field)
{
	return (const char *)rule + fields[field].at;
}

static inline void *field_place(struct resolved_rule *rule, size_t field)
{
	return (char *)rule + fields[field].at;
}

static inline bool field_given(const struct resolved_rule *rule, size_t field)
{
	return *(const uint8_t *)field_at(rule, field);
}

// Is the field one of the rule's conditions? So is an address that is a dynamic set.
bool field_is_condition(const struct resolved_rule *rule, size_t field);

// The field with this keyword; AST_RULE_FIELDS: none.
size_t field_find(const char *keyword);
