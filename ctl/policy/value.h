// SPDX-License-Identifier: GPL-2.0-only
// Turns lists of words into numbers, field by field; errors are queued.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/diag.h"
#include "ctl/policy/ast.h"
#include "ctl/policy/expand.h"
#include "ctl/policy/ranges.h"

struct services;

struct value { // who asks
	struct diag *diag;
	struct expander *expander;
	const struct resolved *r; // whose interfaces `on` names
	struct diag_at use; // the field's keyword: a word of a definition is told where it is used
};

// Each evaluates a list: 0, or -EINVAL with errors queued. Values are sorted; no value is an error.
int value_protos(struct value *v, const struct ast_list *list, uint64_t ret[4]);
int value_codes(struct value *v, const struct ast_list *list, struct ranges *ret);
int value_vlans(struct value *v, const struct ast_list *list, struct ranges *ret);
int value_ethertypes(struct value *v, const struct ast_list *list, struct ranges *ret);
int value_dscp(struct value *v, const struct ast_list *list, uint64_t *ret);
int value_on(struct value *v, const struct ast_list *list, uint64_t *ret);
// Names must have the same number for each protocol of `protos` that has ports.
int value_ports(struct value *v, const struct ast_list *list, const uint64_t protos[4],
		struct services *services, struct ranges *ret);
int value_flags(struct value *v, const struct ast_list *set, const struct ast_list *mask,
		uint8_t *ret_set, uint8_t *ret_mask);
// families: a bit 1 << 4, 1 << 6 for those the rule may have; ret_families: those it has. `given`:
// the rule names its protocols. Sorted lists of types for each family.
int value_types(struct value *v, const struct ast_list *list, bool given, unsigned families,
		struct ranges *ret4, struct ranges *ret6, unsigned *ret_families);

// Bits of protocols.
bool proto_has(const uint64_t bits[4], unsigned proto);
void proto_set(uint64_t bits[4], unsigned proto);
